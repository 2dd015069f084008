"""Who may use the API.

With a token, whoever bears it. Without one the API listens on loopback only and takes every local user, but no web page
that a local browser shows: such a page can only reach it under a name of its own (refused by the Host header) or with
a form (refused because bodies must be JSON, which a page may not send elsewhere without being allowed to).
"""

import hmac
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from yarl import URL

from muster.config import LOOPBACK, HttpSettings, read_secret
from muster.errors import SettingsError
from muster_coordinator.web.problems import Problem

OPEN = frozenset({"/healthz", "/readyz"})
"""What a probe may ask without a token."""


def read_token(settings: HttpSettings) -> str | None:
    """The token, None without one (the settings then hold the API to loopback); SettingsError when it is empty."""
    if settings.token_file is None:
        return None
    token = read_secret(settings.token_file, "http.token_file")
    if not token:
        raise SettingsError(f"http.token_file: {settings.token_file} is empty")
    return token


def guard(token: str | None) -> Middleware:
    """Refuses requests from those who may not use the API."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if token is None:
            _require_local_name(request)
        elif request.path not in OPEN:
            _require_token(request, token)
        return await handler(request)

    return guarded


def _require_local_name(request: web.Request) -> None:
    try:
        host = URL(f"http://{request.host}").host
    except ValueError:
        host = None
    if host not in LOOPBACK:
        raise Problem(
            HTTPStatus.FORBIDDEN,
            f"{request.host!r} is not a name of this machine's loopback; set http.token_file to use other names",
        )


def _require_token(request: web.Request, token: str) -> None:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
        raise Problem(
            HTTPStatus.UNAUTHORIZED,
            "send the token of http.token_file as `Authorization: Bearer TOKEN`",
            WWW_Authenticate='Bearer realm="muster"',
        )
