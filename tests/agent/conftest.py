"""Throw-away checks in real child processes: `running(check, …)` gives a runner for them."""

import asyncio
import contextlib
import socket
import types
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import pytest

from muster.check import AnyCheck, Check, Params, Scope
from muster.config import Config, Settings
from muster.hookspecs import hookimpl
from muster.model import Measurement
from muster.plugins import Plugins, collect_checks
from muster.wire.messages import PluginInfo
from muster_agent.runs.launcher import Launcher, launch
from muster_agent.runs.resident import ResidentChild
from muster_agent.runs.runner import (
    Order,
    RankPlace,
    RanksReady,
    RunEnded,
    Runner,
    RunnerEvent,
    RunProgressed,
    Surroundings,
)

Measure = Callable[[Any, Any], Measurement]


class NoParams(Params):
    pass


@pytest.fixture
def check() -> Callable[..., AnyCheck]:
    """Makes a check of a `measure`: `check(measure, timeout_s=5)`. It finds nothing unless a `judge` is given."""

    def make(measure: Measure, **fields: Any) -> AnyCheck:
        defaults: dict[str, Any] = {
            "name": "throwaway",
            "summary": "a check of the tests",
            "scope": Scope.NODE,
            "params": NoParams,
            "judge": lambda _measurement, _references: [],
            "timeout_s": 20.0,
        }
        return Check(measure=measure, **{**defaults, **fields})

    return make


@pytest.fixture
def plugins_with():
    """Makes a single plugin that brings checks and implements hooks."""

    def make(checks: tuple[AnyCheck, ...], hooks: dict[str, Callable[..., Any]]) -> Plugins:
        brought = {"muster_checks": lambda: checks, **hooks}
        plugin = types.SimpleNamespace(**{name: hookimpl(function) for name, function in brought.items()})
        plugins = Plugins(Config(Settings()))
        plugins.add(PluginInfo(name="throwaway", distribution=None, version=None, status="loaded"), lambda: plugin)
        assert not plugins.failed
        return plugins

    return make


@pytest.fixture
def launched(plugins_with):
    """Forks a launcher for checks and hooks; all are closed at the end."""
    with contextlib.ExitStack() as launchers:

        def start(*checks: AnyCheck, **hooks: Callable[..., Any]) -> Launcher:
            plugins = plugins_with(checks, hooks)
            return launchers.enter_context(launch(plugins, collect_checks(plugins)))

        yield start


@dataclass
class Running:
    """A runner, the events it has emitted, and what the tests do with both."""

    runner: Runner
    resident: ResidentChild
    launcher: Launcher
    events: asyncio.Queue[RunnerEvent]
    progress: list[str] = field(default_factory=list)

    async def start(self, check: AnyCheck, listener: socket.socket | None = None, **order: Any) -> str:
        """Starts a run; gives its id."""
        defaults = {"run": uuid.uuid4().hex, "timeout_s": check.timeout_s, "params": check.params()}
        ordered = Order(check=check, **{**defaults, **order})
        await self.runner.start(ordered, listener)
        return ordered.run

    async def ended(self) -> RunEnded:
        """The next run that ends; what comes before it is kept in `progress`, readiness as `ready`."""
        async with asyncio.timeout(30):
            while True:
                match await self.events.get():
                    case RunEnded() as end:
                        return end
                    case RunProgressed(text=text):
                        self.progress.append(text)
                    case RanksReady():
                        self.progress.append("ready")

    async def until(self, text: str) -> None:
        """Waits until a run has said `text`, or is ready where `text` is "ready"."""
        async with asyncio.timeout(30):
            while text not in self.progress:
                event = await self.events.get()
                self.progress.append(getattr(event, "text", "ready"))
                assert not isinstance(event, RunEnded), event

    async def run(self, check: AnyCheck, **order: Any) -> RunEnded:
        await self.start(check, **order)
        return await self.ended()


@pytest.fixture
def running(launched) -> Callable[..., AbstractAsyncContextManager[Running]]:
    """A runner for checks, entered with `async with`; hooks and fields of Surroundings are keywords.

    `watched` and `alert` are those of the resident child.
    """

    @contextlib.asynccontextmanager
    async def enter(
        *checks: AnyCheck,
        hooks: dict[str, Any] | None = None,
        watched: tuple[str, ...] = (),
        alert: Callable[[str], None] = print,
        **around: Any,
    ) -> AsyncIterator[Running]:
        launcher = launched(*checks, **(hooks or {}))
        values: dict[str, Any] = {
            "node": "node-1",
            "devices": (),
            "expected_gpus": None,
            "references": (),
            "memory_limit_bytes": None,
            **around,
        }
        resident = ResidentChild(launcher, values["memory_limit_bytes"], watched, alert)
        events: asyncio.Queue[RunnerEvent] = asyncio.Queue()
        runner = Runner(launcher, resident, Surroundings(**values), events.put_nowait)
        try:
            yield Running(runner, resident, launcher, events)
        finally:
            await runner.close()

    return enter


@pytest.fixture
def places() -> Callable[..., tuple[RankPlace, ...]]:
    """The places of a group that has all its ranks on this node."""

    def make(ranks: int, port: int = 1) -> tuple[RankPlace, ...]:
        return tuple(
            RankPlace(
                rank=rank,
                local_rank=rank,
                local_world_size=ranks,
                world_size=ranks,
                master_addr="127.0.0.1",
                master_port=port,
            )
            for rank in range(ranks)
        )

    return make
