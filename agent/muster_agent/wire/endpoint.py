"""The agent's HTTP endpoint on loopback: /healthz for supervisors, /metrics for Prometheus."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from muster import http_server
from muster.addresses import split_address
from muster.connections import Connections, most_connections
from muster.errors import Unavailable
from muster.model import Json
from muster_agent.wire.metrics import AgentMetrics

MOST_CONNECTIONS = 64
"""Connections: enough for a supervisor and a few scrapers."""


@asynccontextmanager
async def serving(listen: str, health: Callable[[], Json], metrics: AgentMetrics) -> AsyncIterator[int]:
    """Serves on `host:port` while the context lasts, and yields the port. Raises Unavailable if the port is taken.

    An answer of /healthz shows that the main loop is alive; `health` returns what it says.
    """
    connections = Connections("agent.listen", most_connections(MOST_CONNECTIONS), refusal=http_server.NO_ROOM)
    app = http_server.application(connections)

    async def healthz(_request: web.Request) -> web.Response:
        return web.json_response(health())

    async def expose(_request: web.Request) -> web.Response:
        return web.Response(body=metrics.expose(), headers={"Content-Type": "text/plain; version=0.0.4"})

    app.add_routes([web.get("/healthz", healthz), web.get("/metrics", expose)])
    with _listener(listen) as listener:
        async with http_server.serving(app, listener):
            port: int = listener.getsockname()[1]
            yield port


def _listener(listen: str) -> socket.socket:
    host, port = split_address(listen)
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unavailable(
            f"cannot listen on {listen}: {reason}; set agent.listen to a free port, or to 127.0.0.1:0 for any"
        ) from None
