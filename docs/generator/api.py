"""The page of all routes of the HTTP API."""

import inspect
from typing import Any

from generator.markdown import NOTE, page, table
from pydantic import BaseModel

from muster.model import Finding, Run
from muster.references import Reference
from muster.transition import Transition
from muster_coordinator.model.actions import Action
from muster_coordinator.model.baselines import BaselineView
from muster_coordinator.model.history import HistoryPoint
from muster_coordinator.model.nodes import FleetView, NodeView, StoryEntry
from muster_coordinator.model.quarantine_events import (
    Asked,
    FreezeLifted,
    HoldRequested,
    NodeForgotten,
    ReleaseRequested,
)
from muster_coordinator.model.quarantine_views import BudgetView, CaseView, QuarantineView
from muster_coordinator.model.sweep_records import GroupRecord, MemberRecord, RoundRecord, SweepRecord
from muster_coordinator.sweeps.forecast import Forecast
from muster_coordinator.views.sweeps.explained import Explanation
from muster_coordinator.web.quarantine import QuarantineApi
from muster_coordinator.web.requests import (
    Decision,
    ExplainQuery,
    ExportQuery,
    HistoryQuery,
    NewReference,
    NewRun,
    NewSweep,
    NodesQuery,
    PageQuery,
    ReferenceQuery,
    Release,
    RunQuery,
    TransitionQuery,
)
from muster_coordinator.web.routes import Api

_ASKED: dict[str, type[BaseModel]] = {
    "Query of lists": PageQuery,
    "Query of /api/v1/nodes": NodesQuery,
    "Query of /api/v1/runs": RunQuery,
    "Query of history": HistoryQuery,
    "Body of POST runs": NewRun,
    "Body of POST sweeps": NewSweep,
    "Query of explain": ExplainQuery,
    "Query of export": ExportQuery,
    "Body of PUT references": NewReference,
    "Query of DELETE references": ReferenceQuery,
    "Query of /api/v1/quarantine/history": TransitionQuery,
    "Body of POST hold, POST forget and POST unfreeze": Decision,
    "Body of POST release": Release,
}

_ANSWERED: tuple[type[BaseModel], ...] = (
    NodeView,
    Run,
    SweepRecord,
    RoundRecord,
    GroupRecord,
    MemberRecord,
    Forecast,
    Explanation,
    StoryEntry,
    Finding,
    Reference,
    FleetView,
    BaselineView,
    HistoryPoint,
    CaseView,
    BudgetView,
    QuarantineView,
    Action,
    Transition,
    Asked,
    HoldRequested,
    ReleaseRequested,
    FreezeLifted,
    NodeForgotten,
)


def api() -> str:
    """Every route, what it takes and what it answers with."""
    # Only the routes' docstrings are looked at.
    routes = [*Api.routes(object.__new__(Api)), *QuarantineApi.routes(object.__new__(QuarantineApi))]
    rows = ((route.method, f"`{route.path}`", inspect.cleandoc(route.handler.__doc__ or "")) for route in routes)
    lines = [
        NOTE,
        "# HTTP API",
        "JSON throughout; times are ISO 8601 in UTC. Lists answer with `items` and `next_cursor`, which is null on the "
        "last page and the value of `cursor` for the next one otherwise. Errors are problem details (RFC 9457) whose "
        "`detail` says what would be right; only a request that is no HTTP at all gets plain text. A sweep is "
        "`planned` until the nodes of its first group are free. Where `http.token_file` is set, send "
        "`Authorization: Bearer TOKEN`. Without that setting the API listens on loopback, and GET and HEAD need no "
        "token. All other methods need the token in `api_token` in `data_dir`, unless `http.trust_loopback` is set.",
        table(rows, ("Method", "Path", "Answer")),
    ]
    for title, model in _ASKED.items():
        lines += [f"## {title}", _model_table(model)]
    for answer in _ANSWERED:
        lines += [f"## {answer.__name__}", inspect.cleandoc(answer.__doc__ or ""), _model_table(answer)]
    return page(lines)


def _model_table(model: type[BaseModel]) -> str:
    """The fields of a JSON object with the types that JSON knows."""
    fields = model.model_json_schema(mode="serialization")["properties"]
    return table(((f"`{name}`", _json_type(field)) for name, field in fields.items()), ("Field", "Type"))


def _json_type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2]).replace("JsonValue", "any value")
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(map(_json_type, choices))
    if "prefixItems" in schema:
        return f"list of {len(schema['prefixItems'])} {_json_type(schema['prefixItems'][0])}s"
    if schema.get("type") == "array":
        return f"list of {_json_type(schema['items'])}"
    if values := _schemas_of_values(schema):
        return f"object of {' or '.join(map(_json_type, values))}"
    return str(schema.get("type", "anything"))


def _schemas_of_values(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """What the values of an object with any keys may be; keys that have a pattern stand apart from all others."""
    others = schema.get("additionalProperties")
    return [*schema.get("patternProperties", {}).values(), *([others] if isinstance(others, dict) else [])]
