"""The conclusions of a sweep: its verdict, the changes of each round, and notes for people."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from muster.model import Verdict
from muster_coordinator.evidence.node_clock import clock_in_words
from muster_coordinator.localize.wording.report import DiagnosisReport
from muster_coordinator.model.probes import RunOutcome
from muster_coordinator.model.sweep_records import SweepState
from muster_coordinator.sweeps.rounds import RoundLog
from muster_coordinator.sweeps.sweep_evidence import SweepEvidence

MOST_NAMES = 8
"""Maximum number of names in one line. Further names are only counted."""

UNTRIED = "the sweep ended before any of its runs had an outcome"

FailedT = TypeVar("FailedT")


def verdict_of_sweep(state: SweepState, report: DiagnosisReport, inconclusive: Sequence[str]) -> Verdict | None:
    """FAIL if a part failed, UNKNOWN if a node or path is inconclusive or the sweep was aborted; None while it runs."""
    if state not in (SweepState.FINISHED, SweepState.ABORTED):
        return None
    if report.anything_failed:
        return Verdict.FAIL
    is_open = inconclusive or report.inconclusive_paths or state is SweepState.ABORTED
    return Verdict.UNKNOWN if is_open else Verdict.PASS


def notes(
    inconclusive: Iterable[str], evidence: SweepEvidence, report: DiagnosisReport, log: RoundLog, *, ended_early: bool
) -> tuple[str, ...]:
    """Notes for people: why each node is inconclusive and what evidence it lacks, other observations, wrong clocks.

    With `ended_early`, nodes without a run get the note UNTRIED: the sweep would have tried them.
    """
    seen_last = {node: run.detail for run in evidence.runs for node in run.members if run.detail}
    missing = dict(report.missing_evidence)
    if ended_early:
        tried = {node for run in evidence.runs if run.outcome is not RunOutcome.VOID for node in run.members}
        missing |= dict.fromkeys(missing.keys() - tried, UNTRIED)
    why = {
        node: evidence.absent.get(node) or "; ".join(filter(None, (seen_last.get(node), missing[node])))
        for node in inconclusive
    }
    clocks = (f"the clock of {node} is {clock_in_words(ahead_s)}" for node, ahead_s in log.wrong_clocks().items())
    return (*(f"{node}: {sentence}" for node, sentence in why.items()), *report.observations, *clocks)


def changes_between(before: DiagnosisReport, after: DiagnosisReport) -> tuple[str, ...]:
    """The changes of the diagnosis by a round: one line for each kind of change."""
    return tuple(_lines(before, after))


def _lines(before: DiagnosisReport, after: DiagnosisReport) -> Iterator[str]:
    yield from _line("cleared", sorted(after.cleared - before.cleared))
    yield from _line("no longer cleared", sorted(before.cleared - after.cleared))
    yield from _line("suspected", _new(before.suspects, after.suspects, str))
    yield from _line("convicted", _new(before.failed_nodes, after.failed_nodes, lambda failed: failed.node))
    yield from _line(
        "convicted link", _new(before.failed_links, after.failed_links, lambda failed: " - ".join(failed.between))
    )
    yield from _line(
        "convicted fabric", _new(before.failed_fabric, after.failed_fabric, lambda failed: " - ".join(failed.leaves))
    )
    yield from _line("no longer convicted", _new(after.failed_nodes, before.failed_nodes, lambda failed: failed.node))


def _new(before: Iterable[FailedT], after: Iterable[FailedT], name: Callable[[FailedT], str]) -> list[str]:
    known = set(map(name, before))
    return [found for found in map(name, after) if found not in known]


def _line(what: str, names: list[str]) -> Iterator[str]:
    if len(names) > MOST_NAMES:
        yield f"{what}: {len(names)}, among them {', '.join(names[:MOST_NAMES])}"
    elif names:
        yield f"{what}: {', '.join(names)}"
