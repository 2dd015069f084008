"""One node as text for people: its state and why, its checks and findings, and its story."""

from collections.abc import Iterable, Iterator

from muster.instants import instant_text
from muster.machine_type import all_with_source
from muster.table import table
from muster.terminal import in_one_line
from muster_coordinator.evidence.node_clock import clock_in_words
from muster_coordinator.model.nodes import NodeFinding, NodeView, StoryEntry
from muster_coordinator.model.quarantine_views import CaseView
from muster_coordinator.views.node_list import JsonObject, devices, health, seen
from muster_coordinator.views.quarantine_text import not_done, state, why


def node_text(node: NodeView, case: CaseView, now: float) -> str:
    """Everything about one node, its state first."""
    return "\n".join((*_summary(node, case, now), *_checks(node), *_findings(node)))


def _summary(node: NodeView, case: CaseView, now: float) -> Iterator[str]:
    shown = node.model_dump(mode="json")
    yield f"{node.name}: {health(shown)}, {state(node.service, node.dry_run)}, {_heard(shown, now)}"
    reasons = (*(f"because {reason}" for reason in node.reasons), *why(case), *not_done(case))
    yield from (f"  {in_one_line(reason)}" for reason in reasons)  # a node may have written any of them
    if node.clock_ahead_s is not None:
        yield f"  its clock is {clock_in_words(node.clock_ahead_s)}"
    yield f"devices: {devices(shown)}"
    if known := all_with_source(node.machine_type, node.machine_types):
        yield f"machine type: {known[0]}" + "".join(f"; also {other}" for other in known[1:])
    yield from (f"{level}: {place}" for level, place in node.topology if place is not None)


def _heard(node: JsonObject, now: float) -> str:
    return f"{seen(node, now)} ago" if node.get("left") else f"last heard {seen(node, now)} ago"


def _checks(node: NodeView) -> Iterator[str]:
    if node.checks:
        rows = sorted((name, str(verdict)) for name, verdict in node.checks.items())
        yield "\n" + table(("CHECK", "VERDICT"), rows)


def _findings(node: NodeView) -> Iterator[str]:
    if node.findings:
        header = ("FINDING", "SEVERITY", "DEVICE", "ACTION", "SINCE", "SUMMARY")
        yield "\n" + table(header, map(_finding_row, node.findings))


def _finding_row(finding: NodeFinding) -> tuple[str, ...]:
    device = "-" if finding.device is None else str(finding.device)
    since = instant_text(finding.since)
    return finding.code, finding.severity, device, finding.action, since, finding.summary


def story_text(entries: Iterable[StoryEntry]) -> str:
    """A line for every step, in order."""
    return "\n".join(f"{instant_text(entry.at)}  {entry.kind}  {in_one_line(entry.text)}" for entry in entries)
