"""The models of queries and bodies. Anything else is refused with the valid names and values."""

import asyncio
from http import HTTPStatus
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

import pydantic_core
from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, SecretStr, StringConstraints
from pydantic import Json as JsonText

from muster.http_server import CONNECTIONS
from muster.model import Instant, Json, Name, PlainJson, Verdict
from muster.references import Reference, ReferenceRow, key_of
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.store.history import HistoryFilter
from muster_coordinator.store.runs_view import RunFilter
from muster_coordinator.views.node_order import NAME
from muster_coordinator.views.sweeps.export_format import ExportFormat
from muster_coordinator.web.problems import Problem, refusing

MAX_ITEMS = 1_000

BODY_S = 14.0
"""A body of 1 MiB takes as long over 600 kbit/s. Less than `connections.WAIT_S`: so a slow client gets an answer."""


FORM = "application/x-www-form-urlencoded"

MOST_FIELDS = 50

CURSOR = "cursor"

MOST_SELECTION = 500
"""Maximum length in characters. A request line holds 8192 bytes, and a character takes up to twelve of them."""


SELECT = "Nodes that fit, in the terms that sweeps take: `health=FAILED rack=r1`"

MOST_KEY = 330
"""Maximum length of `label:` with the name of a label, which Kubernetes limits to 317 characters."""


class Request(BaseModel):
    """Base of queries and bodies: unknown names are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def example(**values: JsonValue) -> ConfigDict:
    """An example of the body for the OpenAPI document."""
    return ConfigDict(json_schema_extra={"examples": [values]})


class NoQuery(Request):
    """For routes that take no query parameters."""


class PageQuery(Request):
    """The page of a list."""

    limit: int = Field(100, ge=1, le=MAX_ITEMS, description="Maximum number of items of the page")
    cursor: str | None = Field(None, description="`next_cursor` of the page before; without it, the first page")


class NodesQuery(PageQuery):
    """The nodes to list."""

    select: str | None = Field(None, max_length=MOST_SELECTION, description=SELECT)


class OrderedNodesQuery(NodesQuery):
    """The nodes to list, in this order."""

    sort: str = Field(
        NAME,
        max_length=MOST_KEY,
        description="`name`; `urgency` for what is wrong first; or a key of selections, such as `rack` or `label:pool`",
    )


class GroupsQuery(NodesQuery):
    """The groups to list."""

    by: str = Field(max_length=MOST_KEY, description="A key of selections, such as `rack` or `label:pool`")


class ChangesQuery(Request):
    """What the viewer has."""

    since: str | None = Field(
        None, max_length=40, description="`EPOCH-VERSION` of the viewer's snapshot; `Last-Event-ID` counts before it"
    )


class RunQuery(PageQuery):
    """The runs to list."""

    node: Name | None = Field(None, description="Runs of this node")
    check: Name | None = Field(None, description="Runs of this check")
    verdict: Verdict | None = Field(None, description="Runs with this verdict")
    since: Instant | None = Field(None, description="Runs that began then or later, ISO 8601 with a time zone")

    def filter(self) -> RunFilter:
        return RunFilter(node=self.node, check=self.check, verdict=self.verdict, since=self.since)


class MetricQuery(PageQuery):
    """The metric whose history to return."""

    metric: str = Field(
        min_length=1,
        max_length=200,
        pattern=r"^[^\x00]*$",  # PostgreSQL accepts no NUL
        description="The name of a metric, for example `tflops`",
    )
    check: Name | None = Field(None, description="Measured by this check")
    device: int | None = Field(None, ge=0, lt=1 << 31, description="Of the device with this index; without it, of all")
    since: Instant | None = Field(None, description="Measured then or later, ISO 8601 with a time zone")
    until: Instant | None = Field(None, description="Measured before then, ISO 8601 with a time zone")

    def filter(self, node: str) -> HistoryFilter:
        return HistoryFilter(
            node=node, metric=self.metric, check=self.check, device=self.device, since=self.since, until=self.until
        )


class HistoryQuery(MetricQuery):
    """The history to return."""

    step_s: int | None = Field(
        None,
        ge=60,
        le=86_400,
        description="Merges the runs of a check that begin in the same step of this many seconds into one point; "
        "needs `since`, at most 1,000 steps",
    )


class HistoriesQuery(MetricQuery):
    """The histories to return."""

    limit: int = Field(20, ge=1, le=100, description="Maximum number of nodes of the page")
    select: str | None = Field(None, max_length=MOST_SELECTION, description=SELECT)
    points: int = Field(50, ge=1, le=200, description="Maximum number of points of each node, the latest ones")


def _in_one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be one line of text, without control characters")
    return text


OneLine = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), AfterValidator(_in_one_line)
]
"""One line of text with something to read."""


class ChangeRequest(Request):
    """A change that somebody requests."""

    by: OneLine | None = Field(None, description="Who requests it; ignored for those who have logged in under a name")


class NewRun(ChangeRequest):
    """The body of POST /nodes/{node}/runs."""

    model_config = example(check="gemm", params={"size": 8192}, by="ann@example.org")

    check: Name
    params: PlainJson = {}


class NewSweep(SweepRequest, ChangeRequest):
    """The body of POST /sweeps."""

    model_config = example(check="collective", select="rack=r1,r2", max_parallel="25%", by="ann@example.org")

    def request(self) -> SweepRequest:
        return SweepRequest(**_without_author(self))


class TransitionQuery(PageQuery):
    """The decisions to list."""

    node: Name | None = Field(None, description="Decisions about this node")


class AuditQuery(PageQuery):
    """The entries to list."""

    subject: str | None = Field(
        None, max_length=MOST_SELECTION, description="Changes of this node, sweep, reference or baseline"
    )


class NewSession(Request):
    """The body of POST /session: a token, and who logs in with it."""

    model_config = example(token="the token of http.token_file", name="ann@example.org")  # noqa: S106 (no secret)

    token: SecretStr = Field(min_length=1, description="The token that may read, or the one that may change everything")
    name: OneLine | None = Field(None, description="Who logs in; recorded with what they change")


class Decision(Request):
    """Who decides, and why."""

    model_config = example(by="ann@example.org", reason="replacing a fan")

    by: OneLine | None = Field(
        None, description="Who decides; needed with a token, and ignored for those who have logged in under a name"
    )
    reason: OneLine = Field(description="Why, in one line")


class Release(Decision):
    """The body of POST /nodes/{node}/release."""

    model_config = example(by="ann@example.org", reason="the fan is replaced", untested=False)

    untested: bool = Field(False, description="true: a node that is out of service returns without tests")


class ExplainQuery(Request):
    """The node of a sweep to explain."""

    node: Name = Field(description="The node")


class ExportQuery(Request):
    """The format of an export."""

    format: ExportFormat = Field(description="The format of the file")


class NewReference(ReferenceRow, ChangeRequest):
    """The body of PUT /references: a reference without its origin, which is the operator."""

    model_config = example(check="gemm", metric="tflops", fail_below=600.0, unit="TFLOP/s", source="accepted in May")

    def reference(self, set_by: str | None) -> Reference:
        return Reference(**_without_author(self), set_by=set_by)


class ReferenceQuery(Request):
    """The reference to remove."""

    check: Name = Field(description="Its check")
    metric: str = Field(description="Its metric")
    when: JsonText[Json] = Field({}, description="Its conditions, as JSON")

    @property
    def key(self) -> str:
        return key_of(self.check, self.metric, self.when)


class RemovedReference(ReferenceQuery, ChangeRequest):
    """The reference to remove."""

    def reference(self) -> ReferenceQuery:
        return ReferenceQuery.model_construct(**_without_author(self))  # `when` is read already


def _without_author(change: ChangeRequest) -> dict[str, Any]:
    return {name: value for name, value in change if name != "by"}


R = TypeVar("R", bound=Request)


@web.middleware
async def only_text(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Raises a Problem for control characters and unpaired surrogates in path and query, which no database stores.

    `read_cursor` refuses bad cursors itself, with a better message.
    """
    given = [("the path", request.path)]
    given += [(f"query parameter {name!r}", name + value) for name, value in request.query.items() if name != CURSOR]
    for what, text in given:
        if not text.isprintable():
            raise Problem(HTTPStatus.BAD_REQUEST, f"{what}: contains control characters; use printable text")
    return await handler(request)


