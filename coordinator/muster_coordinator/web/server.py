"""The server: its socket, its application, its end."""

import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from aiohttp import web

from muster.config import split_address
from muster.errors import Unavailable
from muster_coordinator.web.guard import guard
from muster_coordinator.web.problems import as_problems

MAX_BODY_BYTES = 1 << 20
SHUTDOWN_S = 1.0
WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 (compared with, not listened on)


def listen(address: str) -> tuple[socket.socket, str]:
    """The socket that listens on `address` (host:port, port 0 picks a free one) and the URL; Unavailable if taken."""
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise Unavailable(
            f"http.listen: cannot listen on {address}: {error.strerror}; stop what listens there or set another"
        ) from None
    reachable = socket.gethostname() if host in WILDCARDS else f"[{host}]" if ":" in host else host
    return server, f"http://{reachable}:{server.getsockname()[1]}"


def application(routes: Iterable[web.RouteDef], token: str | None) -> web.Application:
    """The routes behind the guard; every error is a problem."""
    app = web.Application(middlewares=[as_problems, guard(token)], client_max_size=MAX_BODY_BYTES)
    app.add_routes(routes)
    return app


@asynccontextmanager
async def serving(app: web.Application, server: socket.socket) -> AsyncIterator[None]:
    """Serves `app` on a listening socket."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        await web.SockSite(runner, server).start()
        yield
    finally:
        await runner.cleanup()
