"""What counts as slow in a sweep, although some nodes may lie about what they reach."""

import pytest
from tests.cases import cases
from tests.coordinator.localize.runs import fleet, ran, void, well

from muster_coordinator.localize.evidence.fabric import KnownFabric
from muster_coordinator.localize.evidence.slow_runs import Thresholds
from muster_coordinator.model.probes import GroupRun

IMPOSSIBLE = 1e300

MEASURED = [*well(16), ran("n0", "n1", at=0.5)]
"""Pairs of 16 nodes: n0 and n1 are suspects, the others have passed."""


def thresholds(nodes: int, *runs: GroupRun) -> Thresholds:
    return Thresholds(nodes, nodes, runs)


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


LEAVES = fleet(32, leaf_of=8)
"""Four leaves of eight nodes."""


def across(share: float) -> list[GroupRun]:
    """Two pairs over each of the six paths between the leaves, of which each reaches this share of 1.5."""
    ends = [(0, 8), (1, 16), (2, 24), (9, 17), (10, 25), (18, 26)]
    return [ran(f"n{one}", f"n{other}", at=1.5 * share) for one, other in ends * 2]


def within_leaves() -> list[GroupRun]:
    return [ran(f"n{number}", f"n{number + 1}") for number in (3, 5, 11, 13, 19, 21, 27, 29)]


def test_runs_across_leaves_are_compared_with_each_other() -> None:
    """Links between leaves may be slower than NICs; what is slow among such runs is below that level."""
    found = Thresholds(32, 32, (*across(0.75), *within_leaves()), KnownFabric(LEAVES))
    assert found.are_kinds_apart
    assert not any(map(found.is_slow, across(0.75)))
    assert all(map(found.is_slow, across(0.6)))
    assert found.is_slow(ran("n3", "n4", at=1.5 * 0.75)), "inside a leaf it is slow"


def test_the_level_of_one_bad_leaf_is_no_level() -> None:
    """All runs across leaves had a member there, so they are compared with the others."""
    bad = [ran(f"n{number}", f"n{8 * number + 8}", at=0.6) for number in range(3)]
    found = Thresholds(32, 32, (*bad, *bad, *within_leaves()), KnownFabric(LEAVES))
    assert not found.are_kinds_apart
    assert all(map(found.is_slow, bad))


def test_what_is_bad_inside_a_leaf_is_no_level_either() -> None:
    """Only nodes of a bad leaf have run inside; what runs across leaves reach is the least to ask."""
    bad = [ran(f"n{number}", f"n{number + 1}", at=0.6) for number in (3, 5)]
    found = Thresholds(32, 32, (*across(1.0), *bad), KnownFabric(LEAVES))
    assert all(map(found.is_slow, bad))


@cases(("share", "clears"), [(1.0, True), (0.61, True), (0.59, False)])
def test_a_run_that_shares_its_links_may_hide_a_fault(share: float, *, clears: bool) -> None:
    """It is not slow among its kind, but it shows less than what more nodes than may lie have reached."""
    found = Thresholds(32, 32, (*across(share), *within_leaves()), KnownFabric(LEAVES))
    run = across(share)[0]
    assert (run.is_pass and not found.is_bad(run), found.clears(run)) == (True, clears)


@cases(("share", "clears"), [(0.75, True), (0.74, True), (0.7, False)])
def test_a_run_across_slow_uplinks_clears_nobody_if_it_is_a_little_slower_than_others(
    share: float, *, clears: bool
) -> None:
    """Links between leaves carry 75 % of what nodes reach inside, so a node that has lost as much hardly shows."""
    run = ran("n3", "n12", at=1.5 * share)
    found = Thresholds(32, 32, (*across(0.75), *within_leaves(), run), KnownFabric(LEAVES))
    assert (run.is_pass and not found.is_bad(run), found.clears(run)) == (True, clears)


def test_liars_cannot_raise_what_clears() -> None:
    """Two of 64 nodes claim the impossible, again and again; three may lie."""
    lies = [ran("n6", "n7", at=IMPOSSIBLE)] * 8
    assert Thresholds(64, 64, (*lies, *across(1.0)), KnownFabric(LEAVES)).clears(across(1.0)[0])
