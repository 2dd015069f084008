"""The agent's HTTP endpoint: /healthz for supervisors, /metrics for Prometheus.

With a token, /metrics needs it as `Authorization: Bearer TOKEN`, and /healthz does not. Beyond loopback the settings
require a token.

The event loop reads and writes. Python's `http.server` parses each request and formats the answer, in memory; so an
answer shows that the event loop is alive, and no client can hold up a thread. A connection serves one request:

    GET /healthz HTTP/1.1   →   HTTP/1.0 200 OK and the body, then the connection is closed

aiohttp would keep connections open, but it takes 8 MiB of memory on every node, for two routes. `http.server` costs
nothing, because prometheus_client has loaded it. Python advises against it as a server for the internet: it sets no
limits. Here `Connections` and `MOST_HEAD_BYTES` set them.
"""

import asyncio
import hmac
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from pathlib import Path

from muster.addresses import split_address
from muster.connections import BACKLOG, NO_ROOM, Connections, most_connections
from muster.errors import SettingsError, Unavailable
from muster.model import Json
from muster.secret_file import read_secret
from muster_agent.wire.metrics import AgentMetrics

MOST_CONNECTIONS = 64
"""Connections: enough for a supervisor and a few scrapers."""

MOST_HEAD_BYTES = 16 << 10
"""Bytes that a client may send. Scrapers send a few hundred; the coordinator's server allows 8 KiB for each line."""

HEAD_END = b"\r\n\r\n"

Answerer = Callable[[], tuple[str, bytes]]
"""Returns content type and body."""

FREE = "/healthz"
"""The path that needs no token: supervisors have none."""


def read_token(path: Path) -> str:
    """The token in `agent.token_file`. Raises SettingsError if the file is empty or cannot be read."""
    token = read_secret(path, "agent.token_file")
    if not token:
        raise SettingsError(f"agent.token_file: {path} is empty; write a token into it")
    return token


@asynccontextmanager
async def serving(
    listen: str, health: Callable[[], Json], metrics: AgentMetrics, token: str | None = None
) -> AsyncIterator[int]:
    """Serves on `host:port` while the context lasts, and yields the port. Raises Unavailable if the port is taken.

    An answer of /healthz shows that the main loop is alive; `health` returns what it says. /metrics needs the `token`,
    if there is one.
    """
    routes: dict[str, Answerer] = {
        FREE: lambda: ("application/json; charset=utf-8", json.dumps(health()).encode()),
        "/metrics": lambda: ("text/plain; version=0.0.4", metrics.expose()),
    }
    connections = Connections("agent.listen", most_connections(MOST_CONNECTIONS), refusal=NO_ROOM)
    clients: set[asyncio.Transport] = set()
    protocol = connections.around(lambda: _Exchange(routes, token, connections, clients))
    with _listener(listen) as listener:
        server = await asyncio.get_running_loop().create_server(protocol, sock=listener, backlog=BACKLOG)
        try:
            port: int = listener.getsockname()[1]
            yield port
        finally:
            server.close()
            for transport in clients:
                transport.abort()


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


class _Exchange(asyncio.Protocol):
    """One connection: reads the head of a request, answers, closes. Requests for the routes have no body."""

    def __init__(
        self,
        routes: Mapping[str, Answerer],
        token: str | None,
        connections: Connections,
        clients: set[asyncio.Transport],
    ) -> None:
        self._routes = routes
        self._token = token
        self._connections = connections
        self._clients = clients
        self._received = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._clients.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._clients.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        self._received += data
        head, end, _ = self._received.partition(HEAD_END)
        if end or len(self._received) > MOST_HEAD_BYTES:
            with self._connections.work(self._transport):
                self._transport.write(_Request(head + end, self._routes, self._token).answer)
                self._transport.close()


class _Request(BaseHTTPRequestHandler):
    """Parses the head of a request and formats the answer. socketserver's own handlers work on a socket instead."""

    server_version = "muster"
    sys_version = ""
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(code)d: %(message)s\n"
    requestline = command = ""
    request_version = "HTTP/1.0"

    def __init__(self, head: bytes, routes: Mapping[str, Answerer], token: str | None) -> None:
        self._routes = routes
        self._token = token
        self.rfile = BytesIO(head)
        self.wfile = self._written = BytesIO()
        if len(head) > MOST_HEAD_BYTES:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        else:
            self.handle_one_request()

    @property
    def answer(self) -> bytes:
        """All bytes of the answer."""
        return self._written.getvalue()

    def do_GET(self) -> None:
        """Answers with the route's body."""
        self.wfile.write(self._answer_head())

    def do_HEAD(self) -> None:
        """Answers as GET does, without the body."""
        self._answer_head()

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing: clients may ask as often as they like."""

    def _answer_head(self) -> bytes:
        """Writes all but the body, and returns the body; empty if an error was written."""
        path = self.path.partition("?")[0]
        route = self._routes.get(path)
        if route is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return b""
        if self._token is not None and path != FREE and not self._bears(self._token):
            how = b"send the token of agent.token_file as `Authorization: Bearer TOKEN`\n"
            return self._head_of(HTTPStatus.UNAUTHORIZED, self.error_content_type, how)
        return self._head_of(HTTPStatus.OK, *route())

    def _bears(self, token: str) -> bool:
        """Whether the request has the token, compared in constant time."""
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(errors="surrogateescape"), token.encode())
        return scheme.lower() == "bearer" and same

    def _head_of(self, status: HTTPStatus, content_type: str, body: bytes) -> bytes:
        """Writes the head of an answer with this body, and returns the body."""
        self.send_response(status)
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", 'Bearer realm="muster"')
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        return body
