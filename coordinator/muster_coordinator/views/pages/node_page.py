"""The page of one node: first why it is as it is, and what must happen before it is back."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from muster.machine_type import all_with_source
from muster.model import Device, Run, ServiceState, Severity, Verdict
from muster.transition import ACTION_TEXTS, Cause
from muster.units import metric_text, with_unit
from muster_coordinator.evidence.node_clock import clock_in_words
from muster_coordinator.model.nodes import NodeFinding, NodeView, StoryEntry
from muster_coordinator.model.quarantine_views import CaseView
from muster_coordinator.views.pages.bounded import Bounded, bounded
from muster_coordinator.views.pages.finding_metric import finding_metric
from muster_coordinator.views.pages.gist import gist
from muster_coordinator.views.pages.measurements import Measurements
from muster_coordinator.views.pages.page_row import PageRow, as_stale, row_of_view, worst_first
from muster_coordinator.views.pages.selection_link import selection
from muster_coordinator.views.quarantine_text import not_done, what_comes_next, why_so_far

MOST_FINDINGS = 32
MOST_EVIDENCE = 8
MOST_VALUE = 200
"""Characters of a value in the evidence; longer ones are cut."""

_JUDGED = ("value", "bound", "source")
"""What `judge_value` puts into the evidence: the measurement, the limit that it broke, and where the limit is from."""

_SWEEP = "sweep"
"""What a sweep puts into the evidence: its own id."""

_COMPARED = ("value", "centre", "spread")
"""What a comparison puts into the evidence: the measurement, and the level that it is too far from."""

_OF_LEVEL = {
    "baseline.outlier": "the baseline of the fleet: nodes that measure the same under the same conditions",
    "baseline.drift": "the first measurements of this device",
}
"""Whose level that is, by the code of the finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingReason:
    """A finding that stands against the node: what was measured, what was expected, and where that comes from.

    `sweep` is the sweep that has convicted the node, if one has.
    """

    label: str
    code: str
    check: str
    severity: Severity
    summary: str
    device: Device | None
    is_other_device: bool
    value: str
    bound: str
    source: str
    evidence: tuple[tuple[str, str], ...]
    todo: str
    since: float
    seen: float
    runs: int
    run: str
    sweep: str | None


@dataclass(frozen=True, slots=True)
class NodePlace:
    """A level of the topology: its name, and the selection of all nodes there."""

    level: str
    name: str
    select: str | None


@dataclass(frozen=True, slots=True)
class CheckVerdict:
    """The last verdict of a check, and when it ran if one of the last runs is its."""

    check: str
    verdict: Verdict
    run: Run | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePage:
    """What the page shows of one node. A node that was forgotten has only its story, and `row` is None.

    - `reasons`: why its health is as it is, beside its findings; `state`: why its service state is; `next_steps`: what
      must happen before it is back; `not_done`: the actors that failed
    - `findings`: what stands against it, the worst first; `measured`: its charts
    - `checks`: the last verdicts, the worst first; `runs` and `story`: the latest first
    """

    name: str
    at: float
    is_current: bool
    row: PageRow | None
    view: NodeView | None
    case: CaseView | None
    reasons: tuple[str, ...]
    state: tuple[str, ...]
    next_steps: tuple[str, ...]
    not_done: tuple[str, ...]
    findings: Bounded[FindingReason]
    measured: Measurements | None
    checks: tuple[CheckVerdict, ...]
    places: tuple[NodePlace, ...]
    failed_plugins: tuple[tuple[str, str], ...]
    clock: str
    runs: tuple[Run, ...]
    story: tuple[StoryEntry, ...]

    @property
    def checks_to_run(self) -> tuple[str, ...]:
        """The checks that may be run on it now, by name."""
        return () if self.view is None else tuple(sorted(self.view.checks))

    @property
    def machine_types(self) -> list[str]:
        """Its machine type by each source, the one that counts first."""
        return [] if self.view is None else all_with_source(self.view.machine_type, self.view.machine_types)

    @property
    def why_nothing(self) -> str:
        """Why the page names no fault."""
        if self.row is None:
            return "This node has left the fleet and was forgotten. Its story is kept."
        if self.row.lost:
            return "It stopped to report without a fault. Check the node, its network and its agent."
        if not self.checks:
            return "No check has reported from this node yet."
        return "Nothing stands against it: every check that has reported passes."


