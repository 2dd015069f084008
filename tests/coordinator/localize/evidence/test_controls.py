"""What healthy pairs across leaves show while few groups run."""

from dataclasses import replace

import pytest
from tests.cases import cases
from tests.coordinator.localize.runs import fleet, ran, void

from muster_coordinator.localize.evidence.fabric import FEW_BESIDE, KnownFabric
from muster_coordinator.localize.evidence.slow_runs import Thresholds
from muster_coordinator.model.probes import GroupRun

IMPOSSIBLE = 1e300
MANY = FEW_BESIDE + 1

SITES = fleet(64, leaf_of=16, places_itself=False)


def beside(others: int, run: GroupRun) -> GroupRun:
    return replace(run, beside=others)


FIRST = [beside(31, ran(f"n{node}", f"n{node + 32}", at=200.0)) for node in range(32)]
"""All nodes in pairs across leaves, which share links."""

INSIDE = [beside(23, ran(f"n{node}", f"n{node + 1}", at=400.0)) for node in range(2, 50, 2)]
"""Nodes 2 to 49 in pairs inside leaves, which share none."""

CONTROLS = (ran("n2", "n18", at=400.0), ran("n3", "n34", at=396.0))
SUSPECT = ran("n0", "n17", at=240.0)
"""As fast as all were in the first round."""


def thresholds(*runs: GroupRun) -> Thresholds:
    return Thresholds(64, 64, (*FIRST, *INSIDE, *runs), KnownFabric(SITES))


QUIET: dict[str, tuple[int, list[GroupRun], int, bool]] = {
    "beside two control pairs": (2, [*CONTROLS], 2, True),
    "later, beside fewer groups": (4, [*CONTROLS], 0, True),
    "beside more groups than the control pairs": (2, [*CONTROLS], 3, False),
    "beside one control pair": (2, [CONTROLS[0]], 2, False),
    "beside many groups": (MANY, [*CONTROLS], MANY, False),
}


@cases("name", QUIET)
def test_a_run_is_compared_with_control_pairs_beside_as_many_groups_or_more(name: str) -> None:
    """Beside fewer, they would only have been faster."""
    others, controls, at, slow = QUIET[name]
    found = thresholds(*(beside(others, pair) for pair in controls))
    assert found.is_slow(beside(at, SUSPECT)) == slow


def test_a_pair_of_liars_makes_no_quiet_run_slow() -> None:
    """The level is what two pairs have reached."""
    honest = ran("n4", "n36", at=300.0)
    assert not thresholds(ran("n2", "n18", at=IMPOSSIBLE), ran("n3", "n34", at=300.0), honest).is_slow(honest)


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(ran("n2", "n4", at=400.0), id="inside a leaf"),
        pytest.param(ran("n52", "n18", at=400.0), id="of a node that was never clear"),
        pytest.param(ran("n5", "n18", at=400.0), id="of a node that was bad"),
        pytest.param(void("n2", "n18"), id="without a result"),
    ],
)
def test_other_pairs_are_no_controls(pair: GroupRun) -> None:
    """Most of them may be slow, or say nothing about links between leaves."""
    bad = ran("n5", "n6", at=100.0)
    assert thresholds(bad, CONTROLS[1], pair).control_pairs_missing(0) == 1


@pytest.mark.parametrize(
    ("more", "times", "slow"), [(1, 1, False), (0, 2, False), (1, 2, True)], ids=["once", "too few", "twice"]
)
def test_a_node_that_is_bad_again_and_again_shows_no_level_alone(more: int, times: int, *, slow: bool) -> None:
    """It has passed across leaves, whose links carry no more than it delivers. A bad partner makes it slow once."""
    nodes = [f"n{node}" for node in range(3, 3 + thresholds().controls_missing - 1 + more)]
    alone = [ran("n2", at=280.0), *(ran(node, at=450.0) for node in nodes)]
    bad = [ran("n2", f"n{node}", at=100.0) for node in range(50, 50 + times)]
    assert thresholds(*alone, *bad).is_slow(ran("n0", at=280.0)) == slow


@pytest.mark.parametrize(
    ("again", "straggling", "slow"), [((), ["n2"], False), ((450.0,), [], True), ((150.0,), [], False)], ids=str
)
def test_a_control_that_may_have_straggled_runs_once_more_and_its_best_run_counts(
    again: tuple[float, ...], straggling: list[str], *, slow: bool
) -> None:
    """A third of normal would be the level. If it is as slow again, it may be honest, and all others lie."""
    others = [f"n{node}" for node in range(3, 2 + thresholds().controls_missing)]
    controls = [ran("n2", at=150.0), *(ran(node, at=450.0) for node in others)]
    found = thresholds(*controls, ran("n2", "n50", at=100.0), *(ran("n2", at=at) for at in again))
    assert [*found.straggling_controls] == straggling
    assert found.is_slow(ran("n0", at=180.0)) == slow


def test_where_nothing_is_shared_control_pairs_do_not_count() -> None:
    """The first round shows what healthy nodes reach. Two pairs across the best paths are no level for others."""
    wide = [replace(run, objective=400.0 - 5 * place) for place, run in enumerate(FIRST)]
    assert not Thresholds(64, 64, (*wide, *CONTROLS), KnownFabric(SITES)).is_slow(SUSPECT)
    assert Thresholds(64, 64, (*[replace(run, objective=400.0) for run in FIRST],)).control_pairs_missing(0) == 0
    assert thresholds().control_pairs_missing(0) == 2
    assert thresholds().control_pairs_missing(MANY) == 0


def test_contention_says_nothing_about_noise() -> None:
    """Values of the first round differ by how many groups met on a link; runs alone do not."""
    first = [replace(run, objective=150.0 + 4 * place) for place, run in enumerate(FIRST)]
    controls = [ran(f"n{node}", at=450.0) for node in (2, 3, 4, 6)]
    found = Thresholds(64, 64, (*first, *INSIDE, *controls), KnownFabric(SITES))
    assert found.is_slow(ran("n0", at=0.7 * 450))


@cases(
    ("nodes", "leaf_of", "few"),
    [(9, 3, 2), (12, 4, 2), (24, 8, 3), (48, 8, 6), (64, 16, 7), (1024, 256, 63), (1024, 16, 127), (12, 0, 7)],
)
def test_the_smaller_the_fleet_the_fewer_groups_share_no_links(nodes: int, leaf_of: int, few: int) -> None:
    """At most one for each eight nodes, with room for two control pairs; unless nobody knows a leaf."""
    assert KnownFabric(fleet(nodes, leaf_of=leaf_of)).few_beside == few
