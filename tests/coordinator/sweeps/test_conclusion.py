"""What a round has changed about the judgement."""

from typing import Any

from tests.cases import cases

from muster.model import Verdict
from muster_coordinator.localize.evidence.fabric import Path
from muster_coordinator.localize.wording.report import DiagnosisReport
from muster_coordinator.model.sweep_records import FailedFabric, FailedLink, FailedNode, SweepState
from muster_coordinator.sweeps.conclusion import MOST_NAMES, changes_between, verdict_of_sweep


def report(**found: Any) -> DiagnosisReport:
    nothing: dict[str, Any] = {
        "failed_nodes": (),
        "failed_links": (),
        "failed_fabric": (),
        "cleared": frozenset(),
        "suspects": (),
        "suspicions": (),
        "missing_evidence": {},
        "inconclusive_paths": (),
        "hardware": {},
        "why_slow": {},
        "observations": (),
        "smallest_loss": None,
    }
    return DiagnosisReport(**nothing | found)


FAILED = report(
    failed_nodes=(FailedNode(node="a", confidence=0.5, reasons=()),),
    failed_links=(FailedLink(between=("b", "c"), confidence=0.5, reasons=()),),
    failed_fabric=(FailedFabric(leaves=("l1", "l2"), confidence=0.5, reasons=()),),
)


@cases(
    ("before", "after", "lines"),
    [
        (report(), report(), ()),
        (FAILED, FAILED, ()),
        (report(), report(cleared=frozenset("ba"), suspects=("c",)), ("cleared: a, b", "suspected: c")),
        (report(cleared=frozenset("ab")), report(cleared=frozenset("a")), ("no longer cleared: b",)),
        (report(), FAILED, ("convicted: a", "convicted link: b - c", "convicted fabric: l1 - l2")),
        (FAILED, report(), ("no longer convicted: a",)),
        (report(suspects=("a", "b")), report(suspects=("b",)), ()),
    ],
)
def test_only_what_has_changed_is_told(before: DiagnosisReport, after: DiagnosisReport, lines: tuple[str, ...]) -> None:
    """A line for each kind of change."""
    assert changes_between(before, after) == lines


def test_many_names_are_only_counted() -> None:
    """With some of them as examples."""
    nodes = frozenset(f"n{number}" for number in range(MOST_NAMES + 1))
    (line,) = changes_between(report(), report(cleared=nodes))
    assert line == f"cleared: {MOST_NAMES + 1}, among them {', '.join(sorted(nodes)[:MOST_NAMES])}"


@cases(
    ("found", "verdict"),
    [
        ({}, Verdict.PASS),
        ({"inconclusive_paths": (Path(("l1", "l2"), of_leaves=True),)}, Verdict.UNKNOWN),
        ({"failed_nodes": FAILED.failed_nodes}, Verdict.FAIL),
    ],
)
def test_a_path_that_nobody_can_tell_about_is_no_pass(found: dict[str, Any], verdict: Verdict) -> None:
    """All nodes have passed, but a path was bad in each of its runs."""
    assert verdict_of_sweep(SweepState.FINISHED, report(**found), ()) is verdict
    assert verdict_of_sweep(SweepState.RUNNING, report(**found), ()) is None
