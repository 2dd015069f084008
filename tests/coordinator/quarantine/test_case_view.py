"""What people see of a node that is out: from when on it may be tested, how far it is, and whether it needs them."""

from collections.abc import Callable
from typing import Any

from muster.model import ServiceState, Severity, Verdict
from muster.quarantine_settings import ReturnSettings
from muster_coordinator.model.quarantine_events import EvidenceChanged

Of = Callable[..., list[Any]]

PATIENT = ReturnSettings(passes=2, pause_s=0, wait_s=600, times=1)


def test_when_it_may_return(quarantine: Any, of: Of) -> None:
    """In its view and in its story; then it is tested, and not before."""
    told = quarantine(3, returning=PATIENT)
    said = told.accuse("a", "nvml.gone")
    retest_at = told.reconciler.case_view("a").retest_at
    assert retest_at == told.now + 600
    assert (
        "IN_SERVICE to CORDONED: it is gone; retest after 1970-01-12T13:56:40.000Z once all faults have cleared"
        in of("notes", said)
    )
    told.absolve("a")
    told.wait(599)
    assert told.state("a") is ServiceState.CORDONED
    told.wait(1)
    assert (told.state("a"), told.now) == (ServiceState.PROBATION, retest_at)
    assert told.reconciler.case_view("a").retest_at is None


def test_why_errors_take_it_not_out(quarantine: Any, of: Of) -> None:
    """By which row, or that there is none: in its view as long as they stand, and once in its story."""
    told = quarantine(3)
    spared = ("XID 31 does not require draining (policy row application)",)
    xids = tuple(told.charge("nvml.xid", device=device, evidence={"xid": 31}) for device in range(8))
    for _ in range(2):
        told.tell(EvidenceChanged(node="a", findings=xids, is_fit=False))
    assert told.reconciler.case_view("a").spared == spared
    told.accuse("b", "disk.slow")
    told.tell(EvidenceChanged(node="c", findings=(told.charge("disk.slow", severity=Severity.WARNING),), is_fit=False))
    assert told.reconciler.case_view("c").spared == ()
    said = [note for note in of("notes", told.said) if "does not require draining" in note]
    assert said == [*spared, "disk.slow does not require draining (no policy row)"]


def test_silence_that_takes_no_node_out_says_so(quarantine: Any, of: Of) -> None:
    """When it begins, as with any other error; where a row may take the node out for it, that is told instead."""
    told = quarantine(3, rows=())
    assert of("notes", told.lose("a")) == ["Agent silent; policy does not drain for this (no policy row)"]
    assert of("notes", told.lose("a")) == []
    assert "policy does not drain" not in "".join(of("notes", quarantine(3).lose("a")))


def test_how_far_its_tests_are(quarantine: Any, of: Of) -> None:
    """Each round that it has passed is told with how many it takes."""
    told = quarantine(3, returning=PATIENT)
    told.accuse("a", "nvml.gone")
    told.absolve("a")
    told.wait(600)
    assert told.reconciler.case_view("a").rounds == 2
    said = [note for _ in range(2) for note in of("notes", told.end_test("a", Verdict.PASS))]
    assert said[-1] == "1 of 2 rounds passed"


def test_that_it_needs_a_person(quarantine: Any) -> None:
    """When it was out too often."""
    told = quarantine(3, returning=PATIENT)
    told.accuse("a", "nvml.gone")
    assert told.reconciler.case_view("a").needs_person == ""
    told.let_in("a")
    told.wait(1)
    told.accuse("a", "nvml.gone")
    assert told.reconciler.case_view("a").needs_person == "drained 2 times"
    told.release("a")
    assert (told.state("a"), told.reconciler.case_view("a").needs_person) == (ServiceState.PROBATION, "")
