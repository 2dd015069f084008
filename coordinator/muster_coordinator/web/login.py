"""Routes with which a browser logs in and out: they exchange a token for the cookie of a session."""

import time
from dataclasses import dataclass, field
from http import HTTPStatus

import structlog
from aiohttp import web

from muster.log_limit import LogLimit
from muster.model import Data, Instant
from muster_coordinator.web.answers import Working, answer
from muster_coordinator.web.guard import CALLER, Access, Caller, CallerProof
from muster_coordinator.web.problems import Problem
from muster_coordinator.web.proxies import ROLES
from muster_coordinator.web.requests import NewSession, NoQuery, body, query
from muster_coordinator.web.sessions import COOKIE, LASTS_S, Right

log = structlog.get_logger()


class SessionView(Data):
    """Who has sent the request, and what they may do: `role` is `read` or `operate`.

    `name` is null if they have not logged in under one. `expires_at` is when their session ends, if they have one.
    """

    name: str | None
    role: str
    expires_at: Instant | None


@dataclass(frozen=True, slots=True)
class SessionApi:
    """What the routes need to know."""

    access: Access
    log_limit: LogLimit = field(default_factory=LogLimit)

    async def log_in(self, request: web.Request) -> web.Response:
        """Opens a session for a browser: exchanges a token for a cookie that scripts cannot read.

        `name` is recorded with everything that the session changes.
        """
        query(request, NoQuery)
        wanted = await body(request, NewSession)
        right = self.access.right_of(wanted.token.get_secret_value())
        if right is None:
            if (left_out := self.log_limit.admit("login_refused", time.monotonic())) is not None:
                log.warning("login_refused", address=request.remote, left_out=left_out)
            raise Problem(
                HTTPStatus.UNAUTHORIZED,
                f"the token is wrong; use the one {self.access.token_place}",
                WWW_Authenticate='Bearer realm="muster"',
            )
        self.access.sessions.close(request.cookies.get(COOKIE, ""))  # the new cookie replaces its cookie
        cookie, session = self.access.sessions.open(right, wanted.name, time.time())
        log.info("logged_in", name=wanted.name, role=_role(right), address=request.remote)
        caller = Caller(right, CallerProof.BROWSER, session.name, session.expires_at)
        response = answer(_view(caller), HTTPStatus.CREATED)
        response.set_cookie(
            COOKIE,
            cookie,
            max_age=int(LASTS_S),
            path="/",
            httponly=True,
            samesite="Strict",
            secure=self.access.proxies.is_encrypted(request),
        )
        return response

    async def session(self, request: web.Request) -> web.Response:
        """Who has sent the request, and what they may do."""
        query(request, NoQuery)
        return answer(_view(request[CALLER]))

    async def log_out(self, request: web.Request) -> web.Response:
        """Ends the session, if there is one."""
        query(request, NoQuery)
        self.access.sessions.close(request.cookies.get(COOKIE, ""))
        response = answer(Working())
        response.del_cookie(COOKIE, path="/", httponly=True, samesite="Strict")
        return response


def _view(caller: Caller) -> SessionView:
    return SessionView(name=caller.name, role=_role(caller.right), expires_at=caller.expires_at)


def _role(right: Right) -> str:
    return next(role for role, given in ROLES.items() if given is right)
