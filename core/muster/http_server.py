"""Serves HTTP in a way that clients cannot exhaust: see `connections`. All that muster serves is served so."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from muster.connections import BACKLOG, WAIT_S, Connections

MOST_HEADER_LINE_BYTES = 8 << 10
MOST_HEADERS = 64
"""Browsers send some twenty, and proxies add a few."""

SHUTDOWN_S = 1.0

HANDSHAKE_S = 5.0
"""Until a client has shaken hands, it counts as no connection yet. Over a slow line that takes half a second."""

NO_ROOM = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

CONNECTIONS = web.AppKey("connections", Connections)


def application(
    connections: Connections, middlewares: Iterable[Middleware] = (), *, most_body_bytes: int = 1 << 20
) -> web.Application:
    """An application whose requests count as work of its connections."""

    @web.middleware
    async def at_work(request: web.Request, handler: Handler) -> web.StreamResponse:
        with connections.work(request.transport):
            return await handler(request)

    app = web.Application(middlewares=[at_work, *middlewares], client_max_size=most_body_bytes)
    app[CONNECTIONS] = connections
    return app


@asynccontextmanager
async def serving(
    app: web.Application, listener: socket.socket, tls: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    """Serves an application of `application` on a listening socket, which is closed at the end; over TLS with `tls`."""
    runner = web.AppRunner(
        app,
        access_log=None,
        shutdown_timeout=SHUTDOWN_S,
        keepalive_timeout=2 * WAIT_S,  # the connections end those that wait
        max_line_size=MOST_HEADER_LINE_BYTES,
        max_field_size=MOST_HEADER_LINE_BYTES,
        max_headers=MOST_HEADERS,
    )
    await runner.setup()
    assert runner.server is not None
    try:
        protocol = app[CONNECTIONS].around(runner.server)
        within_s = None if tls is None else HANDSHAKE_S
        server = await asyncio.get_running_loop().create_server(
            protocol, sock=listener, backlog=BACKLOG, ssl=tls, ssl_handshake_timeout=within_s
        )
        try:
            yield
        finally:
            server.close()
    finally:
        await runner.cleanup()