def node_page(
    name: str,
    *,
    at: float,
    is_current: bool = True,
    view: NodeView | None,
    case: CaseView | None,
    runs: tuple[Run, ...],
    story: tuple[StoryEntry, ...],
    measured: Measurements | None = None,
) -> NodePage:
    """The page of this node at the time `at`. While the coordinator hears no node, it is not current."""
    row = None if view is None else row_of_view(view, is_away=False)
    findings = Bounded() if view is None else _findings(view)
    said = {finding.summary for finding in findings.items}
    return NodePage(
        name=name,
        at=at,
        is_current=is_current,
        row=row if row is None or is_current else as_stale(row),
        view=view,
        case=case,
        reasons=() if view is None else tuple(reason for reason in view.reasons if reason not in said),
        state=() if case is None else tuple(map(gist, why_so_far(case))),
        next_steps=() if case is None else tuple(_next_steps(case)),
        not_done=() if case is None else tuple(not_done(case)),
        findings=findings,
        measured=measured,
        checks=() if view is None else _checks(view, runs),
        places=() if view is None else _places(view),
        failed_plugins=()
        if view is None
        else tuple((plugin.name, plugin.error or "") for plugin in view.plugins if plugin.status == "failed"),
        clock=""
        if view is None or view.clock_ahead_s is None
        else f"Its clock is {clock_in_words(view.clock_ahead_s)}",
        runs=runs,
        story=story,
    )


def _next_steps(case: CaseView) -> Iterator[str]:
    """What must happen before the node is in service again."""
    if case.state is not ServiceState.IN_SERVICE and case.requirement is not None:
        todo = ACTION_TEXTS.get(case.requirement.action)
        if todo is not None:
            yield f"{todo[:1].upper()}{todo[1:]}"
    yield from what_comes_next(case)


def _findings(view: NodeView) -> Bounded[FindingReason]:
    by_index = {device.index: device for device in view.devices}
    return bounded((_reason(finding, by_index) for finding in worst_first(view.findings)), MOST_FINDINGS)


def _reason(finding: NodeFinding, devices: Mapping[int, Device]) -> FindingReason:
    device = None if finding.device is None else devices.get(finding.device)
    cause = Cause.of(finding, finding.check, finding.uuid)
    value, bound, source, told = _measured(finding)
    sweep = finding.run if finding.evidence.get(_SWEEP) == finding.run else None
    others = [(key, _value(value)) for key, value in finding.evidence.items() if key not in told and key != _SWEEP]
    todo = ACTION_TEXTS.get(finding.action, "")
    return FindingReason(
        label=cause.full,
        code=finding.code,
        check=finding.check,
        severity=finding.severity,
        summary=finding.summary,
        device=device,
        is_other_device=device is not None and finding.uuid not in ("", device.uuid),
        value=value,
        bound=bound,
        source=source,
        evidence=tuple(others[:MOST_EVIDENCE]),
        todo=f"{todo[:1].upper()}{todo[1:]}",
        since=finding.since,
        seen=finding.seen,
        runs=finding.runs,
        run=finding.run,
        sweep=sweep,
    )


def _measured(finding: NodeFinding) -> tuple[str, str, str, tuple[str, ...]]:
    """What was measured, what was expected, where that is from, and the keys of the evidence that say so."""
    evidence, metric = finding.evidence, finding_metric(finding)
    if all(key in evidence for key in _JUDGED):
        value, bound = evidence["value"], evidence["bound"]
        return (
            with_unit(_value(value), metric),
            with_unit(_expected(value, bound), metric),
            _value(evidence["source"]),
            _JUDGED,
        )
    if all(key in evidence for key in _COMPARED):
        value, centre, spread = (_value(evidence[key]) for key in _COMPARED)
        whose = _OF_LEVEL.get(finding.code, "its baseline")
        return with_unit(value, metric), f"{with_unit(centre, metric)}, spread {spread}", whose, _COMPARED
    return "", "", "", ()


def _value(value: object) -> str:
    """A value of the evidence, which an agent may fill with anything."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= MOST_VALUE else f"{text[: MOST_VALUE - 1]}…"


def _expected(value: object, bound: object) -> str:
    """The limit in words: a value below it should have been at least as large."""
    if not (isinstance(value, int | float) and isinstance(bound, int | float)):
        return _value(bound)
    return f"at {'least' if value < bound else 'most'} {_value(bound)}"


_VERDICTS = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.WARN, Verdict.PASS, Verdict.SKIPPED)


def _checks(view: NodeView, runs: tuple[Run, ...]) -> tuple[CheckVerdict, ...]:
    latest: dict[str, Run] = {}
    for run in runs:
        latest.setdefault(run.check, run)
    verdicts = sorted(view.checks.items(), key=lambda item: (_VERDICTS.index(item[1]), item[0]))
    return tuple(CheckVerdict(check, verdict, latest.get(check)) for check, verdict in verdicts)


def _places(view: NodeView) -> tuple[NodePlace, ...]:
    places = {level: name for level, name in view.topology if name is not None}
    block = places.get("block")
    found = []
    for level, name in places.items():
        wider = {} if level == "block" else {"block": block}
        found.append(NodePlace(level, name, selection(**wider, **{level: name})))
    return tuple(found)


MOST_METRICS = 6


def metrics_text(run: Run) -> str:
    """The first measured values of a run, in one line."""
    shown = [f"{name} {metric_text(value, name)}" for name, value in [*run.metrics.items()][:MOST_METRICS]]
    more = len(run.metrics) - len(shown)
    return ", ".join([*shown, *([f"{more} more"] if more > 0 else [])])