def query(request: web.Request, kind: type[R]) -> R:
    """The query parameters as `kind`. Raises a Problem if they are not valid."""
    given = request.query
    for name in given:
        if len(given.getall(name)) > 1:
            raise Problem(HTTPStatus.BAD_REQUEST, f"query parameter {name!r} is given more than once")
    with refusing(kind, what="query parameter", status=HTTPStatus.BAD_REQUEST):
        return kind.model_validate(dict(given))


async def body(request: web.Request, kind: type[R]) -> R:
    """The JSON body as `kind`. Raises a Problem if it is not JSON or not valid."""
    if request.content_type != "application/json":
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send a JSON body with Content-Type: application/json")
    given = await read_body(request)
    try:
        values = pydantic_core.from_json(given, allow_inf_nan=False)
    except ValueError as error:
        raise Problem(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise Problem(HTTPStatus.BAD_REQUEST, "the body must be a JSON object")
    with refusing(kind, what="field", status=HTTPStatus.UNPROCESSABLE_ENTITY):
        # Otherwise a text such as "no" would be read as a number or a boolean.
        return kind.model_validate_json(given, strict=True)


async def form(request: web.Request, kind: type[R]) -> R:
    """The fields of a form as `kind`; an empty field counts as absent. Raises a Problem if they are not valid."""
    if request.content_type != FORM:
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "this is for the forms of pages; programs use /api/v1")
    try:
        fields = parse_qsl((await read_body(request)).decode(), max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Problem(HTTPStatus.BAD_REQUEST, f"the body is not a form with at most {MOST_FIELDS} fields") from None
    values = dict(fields)
    if len(values) < len(fields):
        raise Problem(HTTPStatus.BAD_REQUEST, "a field of the form is given more than once")
    with refusing(kind, what="field", status=HTTPStatus.UNPROCESSABLE_ENTITY):
        return kind.model_validate(values)


async def read_body(request: web.Request) -> bytes:
    """The bytes of the body. Raises a Problem if it is too large, too slow, or not compressed as it says."""
    try:
        with request.app[CONNECTIONS].wait(request.transport):
            async with asyncio.timeout(BODY_S):
                return await request.read()
    except TimeoutError:
        raise Problem(
            HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {BODY_S:g} s; send the request again"
        ) from None
    except RuntimeError:  # aiohttp, when the client leaves before it reads
        raise Problem(HTTPStatus.BAD_REQUEST, "the connection ended before the body") from None
    except web.HTTPRequestEntityTooLarge:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {request.client_max_size} bytes"
        ) from None
    except web.RequestPayloadError:
        raise Problem(HTTPStatus.BAD_REQUEST, "the body is not compressed as its Content-Encoding says") from None
