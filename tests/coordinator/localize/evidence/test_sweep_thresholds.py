"""What is slow in a sweep of nodes with several kinds of hardware."""

import pytest
from tests.coordinator.localize.runs import ran

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.sensitivity import Sensitivity
from muster_coordinator.model.probes import GroupRun, Site

SITES = {
    f"{kind}{number}": Site(f"{kind}{number}", hardware_kind=kind) for kind in ("new", "old") for number in range(12)
}


def pairs(kind: str, *, at: float) -> list[GroupRun]:
    """All nodes of a kind but the last two, in pairs."""
    return [ran(f"{kind}{number}", f"{kind}{number + 1}", at=at) for number in range(0, 10, 2)]


BOTH = [*pairs("new", at=400.0), *pairs("old", at=200.0)]


def evidence(*runs: GroupRun) -> GroupEvidence:
    return GroupEvidence(SITES, (*BOTH, *runs))


@pytest.mark.parametrize(
    ("members", "at", "slow"),
    [
        (("old10", "old11"), 200.0, False),
        (("old10", "old11"), 140.0, True),
        (("new10", "new11"), 200.0, True),
        (("new10", "new11"), 390.0, False),
    ],
)
def test_each_kind_is_compared_with_itself(members: tuple[str, str], at: float, slow: bool) -> None:
    """What is normal for old nodes is slow for new ones."""
    run = ran(*members, at=at)
    assert evidence(run).thresholds.is_slow(run) == slow


def test_groups_of_two_kinds_are_compared_with_each_other() -> None:
    """They are as fast as the older node; one that is slower is slow."""
    mixed = [ran(f"new{number}", f"old{number}", at=200.0) for number in range(5)]
    slow = ran("new10", "old10", at=100.0)
    found = evidence(*mixed, slow).thresholds
    assert [*map(found.is_slow, (*mixed, slow))] == [False] * 5 + [True]


@pytest.mark.parametrize(("at", "cleared"), [(200.0, {"old10"}), (390.0, {"old10", "new10"})])
def test_a_group_of_two_kinds_clears_each_node_that_is_as_fast_as_its_kind(at: float, cleared: set[str]) -> None:
    """At the speed of the old one, the new node may have lost half, and nobody would see it."""
    mixed = [ran("new10", "old10", at=at), ran("new11", "old11", at=at)]
    found = evidence(*mixed)
    assert found.cleared & {"new10", "old10"} == cleared
    assert {node for node in ("new10", "old10") if found.histories[node].unclear} == {"new10", "old10"} - cleared


def test_the_smallest_loss_is_that_of_the_faster_kind() -> None:
    """A pair of both at the old ones' speed shows what a new node has lost only beyond a half."""
    mixed = [ran(f"new{number}", f"old{number}", at=200.0) for number in range(5)]
    found = evidence(*mixed).thresholds
    alone, both = found.smallest_loss(BOTH[-1]), found.smallest_loss(mixed[0])
    assert alone is not None
    assert both is not None
    assert both == pytest.approx(1 - (1 - alone) / 2, abs=0.02)


def test_a_kind_with_one_run_is_compared_with_nothing() -> None:
    """However many runs the other kind had: only two of the old nodes took part."""
    runs = (*pairs("new", at=400.0), ran("old0", "old1", at=200.0))
    assert Sensitivity(GroupEvidence(SITES, runs)).uncompared == {"old0", "old1"}


def test_a_group_of_two_kinds_is_compared_with_the_runs_of_each() -> None:
    """So the only group of this mixture is compared with something."""
    assert Sensitivity(evidence(ran("new10", "old10", at=390.0))).uncompared == frozenset()


def test_neighbours_are_of_its_own_kind() -> None:
    """Those at its leaf with which a node is compared."""
    sites = {node: Site(node, leaf="a", hardware_kind=site.hardware_kind) for node, site in SITES.items()}
    assert GroupEvidence(sites, ()).neighbours("old0") == {f"old{number}" for number in range(1, 12)}
