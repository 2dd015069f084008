"""A real server for webhooks, and a transition to tell it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from muster.alarm import Alarm, AlarmKind
from muster.model import Action, ServiceState
from muster.plugins import HookAnswer, Plugins
from muster.transition import Transition

OUT = Transition(
    id="t1",
    node="gpu-0042",
    before=ServiceState.IN_SERVICE,
    after=ServiceState.CORDONED,
    reason="fell off the bus",
    at=1_700_000_000.0,
    codes=("nvml.lost",),
    action=Action.REPLACE,
)
BACK = OUT.model_copy(update={"id": "t2", "before": ServiceState.PROBATION, "after": ServiceState.IN_SERVICE})
ALARM = Alarm(
    kind=AlarmKind.ACTION, subject="slurm", text="slurm does not drain gpu-0042: no answer", since=1_700_000_000.0
)
ALARM_OVER = ALARM.model_copy(update={"text": "slurm drains again", "ended_at": 1_700_003_600.0})
SECRET = "bm8gb25lIHNoYWxsIGV2ZXIgcmVhZCB0aGlzIQ=="
TOKEN = "token-that-nobody-shall-read"


@dataclass
class Server:
    """What it was posted, by path, and what it answers there: the next of a list, or 200 when there is none."""

    url: str = ""
    posts: dict[str, list[tuple[Any, Any]]] = field(default_factory=dict)
    answers: dict[str, list[web.Response]] = field(default_factory=dict)
    hangs: asyncio.Event | None = None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.posts.setdefault(request.path, []).append((request.headers, await request.read()))
        if self.hangs is not None:
            await self.hangs.wait()
        return (self.answers.get(request.path) or [web.Response(text="ok")]).pop(0)

    def bodies(self, path: str) -> list[Any]:
        return [json.loads(body) for _, body in self.posts.get(path, [])]


@asynccontextmanager
async def serving(tls_context=None) -> AsyncIterator[Server]:
    server = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls_context).start()
    scheme = "http" if tls_context is None else "https"
    server.url = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


@dataclass
class Told:
    """The plugin, as the coordinator calls it."""

    plugins: Plugins

    async def answer(self, hook: str, **arguments) -> HookAnswer:
        (answer,) = await self.plugins.call_each(hook, 10, **arguments)
        return answer

    async def tell(self, transition: Transition = OUT) -> Any:
        answer = await self.answer("muster_transition", transition=transition)
        assert answer.error is None
        return answer.value

    async def tell_alarm(self, alarm: Alarm = ALARM) -> Any:
        answer = await self.answer("muster_alarm", alarm=alarm)
        assert answer.error is None
        return answer.value


def generic(tmp_path: Path, url: str, **more) -> dict[str, Any]:
    return {"url": url, "secret_file": str(tmp_path / "secret"), **more}
