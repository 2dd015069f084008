"""Logging in and out with a browser: a token is exchanged for the cookie of a session."""

import time
from dataclasses import dataclass, field
from http import HTTPStatus

import structlog
from aiohttp import web

from muster.log_limit import LogLimit
from muster.model import Data, Instant
from muster_coordinator.model.audit import Credential
from muster_coordinator.web.answers import Working, answer
from muster_coordinator.web.guard import CALLER, Access, Caller
from muster_coordinator.web.problems import Problem
from muster_coordinator.web.requests import NewSession, NoQuery, body, query
from muster_coordinator.web.sessions import COOKIE, LASTS_S, Right
from muster_coordinator.web.wrong_logins import WrongLogins

log = structlog.get_logger()


class SessionView(Data):
    """Who has sent the request, and what they may do: `role` is `read`, `report` or `operate`.

    `name` is null if they have not logged in under one. `expires_at` is when their session ends, if they have one.
    """

    name: str | None
    role: str
    expires_at: Instant | None


@dataclass(frozen=True, slots=True)
class NewLogin:
    """A session that was opened, and the secret for its cookie."""

    caller: Caller
    cookie: str


@dataclass(frozen=True, slots=True)
class Logins:
    """Opens and closes sessions."""

    access: Access
    wrong: WrongLogins = field(default_factory=WrongLogins)
    log_limit: LogLimit = field(default_factory=LogLimit)

    def open(self, request: web.Request, wanted: NewSession) -> NewLogin:
        """A session for the token of a request. Raises a Problem if the token is wrong.

        A right token counts even after too many wrong ones: they may come from others behind the same proxy.
        """
        address, now = request.remote or "", time.time()
        right = self.access.right_of(wanted.token.get_secret_value())
        if right is None:
            raise self._refusal(address, now)
        self.access.sessions.close(request.cookies.get(COOKIE, ""))  # the new cookie replaces its cookie
        cookie, session = self.access.sessions.open(right, wanted.name, now)
        log.info("logged_in", name=wanted.name, role=role_of(right), address=address)
        return NewLogin(Caller(right, Credential.SESSION, session.name, session), cookie)

    def _refusal(self, address: str, now: float) -> Problem:
        """The answer to a wrong token, which is noted, or to one too many."""
        if wait_s := self.wrong.wait_s(address, now):
            detail = f"too many wrong tokens from {address}; try again in {wait_s} s"
            return Problem(HTTPStatus.TOO_MANY_REQUESTS, detail, Retry_After=str(wait_s))
        self.wrong.note(address, now)
        if (left_out := self.log_limit.admit("login_refused", time.monotonic())) is not None:
            log.warning("login_refused", address=address, left_out=left_out)
        return Problem(
            HTTPStatus.UNAUTHORIZED,
            f"the token is wrong; use the one {self.access.token_place}",
            WWW_Authenticate='Bearer realm="muster"',
        )

    def remember(self, request: web.Request, response: web.Response, login: NewLogin) -> None:
        """Gives the browser the cookie of the session. Scripts cannot read it, and other pages cannot use it."""
        response.set_cookie(
            COOKIE,
            login.cookie,
            max_age=int(LASTS_S),
            path="/",
            httponly=True,
            samesite="Strict",
            secure=self.access.proxies.is_encrypted(request),
        )

    def close(self, request: web.Request, response: web.Response) -> None:
        """Ends the session of a request, if there is one, and the streams of events that it has opened."""
        self.access.sessions.close(request.cookies.get(COOKIE, ""))
        response.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict")


@dataclass(frozen=True, slots=True)
class SessionApi:
    """What the routes need to know."""

    logins: Logins

    async def log_in(self, request: web.Request) -> web.Response:
        """Opens a session for a browser: exchanges a token for a cookie that scripts cannot read.

        `name` is recorded with everything that the session changes.
        """
        query(request, NoQuery)
        login = self.logins.open(request, await body(request, NewSession))
        response = answer(_view(login.caller), HTTPStatus.CREATED)
        self.logins.remember(request, response, login)
        return response

    async def session(self, request: web.Request) -> web.Response:
        """Who has sent the request, and what they may do."""
        query(request, NoQuery)
        return answer(_view(request[CALLER]))

    async def log_out(self, request: web.Request) -> web.Response:
        """Ends the session, if there is one."""
        query(request, NoQuery)
        response = answer(Working())
        self.logins.close(request, response)
        return response


def _view(caller: Caller) -> SessionView:
    expires_at = None if caller.session is None else caller.session.expires_at
    return SessionView(name=caller.name, role=role_of(caller.right), expires_at=expires_at)


def role_of(right: Right) -> str:
    """The name of the role that has this right."""
    return {Right.READ: "read", Right.REPORT: "report", Right.CHANGE: "operate"}[right]
