"""One route of the API as data: its parameters, its answers, and the method that answers it."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MethodType
from typing import Generic, TypeVar

from aiohttp import web
from pydantic import BaseModel

from muster_coordinator.web.guard import required_right
from muster_coordinator.web.requests import NoQuery, PageQuery, Request
from muster_coordinator.web.sessions import Right

JSON = "application/json"
EVENTS = "text/event-stream"
IF_NONE_MATCH = "If-None-Match"

Media = Mapping[str, type[BaseModel] | None]
"""The content of an answer, by content type; None if no model describes it."""

ERRORS_OF_EVERY_ROUTE = (
    HTTPStatus.BAD_REQUEST,  # control characters in path or query, and wrong parameters
    HTTPStatus.FORBIDDEN,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
ERRORS_OF_A_BODY = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)

A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route(Generic[A]):
    """One route, answered by a method of `A`. The docstring of the method says what it returns.

    - `name`: its name in generated clients
    - `query`: its query parameters; None if it ignores all
    - `reads`: the request headers that it reads, and what they mean
    - `answers`: a model for JSON, or the content by content type; `sends`: the headers that are in every answer
    - `errors`: the statuses of errors beside those that follow from path, query and body
    """

    name: str
    method: str
    path: str
    handler: Callable[[A, web.Request], Awaitable[web.StreamResponse]]
    query: type[Request] | None = NoQuery
    reads: Mapping[str, str] = field(default_factory=dict)
    body: type[Request] | None = None
    status: HTTPStatus = HTTPStatus.OK
    answers: type[BaseModel] | Media
    sends: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[HTTPStatus, ...] = ()

    def bound(self, api: A) -> web.RouteDef:
        """The route for aiohttp, answered by this object. Endless events have no HEAD."""
        options = {"allow_head": False} if EVENTS in self.media else {}
        return web.route(self.method, self.path, MethodType(self.handler, api), **options)

    @property
    def summary(self) -> str:
        """The route's purpose, in a sentence."""
        return " ".join(inspect.cleandoc(self.handler.__doc__ or "").split())

    @property
    def media(self) -> Media:
        """The content of the answer, by content type."""
        return self.answers if isinstance(self.answers, Mapping) else {JSON: self.answers}

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """The names of the parameters in the path, in order."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))

    @property
    def right(self) -> Right:
        """The right that a request needs."""
        return required_right(self.method, self.path)

    @property
    def may_be_unchanged(self) -> bool:
        """Whether it answers 304 to a client that has the present answer already."""
        return IF_NONE_MATCH in self.reads

    @property
    def problems(self) -> tuple[HTTPStatus, ...]:
        """The statuses of all errors, in order."""
        found = {*ERRORS_OF_EVERY_ROUTE, *self.errors}
        if self.right is not Right.PROBE:
            found.add(HTTPStatus.UNAUTHORIZED)
        if self.path_parameters:
            found.add(HTTPStatus.NOT_FOUND)
        if self.query is not None and issubclass(self.query, PageQuery):
            found.add(HTTPStatus.UNPROCESSABLE_ENTITY)  # an invalid cursor
        if self.body is not None:
            found.update(ERRORS_OF_A_BODY)
        return tuple(sorted(found))
