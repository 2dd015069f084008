"""Who looks at a page: the part of its header that says so, and what the page lets them do.

Pages of the whole fleet are made once for everybody, so this part is put in afterwards.
"""

from dataclasses import dataclass
from urllib.parse import quote

from aiohttp import web
from aiohttp.typedefs import Handler

from muster_coordinator.model.audit import Credential
from muster_coordinator.web.guard import CALLER, LOGIN_PAGE, Caller
from muster_coordinator.web.login import role_of
from muster_coordinator.web.pages.response import HTML, root_of
from muster_coordinator.web.pages.templates import render
from muster_coordinator.web.sessions import Right

SLOT = b"<!-- account -->"
"""Where the part stands in the frame of pages. No text of a node can contain it: it would be escaped."""


@dataclass(frozen=True, slots=True)
class Operator:
    """What a page offers: forms that change something (`may_change`), with a field for a name if that is not known."""

    may_change: bool
    needs_name: bool

    @classmethod
    def of(cls, request: web.Request) -> "Operator":
        """What the page for this request offers."""
        caller = request[CALLER]
        return cls(caller.right is Right.CHANGE, caller.name is None)


@web.middleware
async def with_account(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Adds to a page who looks at it, with a way to log in or out."""
    response = await handler(request)
    if isinstance(response, web.Response) and response.content_type == HTML and isinstance(response.body, bytes):
        response.body = response.body.replace(SLOT, _account(request).encode(), 1)
    return response


def _account(request: web.Request) -> str:
    caller = request[CALLER]
    role = "" if caller.right is Right.PROBE else role_of(caller.right)
    return render("account", root=root_of(request), caller=caller, role=role, login=_login(request, caller))


def _login(request: web.Request, caller: Caller) -> str | None:
    """The way to the form with which a reader can become an operator, below `/`; None for those who need none."""
    is_logged_in = caller.credential is not Credential.NONE
    return None if is_logged_in or caller.right is Right.CHANGE or request.path == LOGIN_PAGE else login_path(request)


def login_path(request: web.Request) -> str:
    """The path of the login, below `/`, after which the browser comes back to the page of this request."""
    return f"{LOGIN_PAGE[1:]}?next={quote(str(request.rel_url).removeprefix('/'), safe='')}"
