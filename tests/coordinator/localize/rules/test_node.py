"""Which nodes are at fault by themselves, and what falls just short of it."""

from dataclasses import replace

import pytest
from tests.coordinator.localize.runs import (
    THREE_LEAVES,
    crashed,
    culprits,
    diagnosed,
    failed,
    fleet,
    nowhere,
    ran,
    well,
)

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.model.probes import GroupRun


@pytest.mark.parametrize(
    ("second", "convicted"), [(crashed("n0", "n4", by=("n0",)), True), (ran("n0", "n4", at=0.3), False)]
)
def test_only_its_own_crashes_convict_a_node_that_passes(*, second: GroupRun, convicted: bool) -> None:
    """A crash beside one partner and a slow run with another may be the work of both partners."""
    runs = [*well(16), ran("n0", "n6"), crashed("n0", "n2", by=("n0",)), second]
    assert ("n0" in diagnosed(fleet(16), *runs).nodes.convicted) is convicted


def test_a_crash_of_its_own_ranks_is_not_excused_by_a_partner() -> None:
    """Each time the ranks of its partner crash too, and it passes with a third node."""
    runs = [crashed("a", "b", by=("a", "b")), crashed("a", "c", by=("a", "c")), ran("a", "d"), ran("e", "f")]
    assert culprits(diagnosed(nowhere("abcdef"), *runs)) == {(Part.NODE, "a")}


def test_more_than_half_of_the_rails_are_the_link() -> None:
    """Nobody is sent to three cables because of one loose link."""
    well_elsewhere = [ran(f"b{n}", f"c{n}") for n in (1, 2, 3, 4)] + [ran("a1", "a2")]
    rails = (0.3, 0.3, 0.3, 1.5)
    bad = [ran("a4", partner, rails=rails) for partner in ("a1", "a2", "b1", "c1")]
    controls = [ran("b1"), ran("b2"), ran("a4")]
    assert culprits(diagnosed(THREE_LEAVES, *well_elsewhere, *controls, *bad)) == {(Part.NODE_LINK, "a4")}


@pytest.mark.parametrize(
    ("own", "convicted"),
    [(crashed("n0", by=("n0",)), {"n0"}), (ran("n0"), {"n1"})],
    ids=["another crashes alone, too", "another passes alone"],
)
def test_the_crash_of_another_counts_against_no_straggler(own: GroupRun, convicted: set) -> None:
    """It ran into its deadline alone once, which chance explains."""
    late = replace(failed("n1"), hard=False)
    runs = [*well(16), crashed("n0", "n1", by=("n0",)), own, late, *(ran(f"n{n}") for n in range(4, 9))]
    assert diagnosed(fleet(16), *runs).convicted == convicted


def test_a_run_that_broke_says_nothing_about_how_slow_a_node_is() -> None:
    """A path hangs. n0 met n1 across it, and straggles once alone; nearly nothing is not nothing."""
    runs = [*well(16), failed("n0", "n1"), ran("n0", at=0.02), *(ran(f"n{n}") for n in range(4, 9))]
    assert not diagnosed(fleet(16), *runs).convicted
    assert diagnosed(fleet(16), *runs, ran("n0", at=0.02)).convicted == {"n0"}


PASSED = [ran("a1", "b1"), ran("a2", "b2"), ran("b3", "c2"), ran("b4", "c3"), ran("a4", "c4")]
CONTROLS = [ran("a1"), ran("b1"), ran("c3")]


@pytest.mark.parametrize(("with_others", "convicted"), [(0.4, set()), (1.5, {"a3"})])
def test_a_run_counts_against_no_node_if_its_partner_reached_no_more_with_others(
    with_others: float, convicted: set
) -> None:
    """The switch of c1 may be bad, and then a3 was slow alone twice, by chance."""
    bad = [ran("a3", "c1", at=0.4), ran("c1", "b3", at=with_others), ran("a3", at=0.45), ran("a3", at=0.45)]
    assert diagnosed(THREE_LEAVES, *PASSED, *bad, *CONTROLS).convicted == convicted


def test_what_members_claim_of_a_run_that_broke_excuses_nobody() -> None:
    """A liar would claim so much that its partner never reached as much with others."""
    broken = replace(failed("a3", "c1"), objective=1e29)
    bad = [broken, ran("c1", "b3", at=0.4), ran("a3", at=0.45), ran("a3", at=0.45)]
    assert diagnosed(THREE_LEAVES, *PASSED, *bad, *CONTROLS).convicted == {"a3"}


@pytest.mark.parametrize(("neighbours", "convicted"), [(1, {"a3"}), (2, set())])
def test_a_run_counts_against_no_node_if_several_of_its_leaf_reached_no_more(neighbours: int, convicted: set) -> None:
    """Its switch may be bad. In another round, something else made them slow."""
    bad = [ran("a3", "c1", at=0.4), ran("a3", at=0.45), ran("a3", at=0.45)]
    beside = [ran(f"a{number}", f"c{number + 1}", at=0.4) for number in (1, 2)]
    again = [ran("b3", "c1")]  # the partner does well with others
    at_once = [*bad, *beside[:neighbours], *again]
    assert diagnosed(THREE_LEAVES, *PASSED, *at_once, *CONTROLS).convicted == convicted
    later = [*bad, *(replace(run, round=1) for run in beside[:neighbours]), *again]
    assert diagnosed(THREE_LEAVES, *PASSED, *later, *CONTROLS).convicted == {"a3"}


@pytest.mark.parametrize(
    ("alone", "convicted"),
    [
        pytest.param([ran("n1", at=0.5), ran("n1")], False, id="slow once and passed"),
        pytest.param([failed("n1"), ran("n1")], True, id="broke alone, too"),
    ],
)
def test_runs_that_break_count_against_no_node_that_completes_its_runs_alone(
    alone: list[GroupRun], *, convicted: bool
) -> None:
    """Its link hangs, and it straggled once."""
    sites = fleet(64, leaf_of=4, places_itself=False)
    passed = [*well(64), ran("n0", "n4"), *(ran(f"n{n}") for n in range(8, 12))]
    bad = [failed("n1", other) for other in ("n0", "n20", "n30", "n40")]
    assert ("n1" in diagnosed(sites, *passed, *bad, *alone).nodes.convicted) == convicted
