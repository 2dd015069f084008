"""Errors as pages, for browsers: what is wrong. Those who must log in first are led to the form."""

from http import HTTPStatus

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from muster.errors import Refused, Unavailable
from muster_coordinator.web.pages.account import login_path
from muster_coordinator.web.pages.login_pages import see_other
from muster_coordinator.web.pages.response import accepts_pages, page_response, root_of
from muster_coordinator.web.pages.templates import render
from muster_coordinator.web.problems import Problem

_API = "/api/"


@web.middleware
async def as_error_pages(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers a browser with a page if a route raises an error that a person can mend; passes on everything else."""
    try:
        return await handler(request)
    except (Problem, Refused, Unavailable, web.HTTPNotFound) as error:
        if not accepts_pages(request) or request.path.startswith(_API):
            raise
        status, detail = _described(request, error)
        if status is HTTPStatus.UNAUTHORIZED and request.method == hdrs.METH_GET:
            return see_other(root_of(request) + login_path(request))
        headers = error.headers if isinstance(error, Problem) else {}
        html = render(
            "error",
            root=root_of(request),
            title=status.phrase,
            detail=detail,
            form_path=_form_path(request),
            is_logged_out=status is HTTPStatus.UNAUTHORIZED,
        )
        return page_response(html, status, **headers)


def _form_path(request: web.Request) -> str:
    """The page with the form that was sent, below `/`; empty if none was. The forms of a page are sent below it."""
    return request.rel_url.raw_path.strip("/").rpartition("/")[0] if request.method == hdrs.METH_POST else ""


def _described(
    request: web.Request, error: Problem | Refused | Unavailable | web.HTTPNotFound
) -> tuple[HTTPStatus, str]:
    match error:
        case Problem():
            return error.status, error.detail
        case Refused():
            return HTTPStatus.UNPROCESSABLE_ENTITY, str(error)
        case Unavailable():
            return HTTPStatus.SERVICE_UNAVAILABLE, str(error)
        case _:
            return HTTPStatus.NOT_FOUND, f"no such page: {request.path}"
