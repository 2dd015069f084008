"""Writes docs/checks.md, docs/reference/*.md and the state diagrams of docs/architecture.md from the code.

Each page is one function, and so is each diagram; a test compares what they give with the files.
"""

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from muster import hookspecs, plugins, references
from muster.check import AnyCheck
from muster.conditions import in_words
from muster.config import ENVIRONMENT_PREFIX, Config, Settings
from muster.model import Finding, Json, Run
from muster.references import Reference
from muster.transition import Transition
from muster_agent import session
from muster_agent.metrics import Metrics
from muster_coordinator import health
from muster_coordinator.fleet import Fleet
from muster_coordinator.history import HistoryPoint
from muster_coordinator.link import Link
from muster_coordinator.metrics import Figures
from muster_coordinator.notices import Notices
from muster_coordinator.pipeline import Pipeline
from muster_coordinator.quarantine import moves, policy_file, policy_text
from muster_coordinator.quarantine.actions import Action
from muster_coordinator.quarantine.policy import Row
from muster_coordinator.quarantine.view import QuarantineView
from muster_coordinator.quarantine_views import BudgetView, CaseView
from muster_coordinator.records import BaselineView, FleetView, NodeView, StoryEntry
from muster_coordinator.reports.explained import Explanation
from muster_coordinator.store import Store
from muster_coordinator.stream import Stream
from muster_coordinator.surveying import Surveying
from muster_coordinator.sweep_records import GroupRecord, MemberRecord, RoundRecord, SweepRecord
from muster_coordinator.sweeps import group
from muster_coordinator.sweeps.forecast import Forecast
from muster_coordinator.thinning import Thinned, Thinning
from muster_coordinator.web.quarantine import QuarantineApi
from muster_coordinator.web.requests import (
    Decision,
    ExplainQuery,
    ExportQuery,
    HistoryQuery,
    NewReference,
    NewRun,
    NewSweep,
    PageQuery,
    ReferenceQuery,
    Release,
    RunQuery,
    TransitionQuery,
)
from muster_coordinator.web.routes import Api
from muster_plugins.kubernetes import rbac

DOCS = Path(__file__).parent
ARCHITECTURE = DOCS / "architecture.md"
DAEMONSET = DOCS.parent / "daemonset"
NOTE = "<!-- Generated from the code by `make docs`; edit the code instead. -->"


def hooks() -> str:
    """Every hook with its signature and its docstring."""
    lines = [
        NOTE,
        "# Hooks",
        inspect.cleandoc(hookspecs.__doc__ or ""),
        "Mark an implementation with `@muster.hookimpl`. It takes those of the parameters, by name, that it needs.",
    ]
    for title, names in (("Contribute", hookspecs.CONTRIBUTE), ("Notify", hookspecs.NOTIFY)):
        lines.append(f"## {title}")
        for name in names:
            hook = getattr(hookspecs, name)
            lines += [f"### {name}", f"```python\n{_signature(hook)}\n```", inspect.cleandoc(hook.__doc__)]
    return _page(lines)


def checks() -> str:
    """What every built-in check finds, needs, costs and is judged by, and its parameters."""
    brought = plugins.collect_checks(plugins.load(Config(Settings())))
    rows = references.shipped()
    lines = [
        NOTE,
        "# Checks",
        "The checks that the built-in plugins bring; `muster check list` shows those of a node. Checks with a rhythm "
        "run in the background, the others on demand. What a run costs is for a usual node with eight GPUs and default "
        "parameters. A metric without a reference is measured and kept, and the run says that nothing judged it.",
        _table(map(_overview, map(brought.__getitem__, sorted(brought))), _OVERVIEW),
    ]
    for name, check in sorted(brought.items()):
        lines += [f"## {name}", f"{check.summary}.", _facts(check)]
        if check.finds:
            found = ((f"`{code}`", meaning) for code, meaning in check.finds.items())
            lines += ["What it finds:", _table(found, ("Code", "Meaning"))]
        if judged := [_reference(row) for row in rows if row.check == name]:
            lines += ["What it is judged by:", _table(iter(judged), ("Metric", "Where", "Bounds", "Source"))]
        if check.params.model_fields:
            lines += ["Parameters:", _table(_fields(check.params, ""), ("Parameter", "Type", "Default", "Meaning"))]
    return _page(lines)


_OVERVIEW = ("Check", "What it does", "Needs", "Runs", "Costs", "Also checked by")


def _overview(check: AnyCheck) -> tuple[str, ...]:
    cost = "" if check.cost_s is None else f"{check.cost_s:g} s"
    needs = check.needs.lower().replace("_", " ")
    return f"[{check.name}](#{check.name})", check.summary, needs, _rhythm(check), cost, check.precedent


def _rhythm(check: AnyCheck) -> str:
    return "on demand" if check.cadence_s is None else f"every {check.cadence_s:g} s"


