"""The agent's HTTP endpoint on loopback: /healthz for supervisors, /metrics for Prometheus."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from muster.config import split_address
from muster.errors import Unavailable
from muster.model import Json
from muster_agent.metrics import Metrics


@asynccontextmanager
async def serving(listen: str, health: Callable[[], Json], metrics: Metrics) -> AsyncIterator[int]:
    """Serves on `host:port` while the context lasts, and yields the port; Unavailable when it is taken.

    That /healthz answers at all shows that the main loop is alive; `health` says in which state.
    """
    app = web.Application()

    async def healthz(_request: web.Request) -> web.Response:
        return web.json_response(health())

    async def expose(_request: web.Request) -> web.Response:
        return web.Response(body=metrics.expose(), headers={"Content-Type": "text/plain; version=0.0.4"})

    app.add_routes([web.get("/healthz", healthz), web.get("/metrics", expose)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        yield await _listen(runner, listen)
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, listen: str) -> int:
    host, port = split_address(listen)
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unavailable(
            f"cannot listen on {listen}: {reason}; set agent.listen to a free port, or to 127.0.0.1:0 for any"
        ) from None
    bound: int = runner.addresses[0][1]
    return bound
