"""What people see of a node that is out: from when on it may be tested, how far it is, and whether it needs them."""

from collections.abc import Callable
from typing import Any

from muster.model import ServiceState, Verdict
from muster.quarantine_settings import ReturnSettings

Of = Callable[..., list[Any]]

PATIENT = ReturnSettings(passes=2, pause_s=0, wait_s=600, times=1)


def test_when_it_may_return(quarantine: Any, of: Of) -> None:
    """In its view and in its story; then it is tested, and not before."""
    told = quarantine(3, returning=PATIENT)
    said = told.accuse("a", "nvml.gone")
    back_at = told.machine.case_view("a").back_at
    assert back_at == told.now + 600
    assert "IN_SERVICE to CORDONED: it is gone; it may be tested from 1970-01-12T13:56:40.000Z on" in of("notes", said)
    told.absolve("a")
    told.wait(599)
    assert told.state("a") is ServiceState.CORDONED
    told.wait(1)
    assert (told.state("a"), told.now) == (ServiceState.PROBATION, back_at)
    assert told.machine.case_view("a").back_at is None


def test_how_far_its_tests_are(quarantine: Any, of: Of) -> None:
    """Each round that it has passed is told with how many it takes."""
    told = quarantine(3, returning=PATIENT)
    told.accuse("a", "nvml.gone")
    told.absolve("a")
    told.wait(600)
    assert told.machine.case_view("a").rounds == 2
    said = [note for _ in range(2) for note in of("notes", told.end_test("a", Verdict.PASS))]
    assert said[-1] == "1 of 2 rounds passed"


def test_that_it_needs_a_person(quarantine: Any) -> None:
    """When it was out too often."""
    told = quarantine(3, returning=PATIENT)
    told.accuse("a", "nvml.gone")
    assert told.machine.case_view("a").needs_person == ""
    told.let_in("a")
    told.wait(1)
    told.accuse("a", "nvml.gone")
    assert told.machine.case_view("a").needs_person == "it was out 2 times"
    told.release("a")
    assert (told.state("a"), told.machine.case_view("a").needs_person) == (ServiceState.PROBATION, "")
