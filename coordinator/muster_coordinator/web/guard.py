"""Decides who may use the API, for every route in one place.

A request needs the right to CHANGE if its method is neither GET nor HEAD, on any route. The token gives that right.
With `http.token_file` every request except probes needs the token. Without it the API listens on loopback only: every
local user may READ, and a user who can read the coordinator's own token (`local_token`) may CHANGE.

A web page in a local browser may do neither. It reaches the API only under its own host name, which the Host header
shows, or with a form, which cannot send a token.

| request | `http.token_file` set | not set | not set, `http.trust_loopback` |
|---|---|---|---|
| GET /healthz, /readyz | free | free | free |
| other GET, HEAD | token | free | free |
| any other method | token | own token | free |
"""

import hmac
from dataclasses import dataclass
from enum import IntEnum
from http import HTTPStatus

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware
from yarl import URL

from muster.addresses import LOOPBACK
from muster.config import HttpSettings, Settings
from muster.errors import SettingsError
from muster.secret_file import read_secret
from muster_coordinator.web import local_token
from muster_coordinator.web.problems import Problem

OPEN = frozenset({"/healthz", "/readyz"})
"""The paths of probes, which need no token."""

HARMLESS = frozenset({hdrs.METH_GET, hdrs.METH_HEAD})
"""The methods that change nothing (RFC 9110, 9.2.1)."""


class Right(IntEnum):
    """What a request may do. Each right includes the ones before it."""

    PROBE = 0
    READ = 1
    CHANGE = 2


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of requests: `token` gives every right, a request without it has `without_token`.

    `token_place` tells people where the token is, after the words "the token".
    """

    token: str
    without_token: Right
    token_place: str

    @property
    def is_on_loopback(self) -> bool:
        """Whether requests without the token may read. The settings then allow only loopback for the API."""
        return self.without_token is not Right.PROBE


def access_of(settings: Settings) -> Access:
    """The rights with these settings. Without `http.token_file` this writes a new token into `data_dir`.

    Raises SettingsError if `http.token_file` is empty or cannot be read, Unavailable if the new token cannot be
    written.
    """
    if settings.http.token_file is not None:
        return Access(read_token(settings.http), Right.PROBE, "of http.token_file")
    is_trusted = settings.http.trust_loopback or settings.quarantine.trust_loopback
    token = local_token.write_token(settings.data_dir)
    return Access(token, Right.CHANGE if is_trusted else Right.READ, f"in {settings.data_dir / local_token.NAME}")


def read_token(settings: HttpSettings) -> str:
    """The token in `token_file`. Raises SettingsError if the file is empty or cannot be read."""
    assert settings.token_file is not None
    token = read_secret(settings.token_file, "http.token_file")
    if not token:
        raise SettingsError(f"http.token_file: {settings.token_file} is empty; write a token into it")
    return token


def guard(access: Access) -> Middleware:
    """Refuses requests that do not have the right they need."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if access.is_on_loopback:
            _require_local_name(request)
        if required_right(request.method, request.path) > access.without_token and not _bears(request, access.token):
            raise _refusal(access)
        return await handler(request)

    return guarded


def required_right(method: str, path: str) -> Right:
    """The right that a request with this method needs for this path."""
    if method not in HARMLESS:
        return Right.CHANGE
    return Right.PROBE if path in OPEN else Right.READ


def _bears(request: web.Request, token: str) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    same = hmac.compare_digest(given.strip().encode(errors="surrogateescape"), token.encode())
    return scheme.lower() == "bearer" and same


def _refusal(access: Access) -> Problem:
    how = f"send the token {access.token_place} as `Authorization: Bearer TOKEN`"
    if not access.is_on_loopback:
        return Problem(HTTPStatus.UNAUTHORIZED, how, WWW_Authenticate='Bearer realm="muster"')
    return Problem(
        HTTPStatus.FORBIDDEN,
        f"to change anything, {how}; `muster` finds it when it runs as the coordinator's user with the same data_dir "
        "(--config or MUSTER_DATA_DIR); for other users set http.token_file and give them --token-file",
    )


def _require_local_name(request: web.Request) -> None:
    try:
        host = URL(f"http://{request.host}").host
    except ValueError:
        host = None
    if host not in LOOPBACK:
        raise Problem(
            HTTPStatus.FORBIDDEN,
            f"Host {request.host!r} is not the loopback of this host; use 127.0.0.1, or set http.token_file to use "
            "other names",
        )
