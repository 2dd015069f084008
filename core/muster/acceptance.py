"""The report of an acceptance as data. `report.json` has exactly this content; all other formats are made from it."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from pydantic import Field

from muster.model import Data, Finding, Instant, Inventory, Name, Run, Seconds, Severity, TotalSeconds, Verdict, worst
from muster.terminal import in_one_line
from muster.texts import Label, Text
from muster.transition import Cause, describe_causes
from muster.version import __version__

MOST_NODES = 10_000
"""Maximum number of nodes of one acceptance."""


_WITHOUT_ERRORS = (Verdict.PASS, Verdict.WARN, Verdict.SKIPPED)
"""The verdicts of runs that have found no error."""


class StepReport(Data):
    """One step with its runs: one for each node, or for each process of a group."""

    section: Label
    check: Name
    summary: Text
    verdict: Verdict
    duration_s: Seconds
    runs: tuple[Run, ...]


class NodeReport(Data):
    """A node that took part."""

    name: Name
    inventory: Inventory


class GangDecision(StrEnum):
    """What a preflight decides about a node of a job.

    - GO: the job runs on it
    - SPARE: it passed, and the job has enough other nodes
    - REJECTED: it failed, or nobody could tell
    - BLOCKED: it passed, and the job cannot start
    """

    GO = "GO"
    SPARE = "SPARE"
    REJECTED = "REJECTED"
    BLOCKED = "BLOCKED"


class NodeConclusion(Data):
    """What a preflight came to for a node.

    `verdict` is about the node itself: a pair or a group that failed is no evidence against each of its nodes.
    """

    node: Name
    decision: GangDecision
    verdict: Verdict
    reason: Text


class AcceptanceReport(Data):
    """A whole acceptance. `simulated` is true if any of it was measured on simulated devices.

    A preflight has a conclusion for each node.
    """

    suite: Label
    verdict: Verdict
    started_at: Instant
    duration_s: TotalSeconds
    nodes: tuple[NodeReport, ...] = Field(max_length=MOST_NODES)
    steps: tuple[StepReport, ...]
    simulated: bool
    muster_version: Label = __version__
    conclusions: tuple[NodeConclusion, ...] = Field((), max_length=MOST_NODES)

    @property
    def without_gpu(self) -> list[str]:
        """The nodes without a GPU. The report must not show them as healthy GPU nodes."""
        return [node.name for node in self.nodes if not node.inventory.devices]

    @property
    def sections(self) -> dict[str, list[StepReport]]:
        """The steps by section, in the order of each section's first step."""
        found: dict[str, list[StepReport]] = {}
        for step in self.steps:
            found.setdefault(step.section, []).append(step)
        return found

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict of each node: its conclusion's, or else the worst of its runs, SKIPPED without any."""
        found: dict[str, list[Verdict]] = {node.name: [] for node in self.nodes}
        for run in self.runs:
            found.setdefault(run.node, []).append(run.verdict)
        concluded = {conclusion.node: conclusion.verdict for conclusion in self.conclusions}
        return {node: worst(verdicts) for node, verdicts in found.items()} | concluded

    @property
    def cause(self) -> str:
        """The errors in one line, the first one first: the reason for a scheduler's drain of the node.

        After a preflight, it names the nodes that were rejected, if any.
        """
        rejected = [each for each in self.conclusions if each.decision is GangDecision.REJECTED]
        if rejected:
            return in_one_line("; ".join(f"{each.node}: {each.reason}" for each in rejected))
        uuids = {(node.name, device.index): device.uuid for node in self.nodes for device in node.inventory.devices}
        errors = [(run, finding) for run in self.runs for finding in run.findings if _is_error(finding)]
        if not errors:
            return ""
        causes = [
            Cause.of(finding, run.check, "" if finding.device is None else uuids.get((run.node, finding.device), ""))
            for run, finding in errors
        ]
        return in_one_line(describe_causes(causes, errors[0][1].action))

    @property
    def runs(self) -> Iterator[Run]:
        """Every run, in the order of the steps."""
        return (run for step in self.steps for run in step.runs)


def contradictions(report: AcceptanceReport) -> Iterator[str]:
    """Where the report says something that does not follow from its runs."""
    names = [node.name for node in report.nodes]
    if len(names) != len({*names}):
        yield "nodes: a node is there twice"
    yield from _contradicting_conclusions(report, names)
    for number, step in enumerate(report.steps):
        yield from _contradictions(f"steps.{number}", step, {*names})
    if report.verdict is not (derived := worst([step.verdict for step in report.steps])):
        yield f"verdict: is {report.verdict}, and {derived} follows from the steps"
    if not report.simulated and any(run.simulated for run in report.runs):
        yield "simulated: is false, and runs are simulated"


def _contradicting_conclusions(report: AcceptanceReport, names: list[str]) -> Iterator[str]:
    if report.conclusions and sorted(each.node for each in report.conclusions) != sorted(names):
        yield "conclusions: there must be one for each node of the report"
    unfit = {run.node for run in report.runs if run.group is None and run.verdict not in _WITHOUT_ERRORS}
    for number, each in enumerate(report.conclusions):
        if each.node in unfit and each.decision is not GangDecision.REJECTED:
            yield f"conclusions.{number}.decision: is {each.decision}, and a run on {each.node} alone did not pass"


def _is_error(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR


def _contradictions(place: str, step: StepReport, names: set[str]) -> Iterator[str]:
    if step.verdict is not (derived := worst([run.verdict for run in step.runs])):
        yield f"{place}.verdict: is {step.verdict}, and {derived} follows from the runs"
    for number, run in enumerate(step.runs):
        if run.check != step.check:
            yield f"{place}.runs.{number}.check: is {run.check}, and the step's is {step.check}"
        if run.node not in names:
            yield f"{place}.runs.{number}.node: {run.node} is not among the nodes of the report"
        if run.verdict in _WITHOUT_ERRORS and any(map(_is_error, run.findings)):
            yield f"{place}.runs.{number}.verdict: is {run.verdict}, and the run has found an error"


def step_report(section: str, check: str, summary: str, runs: Iterable[Run]) -> StepReport:
    """The report of a step. Its duration is that of its longest run, because the runs are concurrent."""
    all_runs = tuple(runs)
    return StepReport(
        section=section,
        check=check,
        summary=summary,
        verdict=worst([run.verdict for run in all_runs]),
        duration_s=max((run.duration_s for run in all_runs), default=0.0),
        runs=all_runs,
    )


def report(
    suite: str,
    steps: Iterable[StepReport],
    nodes: Mapping[str, Inventory],
    started_at: float,
    duration_s: float,
    *,
    conclusions: Iterable[NodeConclusion] = (),
) -> AcceptanceReport:
    """The report of a suite, or of a preflight with its conclusions."""
    all_steps = tuple(steps)
    return AcceptanceReport(
        suite=suite,
        verdict=worst([step.verdict for step in all_steps]),
        started_at=started_at,
        duration_s=duration_s,
        nodes=tuple(NodeReport(name=name, inventory=inventory) for name, inventory in nodes.items()),
        steps=all_steps,
        simulated=any(run.simulated for step in all_steps for run in step.runs),
        conclusions=tuple(conclusions),
    )