def _reference(row: Reference) -> tuple[str, ...]:
    where = ", ".join(f"{fact} {in_words(condition)}" for fact, condition in row.when.items()) or "everywhere"
    bounds = {
        "fails below": row.fail_below,
        "warns below": row.warn_below,
        "warns above": row.warn_above,
        "fails above": row.fail_above,
    }
    told = ", ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None)
    return f"`{row.metric}`", where, f"{told} {row.unit}".strip(), row.source


def settings() -> str:
    """Every setting with its environment variable, default and meaning; plugins' own sections too."""
    config = Config(Settings())
    plugins.load(config)
    lines = [
        NOTE,
        "# Settings",
        "A TOML file (`--config FILE` or `MUSTER_CONFIG`), overlaid by the environment, then defaults. In the "
        "environment, `__` stands between levels, and lists and tables are given as JSON. `muster config show` prints "
        "what is in effect, `muster config check` says what is wrong.",
        _settings_table(Settings, ""),
    ]
    for name, section in sorted(config.claimed.items()):
        lines += [f"## Plugin {name}", _settings_table(type(section), f"plugins.{name}.")]
    return _page(lines)


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
        "`Authorization: Bearer TOKEN`.",
        _table(rows, ("Method", "Path", "Answer")),
    ]
    asked: dict[str, type[BaseModel]] = {
        "Query of lists": PageQuery,
        "Query of /api/v1/runs": RunQuery,
        "Query of history": HistoryQuery,
        "Body of POST runs": NewRun,
        "Body of POST sweeps": NewSweep,
        "Query of explain": ExplainQuery,
        "Query of export": ExportQuery,
        "Body of PUT references": NewReference,
        "Query of DELETE references": ReferenceQuery,
        "Query of /api/v1/quarantine/history": TransitionQuery,
        "Body of POST hold and POST unfreeze": Decision,
        "Body of POST release": Release,
    }
    for title, model in asked.items():
        lines += [f"## {title}", _model_table(model)]
    for answer in (
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
    ):
        lines += [f"## {answer.__name__}", inspect.cleandoc(answer.__doc__ or ""), _model_table(answer)]
    return _page(lines)


def metrics() -> str:
    """Every figure that agent and coordinator give to Prometheus."""
    pipeline = Pipeline(Fleet(name="docs", epoch=1), object.__new__(Store))  # the store is not asked for figures
    link = Link(Settings(), broker_url="mqtt://localhost", api_url="", epoch=1, deliver=pipeline.take)
    thinning = object.__new__(Thinning)  # only its counts are asked for
    thinning.counts = Thinned()
    none = plugins.Plugins(Config(Settings()))
    surveying = Surveying(none, 3600.0, pipeline.take)
    figures = Figures(
        pipeline=pipeline,
        link=link,
        stream=Stream(1),
        notices=Notices(none),
        thinning=thinning,
        surveying=surveying,
    )
    lines = [NOTE, "# Metrics", "In Prometheus' text format, at `/metrics` of the coordinator and of every agent."]
    for title, families in (("Coordinator", figures.collect()), ("Agent", Metrics().registry.collect())):
        rows = ((f"`{family.name}`", family.type, family.documentation) for family in families)
        lines += [f"## {title}", _table(rows, ("Metric", "Type", "Meaning"))]
    return _page(lines)


def policy() -> str:
    """Every row of the policy that comes with muster, with its reason."""
    rows = (
        (f"`{row.name}`", policy_text.findings(row), policy_text.outcome(row), f"{row.reason}.", row.source)
        for row in policy_file.shipped_rows()
    )
    lines = [
        NOTE,
        "# The policy that comes with muster",
        "Which findings take a node out of service. For every finding that stands against a node, the first row that "
        "matches it decides; what none matches takes no node out. An operator's rows go before these, see "
        "[the guide](../guides/policy.md).",
        _table(rows, ("Row", "Is about", "What comes of it", "Reason", "Source")),
        "## What a row can say",
        _table(_fields(Row, ""), ("Field", "Type", "Default", "Meaning")),
    ]
    return _page(lines)


PAGES: dict[str, Callable[[], str]] = {
    "checks.md": checks,
    "reference/api.md": api,
    "reference/hooks.md": hooks,
    "reference/metrics.md": metrics,
    "reference/policy.md": policy,
    "reference/settings.md": settings,
}
"""By the place of each page below docs/."""


def _rights(manifests: Callable[[], list[Json]]) -> str:
    return "# Generated from the calls that are made by `make docs`.\n" + rbac.as_yaml(manifests())


MANIFESTS: dict[str, Callable[[], str]] = {
    "base/agent-rbac.yaml": partial(_rights, rbac.agent_manifests),
    "components/acting/rbac.yaml": partial(_rights, rbac.coordinator_manifests),
    "components/reservations/rbac.yaml": partial(_rights, rbac.reservation_manifests),
}
"""By the place of each manifest below daemonset/."""


def group_states() -> str:
    """The coordinator's side of a group."""
    return _diagram((before, step, after) for (before, step), (after, _) in group.TRANSITIONS.items())


