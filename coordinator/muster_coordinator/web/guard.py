"""Decides who may use the API, for every route in one place.

A request needs the right to CHANGE if its method is neither GET nor HEAD, on any route but the login, that which plans
a sweep and changes nothing, and that which takes acceptance reports: nodes and jobs send these, and must not have a
token that can do more. Who has sent a request is found out in this order:

1. A token in `Authorization`: that of `http.token_file` may CHANGE, that of `http.report_token_file` may REPORT, and
   that of `http.read_token_file` may READ.
2. A user who has logged in at one of `http.trusted_proxies`.
3. The session in the cookie, which a token has opened.

A browser sends 2 and 3 by itself, also for the pages of others. So such a request changes something only if it comes
from a page of the same origin, and so does every form.

With `http.token_file` every other request may only reach probes and the login. Without it the API listens on loopback
only: every local user may READ, and a user who can read the coordinator's own token (`local_token`) may CHANGE. A web
page in a local browser may do neither. It reaches the API only under its own host name, which the Host header shows, or
with a form, which cannot send a token.

| request | `http.token_file` set | not set | not set, `http.trust_loopback` |
|---|---|---|---|
| GET /healthz, /readyz, /static/; login and logout | free | free | free |
| other GET, HEAD; the plan of a sweep | any of the three | free | free |
| POST /api/v1/acceptance | any of the three, if it may REPORT | own token or its session | free |
| any other method | any of the three, if it may CHANGE | own token or its session | free |
"""

import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware
from yarl import URL

from muster import local_token
from muster.addresses import LOOPBACK
from muster.config import HttpSettings, Settings
from muster.errors import SettingsError
from muster.secret_file import read_secret
from muster.terminal import in_one_line
from muster_coordinator.model.audit import Credential, Requester
from muster_coordinator.web.problems import Problem
from muster_coordinator.web.proxies import NO_PROXIES, TrustedProxies
from muster_coordinator.web.requests import FORM
from muster_coordinator.web.same_origin import is_same_origin
from muster_coordinator.web.sessions import COOKIE, Right, Session, Sessions

PROBES = frozenset({"/healthz", "/readyz"})
"""The paths of probes, which need no token."""

LOGIN = "/api/v1/session"
"""The path of the session. Logging in and out needs no token."""

_TOKEN_FILES = ("token_file", "read_token_file", "report_token_file")

API = "/api/"

LOGIN_PAGE, LOGOUT_PAGE = "/login", "/logout"
"""The same for people. The page shows its form to everybody."""

LOGINS = frozenset({LOGIN, LOGIN_PAGE, LOGOUT_PAGE})

STATIC = "/static/"
"""The style sheets and scripts that the page of the login needs, too. They are the same in every fleet."""

PLANS = frozenset({"/api/v1/sweeps/plan", "/sweeps/plan"})
"""Paths that take a body and change nothing: they say what a sweep would cost."""

ACCEPTANCE = "/api/v1/acceptance"
"""Takes acceptance reports."""

HARMLESS = frozenset({hdrs.METH_GET, hdrs.METH_HEAD})
"""The methods that change nothing (RFC 9110, 9.2.1)."""

FROM_BROWSERS = frozenset({Credential.SESSION, Credential.PROXY})
"""What a browser sends by itself, also for the pages of others."""

MOST_BYTES_OF_STRANGERS = 16 << 10
"""The largest body without a token or session. A login is much smaller, and hundreds may come at the same time."""

MOST_FORWARDED = 200
"""Characters of `X-Forwarded-For` that are recorded."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who has sent a request: what they may do, their name if they have logged in under one, and their session."""

    right: Right
    credential: Credential = Credential.NONE
    name: str | None = None
    session: Session | None = None


