"""Every error as problem details (RFC 9457), whether a route, aiohttp or a bug raised it.

Written by hand: the form is an object with three keys, and the work is in the wording.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import BaseModel, ValidationError

from muster.errors import Refused, Unavailable
from muster.explain import explain

log = structlog.get_logger()

CONTENT_TYPE = "application/problem+json"


class ProblemDetails(BaseModel):
    """An error: `detail` says what is wrong, where, and what would be right (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str


class Problem(Exception):
    """A request that gets an error: the HTTP status and a sentence for the person who sent it."""

    def __init__(self, status: HTTPStatus, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@web.middleware
async def as_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns any exception of a route into a problem; a bug is logged and returned without its details."""
    try:
        return await handler(request)
    except Problem as problem:
        return _response(problem.status, problem.detail, problem.headers)
    except Refused as refused:
        return _response(HTTPStatus.UNPROCESSABLE_ENTITY, str(refused))
    except Unavailable as unavailable:
        return _response(HTTPStatus.SERVICE_UNAVAILABLE, str(unavailable))
    except web.HTTPException as error:
        return _response(HTTPStatus(error.status), _sentence(request, error), _kept(error))
    except Exception as error:
        if not (isinstance(error, ConnectionResetError) and _has_left(request)):
            log.exception("request_failed", method=request.method, path=request.path)
        return _response(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; the coordinator's log has the details")


def _has_left(request: web.Request) -> bool:
    """Whether the client has closed the connection, or lost it."""
    return request.transport is None or request.transport.is_closing()


@contextmanager
def refusing(kind: type[BaseModel], *, what: str, status: HTTPStatus) -> Iterator[None]:
    """Raises a Problem if values are not valid as `kind`. It names each wrong `what`, and the valid ones."""
    try:
        yield
    except ValidationError as error:
        raise Problem(status, "; ".join(explain(kind, error, what=what))) from None


def _response(status: HTTPStatus, detail: str, headers: dict[str, str] | None = None) -> web.Response:
    body = ProblemDetails(type="about:blank", title=status.phrase, status=status.value, detail=detail)
    return web.Response(status=status, text=json.dumps(dict(body)), content_type=CONTENT_TYPE, headers=headers or {})


def _sentence(request: web.Request, error: web.HTTPException) -> str:
    match error:
        case web.HTTPNotFound():
            return f"no such path: {request.path}"
        case web.HTTPMethodNotAllowed():
            return f"{request.method} is not allowed here; use {', '.join(sorted(error.allowed_methods))}"
        case _:
            return error.reason


def _kept(error: web.HTTPException) -> dict[str, str]:
    return {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
