"""Errors as pages, for browsers: what is wrong, and how to come in where a token is needed."""

from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler

from muster.errors import Refused, Unavailable
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
        headers = error.headers if isinstance(error, Problem) else {}
        html = render(
            "error",
            root=root_of(request),
            title=status.phrase,
            detail=detail,
            # The style sheet, too, needs the token.
            is_locked_out=status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN),
            needs_token=status is HTTPStatus.UNAUTHORIZED,
        )
        return page_response(html, status, **headers)


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
