"""How long a conviction by a sweep stands."""

from tests.cases import cases

from muster_coordinator.evidence.convictions import GOOD_RUNS_OF_INTERMITTENT, clearance_in_words, conviction
from muster_coordinator.evidence.health import Evidence
from muster_coordinator.model.sweep_records import FailedNode, SweepRecord, SweepState

SWEEP = SweepRecord(
    id="s1", state=SweepState.FINISHED, strategy="adaptive", check="collective", nodes=("n1", "n2"), created_at=0.0
)


def convicted(*, intermittent: bool) -> Evidence:
    failed = FailedNode(node="n1", code="collective.slow", confidence=0.9, reasons=("slow",), intermittent=intermittent)
    evidence = Evidence()
    evidence.convict(conviction(failed, SWEEP, 10.0))
    return evidence


@cases(
    ("intermittent", "good_runs", "stands"),
    [
        (False, [1], False),
        (True, [1], True),
        (True, [1] * (GOOD_RUNS_OF_INTERMITTENT - 1), True),
        (True, [1] * GOOD_RUNS_OF_INTERMITTENT, False),
        (True, [GOOD_RUNS_OF_INTERMITTENT], False),
        (True, [4, 4], True),
        (True, [4, 4, 1], False),
    ],
)
def test_a_fault_that_comes_and_goes_needs_several_good_runs(
    intermittent: bool, good_runs: list[int], stands: bool
) -> None:
    """In one sweep with several passes, or in several sweeps. One good run shows that a persistent fault is gone."""
    evidence = convicted(intermittent=intermittent)
    for runs in good_runs:
        assert evidence.clear("collective", runs)
    assert bool(evidence.convictions) == stands


def test_a_further_conviction_starts_again() -> None:
    """The good runs before it have shown nothing."""
    evidence = convicted(intermittent=True)
    evidence.clear("collective", GOOD_RUNS_OF_INTERMITTENT - 1)
    evidence.convict(convicted(intermittent=True).convictions["collective"])
    evidence.clear("collective", 1)
    assert evidence.convictions


def test_the_number_of_good_runs_that_are_missing_is_told() -> None:
    """Until the last one."""
    evidence = convicted(intermittent=True)
    evidence.clear("collective", 7)
    assert clearance_in_words("collective", evidence.convictions["collective"]) == (
        "passed a sweep with collective; its fault comes and goes, so 2 more good runs must follow before it is cleared"
    )
    assert clearance_in_words("collective", None) == "cleared by a sweep with collective"