CALLER = web.RequestKey("caller", Caller)
"""Who has sent the request, for its route."""


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of requests: `token` gives every right, `read_token` lets read, and without one is `without_token`.

    `token_place` tells people where the token is, after the words "the token".
    """

    token: str
    without_token: Right
    token_place: str
    read_token: str | None = None
    report_token: str | None = None
    proxies: TrustedProxies = NO_PROXIES
    sessions: Sessions = field(default_factory=Sessions, compare=False)

    @property
    def is_on_loopback(self) -> bool:
        """Whether requests without the token may read. The settings then allow only loopback for the API."""
        return self.without_token is not Right.PROBE

    def right_of(self, token: str) -> Right | None:
        """The right that a token gives; None for a wrong one. The time that it takes tells nothing about the token."""
        given = (Right.CHANGE, self.token), (Right.REPORT, self.report_token), (Right.READ, self.read_token)
        rights = [right for right, known in given if _is_same(token, known or self.token) and known is not None]
        return max(rights, default=None)

    def caller(self, request: web.Request, now: float) -> Caller:
        """Who has sent the request. Raises a Problem for headers of a trusted proxy that make no sense."""
        scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        right = self.right_of(given.strip()) if scheme.lower() == "bearer" else None
        if right is not None:
            return Caller(max(right, self.without_token), Credential.TOKEN)
        if (user := self.proxies.user(request)) is not None:
            return Caller(user[1], Credential.PROXY, user[0])
        session = self.sessions.find(request.cookies.get(COOKIE, ""), now)
        if session is not None:
            return Caller(max(session.right, self.without_token), Credential.SESSION, session.name, session)
        return Caller(self.without_token)


def access_of(settings: Settings) -> Access:
    """The rights with these settings. Without `http.token_file` this writes a new token into `data_dir`.

    Raises SettingsError if a file with a token is empty or cannot be read, Unavailable if the new token cannot be
    written.
    """
    http = settings.http
    if http.token_file is not None:
        tokens = {name: _token_in(http, name) for name in _TOKEN_FILES if getattr(http, name) is not None}
        _require_different(tokens)
        others = tokens.get("read_token_file"), tokens.get("report_token_file")
        proxies = TrustedProxies.of(http.trusted_proxies)
        return Access(tokens["token_file"], Right.PROBE, "of http.token_file", *others, proxies)
    is_trusted = http.trust_loopback or settings.quarantine.trust_loopback
    token = local_token.write_token(settings.data_dir)
    return Access(token, Right.CHANGE if is_trusted else Right.READ, f"in {settings.data_dir / local_token.NAME}")


def _require_different(tokens: Mapping[str, str]) -> None:
    seen: dict[str, str] = {}
    for name, token in tokens.items():
        if (other := seen.setdefault(token, name)) != name:
            raise SettingsError(f"http.{name}: has the same token as http.{other}; write another into it")


def _token_in(http: HttpSettings, setting: str) -> str:
    path = getattr(http, setting)
    token = read_secret(path, f"http.{setting}")
    if not token:
        raise SettingsError(f"http.{setting}: {path} is empty; write a token into it")
    return token


def guard(access: Access) -> Middleware:
    """Refuses requests that do not have the right they need."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if access.is_on_loopback:
            _require_local_name(request)
        caller = request[CALLER] = access.caller(request, time.time())
        needed = required_right(request.method, request.path)
        if caller.right < needed:
            raise _refusal(access, caller)
        if request.method not in HARMLESS:
            _require_same_origin(request, access, caller)
        if caller.right is Right.PROBE:
            request = request.clone(client_max_size=MOST_BYTES_OF_STRANGERS)
        return await handler(request)

    return guarded


def required_right(method: str, path: str) -> Right:
    """The right that a request with this method needs for this path."""
    if path == LOGIN_PAGE or path.startswith(STATIC) or (path in LOGINS and method not in HARMLESS):
        return Right.PROBE
    if method not in HARMLESS and path not in PLANS:
        return Right.REPORT if path == ACCEPTANCE else Right.CHANGE
    return Right.PROBE if path in PROBES else Right.READ


def requester(request: web.Request, claimed: str | None = None) -> Requester:
    """Who has sent the request, by the name under which they have logged in, or else by what they say themselves.

    Everybody may have the token, so it is nobody's in particular.
    """
    caller, forwarded = request[CALLER], request.headers.get(hdrs.X_FORWARDED_FOR)
    return Requester(
        name=caller.name or claimed or "",
        credential=caller.credential,
        address=request.remote,
        forwarded_for=forwarded and in_one_line(forwarded)[:MOST_FORWARDED],
    )


def named_requester(request: web.Request, claimed: str | None) -> Requester:
    """The same, for a change that must have an author. Raises a Problem without a name."""
    if not (who := requester(request, claimed)).name:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "field 'by': must be given, unless you log in under a name")
    return who


def _is_same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogateescape"), token.encode())


def _refusal(access: Access, caller: Caller) -> Problem:
    how = f"send the token {access.token_place} as `Authorization: Bearer TOKEN`"
    if caller.right is Right.PROBE:
        return Problem(HTTPStatus.UNAUTHORIZED, f"{how}, or log in", WWW_Authenticate='Bearer realm="muster"')
    if not access.is_on_loopback:
        return Problem(HTTPStatus.FORBIDDEN, f"you may read and not change anything; to change something, {how}")
    return Problem(
        HTTPStatus.FORBIDDEN,
        f"to change anything, {how}; `muster` finds it when it runs as the coordinator's user with the same data_dir "
        "(--config or MUSTER_DATA_DIR); for other users set http.token_file and give them --token-file",
    )


def _require_same_origin(request: web.Request, access: Access, caller: Caller) -> None:
    """Raises a Problem if another page may have made the browser send this request, which would change something."""
    if caller.credential is Credential.TOKEN:  # no browser sends that by itself
        return
    proxies = access.proxies
    is_same = is_same_origin(request.headers, proxies.host(request), is_encrypted=proxies.is_encrypted(request))
    is_form = request.content_type == FORM and not request.path.startswith(API)
    is_from_browser = is_form or caller.credential in FROM_BROWSERS
    if is_same is False or (is_same is None and is_from_browser):
        raise Problem(
            HTTPStatus.FORBIDDEN,
            f"the request comes from a page of another origin than {proxies.host(request)!r}, or does not say where "
            "from; programs send a token as `Authorization: Bearer TOKEN`, and a proxy must keep the Host header",
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