def session_states() -> str:
    """A member's side of a group."""
    return _diagram((before, event.__name__, after) for (before, event), after in session.TRANSITIONS.items())


def standings() -> str:
    """How the runs of one check move its standing."""
    return _diagram((before, outcome, after) for (before, outcome), after in health.MOVES.items())


def service_states() -> str:
    """What leads from one service state to another."""
    return _diagram((before, trigger, after) for (before, trigger), after in moves.MOVES.items())


DIAGRAMS: dict[str, Callable[[], str]] = {
    "group": group_states,
    "session": session_states,
    "service": service_states,
    "standing": standings,
}


def architecture() -> str:
    """docs/architecture.md with its diagrams drawn anew."""

    def drawn(block: re.Match[str]) -> str:
        return f"{block['begin']}\n```mermaid\n{DIAGRAMS[block['name']]()}\n```\n<!-- end -->"

    text = ARCHITECTURE.read_text(encoding="utf-8")
    return re.sub(r"(?P<begin><!-- generated: (?P<name>\w+) -->).*?<!-- end -->", drawn, text, flags=re.DOTALL)


def _diagram(moves: Iterable[tuple[str, str, str]]) -> str:
    """A Mermaid state diagram; what leads from one state to the same other one shares an arrow."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for before, label, after in moves:
        if before != after:
            arrows.setdefault((before, after), []).append(label)
    lines = [f"    {before} --> {after}: {', '.join(labels)}" for (before, after), labels in arrows.items()]
    first = next(iter(arrows))[0]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {first}", *lines])


def _page(blocks: list[str]) -> str:
    return "\n\n".join(blocks) + "\n"


def _signature(hook: Any) -> str:
    """The hook's `def` line as it is written in the source, in one line."""
    definition = ast.parse(inspect.getsource(hook)).body[0]
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
    definition.body, definition.decorator_list = [], []
    return ast.unparse(definition)


def _facts(check: AnyCheck) -> str:
    rows = [
        ("Scope", check.scope),
        ("Needs", check.needs),
        ("Runs", _rhythm(check)),
        ("Timeout", f"{check.timeout_s:g} s"),
        ("Objective in sweeps", f"`{check.objective}`" if check.objective else "none"),
        ("`--quick` sets", f"`{json.dumps(dict(check.quick))}`" if check.quick else "nothing"),
    ]
    return _table(iter(rows), ("", ""))


def _model_table(model: type[BaseModel]) -> str:
    """The fields of a JSON object with the types that JSON knows."""
    fields = model.model_json_schema(mode="serialization")["properties"]
    return _table(((f"`{name}`", _json_type(field)) for name, field in fields.items()), ("Field", "Type"))


def _json_type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2]).replace("JsonValue", "any value")
    if "anyOf" in schema:
        return " or ".join(_json_type(choice) for choice in schema["anyOf"])
    if "prefixItems" in schema:
        return f"list of {len(schema['prefixItems'])} {_json_type(schema['prefixItems'][0])}s"
    if schema.get("type") == "array":
        return f"list of {_json_type(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_json_type(schema['additionalProperties'])}"
    return str(schema.get("type", "anything"))


def _settings_table(model: type[BaseModel], prefix: str) -> str:
    rows = (
        (key, f"`{ENVIRONMENT_PREFIX}{key.strip('`').upper().replace('.', '__')}`", *rest)
        for key, *rest in _fields(model, prefix)
    )
    return _table(rows, ("Setting", "Environment", "Type", "Default", "Meaning"))


def _fields(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        key = prefix + name
        nested = _model_in(field.annotation)
        if nested is None:
            yield f"`{key}`", f"`{_type(field.annotation)}`", _default(field), field.description or ""
        else:
            step = ".<name>." if get_origin(field.annotation) is dict else "."
            yield from _fields(nested, key + step)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model of a table, or of every table in a table."""
    candidate = get_args(annotation)[1] if get_origin(annotation) is dict else annotation
    return candidate if isinstance(candidate, type) and issubclass(candidate, BaseModel) else None


def _type(annotation: Any) -> str:
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_type(part) for part in get_args(annotation) if part is not type(None))
    if get_origin(annotation) is Annotated:
        return _type(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return " or ".join(map(json.dumps, get_args(annotation)))
    return str((get_origin(annotation) or annotation).__name__)


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None or field.default is None:
        return ""  # the description says what an unset value means
    if field.default is PydanticUndefined:
        return "required"
    return f"`{json.dumps(to_jsonable_python(field.default))}`"


def _table(rows: Iterator[tuple[str, ...]], header: tuple[str, ...]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    for place, page in PAGES.items():
        (DOCS / place).write_text(page(), encoding="utf-8")
    for place, manifest in MANIFESTS.items():
        (DAEMONSET / place).write_text(manifest(), encoding="utf-8")
    ARCHITECTURE.write_text(architecture(), encoding="utf-8")
