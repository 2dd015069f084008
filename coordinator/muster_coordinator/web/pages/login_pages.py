"""The form with which people log in, and the way out."""

from http import HTTPStatus
from typing import Annotated

from aiohttp import hdrs, web
from pydantic import Field

from muster_coordinator.web.guard import LOGIN_PAGE, LOGOUT_PAGE
from muster_coordinator.web.login import Logins
from muster_coordinator.web.pages.response import ROOT, page_response
from muster_coordinator.web.pages.templates import render
from muster_coordinator.web.problems import Problem
from muster_coordinator.web.requests import NewSession, NoQuery, Request, form, query

NextPage = Annotated[str, Field(max_length=4_000, pattern=r"^[!-~]*$")]
"""The page to come back to: its path and query below `/`, as they stand in URLs."""


class LoginQuery(Request):
    """The page to come back to."""

    next: NextPage = ""


class LoginForm(NewSession):
    """What the form sends."""

    next: NextPage = ""


class LoginPages:
    """The pages. `logins` opens and closes the sessions."""

    def __init__(self, logins: Logins) -> None:
        self._logins = logins

    def routes(self) -> list[web.RouteDef]:
        """The routes."""
        return [
            web.get(LOGIN_PAGE, self.login),
            web.post(LOGIN_PAGE, self.log_in),
            web.post(LOGOUT_PAGE, self.log_out),
        ]

    async def login(self, request: web.Request) -> web.Response:
        """The form."""
        return self._form(query(request, LoginQuery).next)

    async def log_in(self, request: web.Request) -> web.StreamResponse:
        """Opens a session and leads back to where the user came from; explains at the form what is wrong."""
        query(request, NoQuery)
        said = await form(request, LoginForm)
        try:
            login = self._logins.open(request, said)
        except Problem as problem:
            return self._form(said.next, said.name or "", problem)
        response = see_other(ROOT + said.next)
        self._logins.remember(request, response, login)
        return response

    async def log_out(self, request: web.Request) -> web.StreamResponse:
        """Ends the session and shows the form."""
        query(request, NoQuery)
        response = see_other(ROOT + LOGIN_PAGE[1:])
        self._logins.close(request, response)
        return response

    def _form(self, next: str, name: str = "", problem: Problem | None = None) -> web.Response:
        html = render(
            "login",
            root=ROOT,
            next=next,
            name=name,
            refused="" if problem is None else problem.detail,
            place=self._logins.access.token_place,
        )
        headers = {} if problem is None else problem.headers
        return page_response(html, HTTPStatus.OK if problem is None else problem.status, **headers)


def see_other(location: str) -> web.Response:
    """Leads the browser to a page after a form. `location` begins with `./` or `../`: it cannot leave our pages."""
    return web.Response(status=HTTPStatus.SEE_OTHER, headers={hdrs.LOCATION: location, hdrs.CACHE_CONTROL: "no-store"})
