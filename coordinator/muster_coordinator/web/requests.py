"""What may stand in queries and bodies. Anything else is refused, with what is valid."""

import asyncio
from http import HTTPStatus
from typing import Annotated, TypeVar

import pydantic_core
from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic import Json as JsonText

from muster.model import Instant, Json, Name, PlainJson, Verdict
from muster.references import Reference, ReferenceRow, key_of
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.store.history import HistoryFilter
from muster_coordinator.store.store import RunFilter
from muster_coordinator.views.sweeps.exports import Format
from muster_coordinator.web.problems import Problem, validated

MAX_ITEMS = 1_000

BODY_S = 15.0
"""A body of 1 MiB takes 14 s over 600 kbit/s."""


CURSOR = "cursor"


class Request(BaseModel):
    """Base of queries and bodies: unknown names are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NoQuery(Request):
    """For routes that take no query parameters."""


class PageQuery(Request):
    """Which page of a list."""

    limit: int = Field(100, ge=1, le=MAX_ITEMS)
    cursor: str | None = None


class NodesQuery(PageQuery):
    """Which nodes: `select` is a selection as sweeps have them, for example `health=FAILED rack=r1`."""

    select: str | None = Field(None, max_length=10_000)


class RunQuery(PageQuery):
    """Which runs. `since` is ISO 8601 with a time zone."""

    node: Name | None = None
    check: Name | None = None
    verdict: Verdict | None = None
    since: Instant | None = None

    def filter(self) -> RunFilter:
        return RunFilter(node=self.node, check=self.check, verdict=self.verdict, since=self.since)


class HistoryQuery(PageQuery):
    """Which history. Times are ISO 8601 with a time zone; `until` is not included."""

    metric: str = Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")  # PostgreSQL takes no NUL
    check: Name | None = None
    device: int | None = Field(None, ge=0, lt=1 << 31)
    since: Instant | None = None
    until: Instant | None = None

    def filter(self, node: str) -> HistoryFilter:
        return HistoryFilter(
            node=node, metric=self.metric, check=self.check, device=self.device, since=self.since, until=self.until
        )


class NewRun(Request):
    """The body of POST /nodes/{node}/runs."""

    check: Name
    params: PlainJson = {}


class NewSweep(SweepRequest, Request):
    """The body of POST /sweeps."""


class TransitionQuery(PageQuery):
    """Which transitions."""

    node: Name | None = None


def _in_one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be one line of text, without control characters")
    return text


Said = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), AfterValidator(_in_one_line)
]
"""One line of text with something to read."""


class Decision(Request):
    """Who decides, and why."""

    by: Said
    reason: Said


class Release(Decision):
    """The body of POST /nodes/{node}/release."""

    untested: bool = False


class ExplainQuery(Request):
    """Which node of a sweep is to be explained."""

    node: Name


class ExportQuery(Request):
    """In which form a sweep is wanted."""

    format: Format


class NewReference(ReferenceRow, Request):
    """The body of PUT /references: a reference without its origin, which is the operator."""

    def reference(self) -> Reference:
        return Reference(**dict(self))


class ReferenceQuery(Request):
    """Which reference of the operator's; `when` holds its conditions as JSON."""

    check: Name
    metric: str
    when: JsonText[Json] = {}

    @property
    def key(self) -> str:
        return key_of(self.check, self.metric, self.when)


R = TypeVar("R", bound=Request)


@web.middleware
async def only_text(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses control characters and unpaired surrogates in path and query, which no database stores.

    `read_cursor` refuses bad cursors itself, with a better message.
    """
    given = [("the path", request.path)]
    given += [(f"query parameter {name!r}", name + value) for name, value in request.query.items() if name != CURSOR]
    for what, text in given:
        if not text.isprintable():
            raise Problem(HTTPStatus.BAD_REQUEST, f"{what}: contains control characters; use printable text")
    return await handler(request)


def query(request: web.Request, kind: type[R]) -> R:
    """The query parameters as `kind`; a Problem when they are not valid."""
    given = request.query
    for name in given:
        if len(given.getall(name)) > 1:
            raise Problem(HTTPStatus.BAD_REQUEST, f"query parameter {name!r} is given more than once")
    return validated(kind, dict(given), what="query parameter", status=HTTPStatus.BAD_REQUEST)


async def body(request: web.Request, kind: type[R]) -> R:
    """The JSON body as `kind`; a Problem when it is not JSON or not valid."""
    if request.content_type != "application/json":
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send a JSON body with Content-Type: application/json")
    try:
        async with asyncio.timeout(BODY_S):
            given = await request.read()
        values = pydantic_core.from_json(given, allow_inf_nan=False)
    except TimeoutError:
        raise Problem(
            HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {BODY_S:g} s; send the request again"
        ) from None
    except web.RequestPayloadError:
        raise Problem(HTTPStatus.BAD_REQUEST, "the body is not compressed as its Content-Encoding says") from None
    except ValueError as error:
        raise Problem(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise Problem(HTTPStatus.BAD_REQUEST, "the body must be a JSON object")
    return validated(kind, values, what="field", status=HTTPStatus.UNPROCESSABLE_ENTITY)
