"""What counts as slow in a sweep, although some nodes may lie about what they reach."""

import pytest
from tests.coordinator.localize.runs import ran, void, well

from muster_coordinator.localize.evidence.slow_runs import Thresholds
from muster_coordinator.model.probes import GroupRun

IMPOSSIBLE = 1e300

MEASURED = [*well(16), ran("n0", "n1", at=0.5)]
"""Pairs of 16 nodes: n0 and n1 are suspects, the others have passed."""


def thresholds(nodes: int, *runs: GroupRun) -> Thresholds:
    return Thresholds(nodes, runs)


def test_a_large_group_counts_as_its_pairs() -> None:
    """Of eight nodes that pass together and six that are slow in pairs, more are healthy than slow."""
    slow = [ran(f"n{number}", f"n{number + 1}", at=0.5) for number in (8, 10, 12)]
    found = thresholds(16, ran(*(f"n{number}" for number in range(8))), *slow).together
    assert found is not None
    assert found.typical == 1.5


def test_a_pair_of_liars_makes_no_other_pair_slow() -> None:
    """Of 64 nodes three may lie, so one pair may claim an impossible value; few other pairs have a result yet."""
    healthy = ran("n2", "n3")
    assert not thresholds(64, ran("n0", "n1", at=IMPOSSIBLE), healthy, ran("n4", "n5")).is_slow(healthy)


def test_runs_alone_are_not_compared_before_there_are_controls_enough() -> None:
    """A single control may be a liar, and the suspect beside it healthy."""
    suspect = ran("n0", at=0.9)
    one = thresholds(16, *MEASURED, suspect, ran("n2"))
    assert (one.controls_missing, one.is_slow(suspect)) == (1, False)
    two = thresholds(16, *MEASURED, suspect, ran("n2"), ran("n4"))
    assert (two.controls_missing, two.is_slow(suspect)) == (0, True)


def test_the_lowest_control_bounds_what_a_node_may_claim_alone() -> None:
    """A liar among the controls claims an impossible value, and makes no suspect slow."""
    suspect = ran("n0")
    assert not thresholds(16, *MEASURED, suspect, ran("n2"), ran("n4", at=IMPOSSIBLE)).is_slow(suspect)


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([void("n2", "n4")], id="have not passed"),
        pytest.param([*well(16), ran("n2", "n4", at=0.3)], id="were bad since they passed"),
    ],
)
def test_suspects_are_no_controls(before: list[GroupRun]) -> None:
    """Most of them may lie."""
    assert thresholds(16, *before, ran("n2"), ran("n4")).controls_missing == 2
