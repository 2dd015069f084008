"""The HTTP server of coordinator and signer. Clients cannot exhaust it: see `connections`."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from muster.addresses import split_address
from muster.connections import BACKLOG, WAIT_S, Connections

MOST_REQUEST_LINE_BYTES = 16 << 10
"""The longest query that the API describes: a selection, a key and a cursor, with each character as twelve bytes."""

MOST_HEADER_LINE_BYTES = 8 << 10
MOST_HEADERS = 64
"""Browsers send about twenty headers, and proxies add a few."""

SHUTDOWN_S = 1.0

HANDSHAKE_S = 5.0
"""A client counts as a connection only after the handshake, which takes half a second over a slow line."""

CONNECTIONS = web.AppKey("connections", Connections)


def listening_socket(address: str) -> socket.socket:
    """A socket that listens on `address` (host:port, port 0 picks a free one). Raises OSError if it cannot."""
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


def application(
    connections: Connections, middlewares: Iterable[Middleware] = (), *, most_body_bytes: int = 1 << 20
) -> web.Application:
    """An application for `serving`. A connection is at work while the application answers a request on it."""

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
    """Serves an application made by `application` on a listening socket, with TLS if `tls` is given.

    The socket is closed at the end.
    """
    runner = web.AppRunner(
        app,
        access_log=None,
        shutdown_timeout=SHUTDOWN_S,
        keepalive_timeout=2 * WAIT_S,  # longer than WAIT_S: `Connections` ends idle connections first
        max_line_size=MOST_REQUEST_LINE_BYTES,
        max_field_size=MOST_HEADER_LINE_BYTES,
        max_headers=MOST_HEADERS,
    )
    async with AsyncExitStack() as stack:  # goes on if it is cancelled a second time while it ends
        stack.callback(app[CONNECTIONS].end)
        stack.push_async_callback(runner.cleanup)
        await runner.setup()
        assert runner.server is not None
        protocol = app[CONNECTIONS].around(runner.server)
        within_s = None if tls is None else HANDSHAKE_S
        server = await asyncio.get_running_loop().create_server(
            protocol, sock=listener, backlog=BACKLOG, ssl=tls, ssl_handshake_timeout=within_s
        )
        stack.callback(server.close)
        stack.push_async_callback(_accept_no_more, listener)
        yield


async def _accept_no_more(listener: socket.socket) -> None:
    """Leaves new connections to the kernel's queue, and waits until the server has taken in those that it accepted.

    asyncio drops a connection that it has accepted and not yet taken in when the server closes: the client would wait
    for an answer until Python's garbage collection closes the socket.
    """
    asyncio.get_running_loop().remove_reader(listener)
    await asyncio.sleep(0)
