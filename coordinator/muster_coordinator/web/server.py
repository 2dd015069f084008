"""The server: its socket and its application."""

import socket
from collections.abc import Iterable

from aiohttp import web

from muster import http_server
from muster.addresses import split_address
from muster.connections import NO_ROOM, Connections, most_connections
from muster.errors import Unavailable
from muster_coordinator.web.guard import Access, guard
from muster_coordinator.web.login import Logins, SessionApi
from muster_coordinator.web.pages.account import with_account
from muster_coordinator.web.pages.error_page import as_error_pages
from muster_coordinator.web.pages.login_pages import LoginPages
from muster_coordinator.web.problems import as_problems
from muster_coordinator.web.requests import only_text
from muster_coordinator.web.viewer_routes import SESSION_ROUTES

MOST_BODY_BYTES = 1 << 20

MOST_CONNECTIONS = 512
"""Several times the connections that pages, scripts, scrapers and probes of a large fleet hold open at once."""

WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 (compared with, not listened on)


def listen(address: str) -> tuple[socket.socket, str]:
    """The socket that listens on `address` (host:port, port 0 picks a free one) and its URL. Unavailable if taken."""
    host, _ = split_address(address)
    try:
        server = http_server.listening_socket(address)
    except OSError as error:
        raise Unavailable(
            f"http.listen: cannot listen on {address}: {error.strerror}; stop what listens there or set another"
        ) from None
    reachable = socket.gethostname() if host in WILDCARDS else f"[{host}]" if ":" in host else host
    return server, f"http://{reachable}:{server.getsockname()[1]}"


def application(routes: Iterable[web.RouteDef], access: Access) -> web.Application:
    """The routes and those of the login, behind the guard; every error is a problem, or a page for browsers."""
    connections = Connections("http.listen", most_connections(MOST_CONNECTIONS), refusal=NO_ROOM)
    middlewares = [as_problems, as_error_pages, guard(access), with_account, only_text]
    app = http_server.application(connections, middlewares, most_body_bytes=MOST_BODY_BYTES)
    app.add_routes(routes)
    logins = Logins(access)
    app.add_routes(route.bound(SessionApi(logins)) for route in SESSION_ROUTES)
    app.add_routes(LoginPages(logins).routes())
    return app
