"""Who may use the API: the one place where that is decided, for every route there is or will be.

A request that changes something is one whose method is neither GET nor HEAD, whatever its route. It needs the token.
Where `http.token_file` is set, everything but probes needs it. Without one the API listens on loopback only: every
local user may look, and who can read the coordinator's own token (`local_token`) may change things.

A web page that a local browser shows may do neither. It can only reach the API under a name of its own, which the Host
header tells, or with a form, which cannot bear a token.
"""

import hmac
from dataclasses import dataclass
from enum import IntEnum
from http import HTTPStatus

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware
from yarl import URL

from muster.config import LOOPBACK, HttpSettings, Settings, read_secret
from muster.errors import SettingsError
from muster_coordinator import local_token
from muster_coordinator.web.problems import Problem

OPEN = frozenset({"/healthz", "/readyz"})
"""What a probe may ask without a token."""

HARMLESS = frozenset({hdrs.METH_GET, hdrs.METH_HEAD})
"""The methods that change nothing (RFC 9110, 9.2.1)."""


class Right(IntEnum):
    """What somebody may do; each includes those before it."""

    PROBE = 0
    READ = 1
    CHANGE = 2


@dataclass(frozen=True, slots=True)
class Access:
    """The token, which gives every right, the right of those without it, and how to get the token."""

    token: str
    without_token: Right
    token_is: str


def access_of(settings: Settings) -> Access:
    """Who may use the API of a coordinator with these settings; SettingsError for an empty or unreadable token.

    Unavailable when the coordinator cannot write a token of its own.
    """
    if settings.http.token_file is not None:
        return Access(read_token(settings.http), Right.PROBE, "that of http.token_file")
    is_trusted = settings.http.trust_loopback or settings.quarantine.trust_loopback
    token = local_token.write_token(settings.data_dir)
    return Access(token, Right.CHANGE if is_trusted else Right.READ, f"in {settings.data_dir / local_token.NAME}")


def read_token(settings: HttpSettings) -> str:
    """The token of `token_file`; SettingsError when it is empty or cannot be read."""
    assert settings.token_file is not None
    token = read_secret(settings.token_file, "http.token_file")
    if not token:
        raise SettingsError(f"http.token_file: {settings.token_file} is empty")
    return token


def guard(access: Access) -> Middleware:
    """Refuses requests from those who may not make them."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if access.without_token is not Right.PROBE:
            _require_local_name(request)
        if _right_for(request) > access.without_token and not _bears(request, access.token):
            raise _refusal(access)
        return await handler(request)

    return guarded


def _right_for(request: web.Request) -> Right:
    if request.method not in HARMLESS:
        return Right.CHANGE
    return Right.PROBE if request.path in OPEN else Right.READ


def _bears(request: web.Request, token: str) -> bool:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    same = hmac.compare_digest(given.strip().encode(errors="surrogateescape"), token.encode())
    return scheme.lower() == "bearer" and same


def _refusal(access: Access) -> Problem:
    if access.without_token is Right.PROBE:
        return Problem(
            HTTPStatus.UNAUTHORIZED,
            f"send the token ({access.token_is}) as `Authorization: Bearer TOKEN`",
            WWW_Authenticate='Bearer realm="muster"',
        )
    return Problem(
        HTTPStatus.FORBIDDEN,
        f"to change anything, send the token ({access.token_is}) as `Authorization: Bearer TOKEN`. The coordinator's "
        "own user needs --config or MUSTER_DATA_DIR with its data_dir, others --token-file and http.token_file",
    )


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
