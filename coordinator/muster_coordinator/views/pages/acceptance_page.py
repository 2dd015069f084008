"""The page of one acceptance: what it came to, its nodes and its steps, the worst first."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from muster.acceptance import NodeConclusion, NodeReport, StepReport
from muster.model import Finding, Run, Verdict, worst
from muster.nouns import count
from muster.run_plots import Bars, Curve, bars, curves
from muster.transition import ACTION_TEXTS
from muster.units import metric_text
from muster_coordinator.model.acceptance_records import AcceptanceRecord
from muster_coordinator.views.pages.bounded import Bounded, bounded

MOST_NODES = 200
MOST_RUNS = 20
"""Of one check."""

_WORST_FIRST = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.WARN, Verdict.PASS, Verdict.SKIPPED)


@dataclass(frozen=True, slots=True)
class AcceptedNode:
    """A node, what its runs came to, and its hardware and software in words; `concluded` is of a preflight."""

    name: str
    verdict: Verdict
    concluded: str
    machine_type: str
    devices: str
    software: str


@dataclass(frozen=True, slots=True)
class FindingLine:
    """A finding with its device, and what to do about it."""

    severity: str
    code: str
    device: int | None
    summary: str
    todo: str


@dataclass(frozen=True, slots=True)
class AcceptedRun:
    """A run, with its findings and what it measured as numbers, bars and curves."""

    node: str
    verdict: Verdict
    findings: tuple[FindingLine, ...]
    metrics: tuple[tuple[str, str], ...]
    bars: tuple[Bars, ...]
    curves: tuple[Curve, ...]
    table: str

    @property
    def is_notable(self) -> bool:
        """Whether a person should look at it first."""
        return self.verdict not in (Verdict.PASS, Verdict.SKIPPED)


@dataclass(frozen=True, slots=True)
class AcceptedCheck:
    """A check of a section: all of its steps together, since a suite may repeat them."""

    section: str
    check: str
    summary: str
    verdict: Verdict
    times: int
    duration_s: float
    runs: Bounded[AcceptedRun]


@dataclass(frozen=True, slots=True)
class AcceptancePage:
    """What the page shows; nodes and runs with the worst verdict come first."""

    at: float
    record: AcceptanceRecord
    nodes: Bounded[AcceptedNode]
    checks: tuple[AcceptedCheck, ...]


def acceptance_page(record: AcceptanceRecord, at: float) -> AcceptancePage:
    """The page of this acceptance."""
    verdicts = record.report.verdicts
    nodes = sorted(record.report.nodes, key=lambda node: (_WORST_FIRST.index(verdicts[node.name]), node.name))
    shown = bounded(nodes, MOST_NODES)
    concluded = {each.node: _concluded(each) for each in record.report.conclusions}
    lines = tuple(_node(node, verdicts[node.name], concluded.get(node.name, "")) for node in shown.items)
    return AcceptancePage(at, record, Bounded(lines, shown.rest), tuple(_checks(record.report.steps)))


def _checks(steps: Iterable[StepReport]) -> Iterator[AcceptedCheck]:
    together: dict[tuple[str, str], list[StepReport]] = {}
    for step in steps:
        together.setdefault((step.section, step.check), []).append(step)
    for (section, check), same in together.items():
        runs = sorted((run for step in same for run in step.runs), key=_urgency)
        shown = bounded(runs, MOST_RUNS)
        yield AcceptedCheck(
            section=section,
            check=check,
            summary=same[0].summary,
            verdict=worst([step.verdict for step in same]),
            times=len(same),
            duration_s=sum(step.duration_s for step in same),
            runs=Bounded(tuple(map(_run, shown.items)), shown.rest),
        )


def _urgency(run: Run) -> tuple[int, str, float]:
    return _WORST_FIRST.index(run.verdict), run.node, run.started_at


def _run(run: Run) -> AcceptedRun:
    table = run.facts.get("table")
    return AcceptedRun(
        node=run.node,
        verdict=run.verdict,
        findings=tuple(map(_finding, run.findings)),
        metrics=tuple((name, metric_text(value, name)) for name, value in run.metrics.items()),
        bars=tuple(bars(run)),
        curves=tuple(curves(run)),
        table=table if isinstance(table, str) else "",
    )


def _finding(finding: Finding) -> FindingLine:
    todo = ACTION_TEXTS.get(finding.action, "")
    return FindingLine(finding.severity, finding.code, finding.device, finding.summary, todo)


def _concluded(conclusion: NodeConclusion) -> str:
    return f"{conclusion.decision}: {conclusion.reason}" if conclusion.reason else conclusion.decision


def _node(node: NodeReport, verdict: Verdict, concluded: str) -> AcceptedNode:
    models = Counter(
        f"{device.model} (simulated)" if device.simulated and "simulated" not in device.model else device.model
        for device in node.inventory.devices
    )
    return AcceptedNode(
        name=node.name,
        verdict=verdict,
        concluded=concluded,
        machine_type=node.inventory.machine_type or "-",
        devices=", ".join(f"{number} x {model}" for model, number in models.items()) or "no GPU",
        software=", ".join(f"{name} {version}" for name, version in node.inventory.software.items()) or "-",
    )


def without_gpu_text(record: AcceptanceRecord) -> str:
    """Says that no GPU was tested on some nodes; empty if one was on each."""
    if not record.without_gpu:
        return ""
    return f"No GPU was tested on {count(record.without_gpu, 'node')}: none was found there."
