"""Nodes of one kind of hardware run with each other, in every part of a plan."""

import pytest
from tests.coordinator.localize.past_sweeps import bad, before, known
from tests.coordinator.localize.runs import diagnosed, ran

from muster_coordinator.localize.evidence.prior import NO_PRIOR, SweepPrior
from muster_coordinator.localize.planning.follow_up import follow_up
from muster_coordinator.localize.strategies.adaptive import Adaptive
from muster_coordinator.model.probes import GroupRun, Probe, Site


def fleet(leaves: int = 4, **kinds: int) -> dict[str, Site]:
    """A number of nodes of each kind, spread over leaves."""
    names = [(f"{kind}{number}", kind, number) for kind, count in kinds.items() for number in range(count)]
    return {node: Site(node, leaf=f"leaf{number % leaves}", hardware_kind=kind) for node, kind, number in names}


def kinds(probe: Probe) -> set[str]:
    return {node.rstrip("0123456789") for node in probe.members}


def asked(sites: dict[str, Site], *runs: GroupRun) -> list[Probe]:
    return follow_up(diagnosed(sites, *runs), frozenset(), seed="s", passes=1)


def well(kind: str, count: int, *, at: float, first: int = 0) -> list[GroupRun]:
    numbers = range(first, first + count, 2)
    return [ran(f"{kind}{number}", f"{kind}{number + 1}", at=at) for number in numbers]


CROSSED = [
    *(ran(f"new{one}", f"new{other}", at=400.0) for one, other in ((0, 2), (0, 3), (1, 2), (1, 3), (0, 4))),
    ran("old0", "old4", at=200.0),
]
"""The paths between four leaves that runs of neighbours do not cross, and a run of each kind inside a leaf."""


@pytest.mark.parametrize("prior", [NO_PRIOR, known(before(1, bad("old0", "new0"), cleared="new1 new2 old2 old3"))])
def test_the_first_round_has_groups_of_one_kind(prior: SweepPrior) -> None:
    """Each node once, also where the numbers are odd; a suspect of an earlier sweep meets a good node of its kind."""
    sites = fleet(new=33, old=15, oldest=4)
    for seed in "abcdef":
        probes = Adaptive(sites, seed=seed, prior=prior).next_groups((), frozenset())
        assert sorted(node for probe in probes for node in probe.members) == sorted(sites)
        assert all(len(kinds(probe)) == 1 for probe in probes)


def test_a_rare_node_runs_with_the_most_frequent_kind() -> None:
    """It has nobody of its own."""
    probes = Adaptive(fleet(new=10, old=5, rare=1), seed="s").next_groups((), frozenset())
    (found,) = (probe for probe in probes if "rare0" in probe.members)
    assert kinds(found) == {"new", "rare"}


def test_suspects_meet_partners_and_controls_of_their_kind() -> None:
    """A new partner would be as slow as the old suspect should be."""
    sites = fleet(new=16, old=16)
    passed = [*well("new", 16, at=400.0), *well("old", 12, at=200.0), *well("old", 2, at=200.0, first=14), *CROSSED]
    runs = [*passed, ran("old12", "old13", at=90.0)]
    partners = asked(sites, *runs)
    assert [kinds(probe) for probe in partners] == [{"old"}, {"old"}]
    alone = asked(sites, *runs, ran("old12", "old0", at=90.0), ran("old13", "old2", at=200.0))
    assert {len(probe.members) for probe in alone} == {1}
    assert set().union(*map(kinds, alone)) == {"old"}


def test_nodes_without_a_result_clear_those_of_their_kind() -> None:
    """Two pairs of one kind each, instead of two of both."""
    sites = fleet(new=8, old=8)
    probes = asked(sites, *well("new", 6, at=400.0), *well("old", 6, at=200.0), *CROSSED)
    assert {probe.members for probe in probes} == {("new6", "new7"), ("old6", "old7")}


def test_a_path_is_tried_again_by_nodes_of_the_kind_that_was_bad() -> None:
    """Old nodes do not need what it should let through."""
    sites = fleet(leaves=3, new=12, old=12)
    passed = [(0, 2), (1, 5), (3, 8), (4, 11), (6, 9), (7, 10)]
    runs = [ran("new0", "new1", at=160.0), *(ran(f"new{one}", f"new{other}", at=400.0) for one, other in passed)]
    runs += well("old", 12, at=200.0)
    probes = [probe for probe in asked(sites, *runs) if "although its nodes are healthy" in probe.reason]
    assert probes
    assert all(kinds(probe) == {"new"} for probe in probes)


def test_a_kind_whose_runs_all_crossed_leaves_runs_inside_them() -> None:
    """The runs of the other kind do not show what is normal for it."""
    sites = {
        **{f"new{n}": Site(f"new{n}", leaf=f"leaf{n % 4}", hardware_kind="new") for n in range(8)},
        **{f"old{n}": Site(f"old{n}", leaf=f"leaf{n % 2}", hardware_kind="old") for n in range(8)},
    }
    runs = [*(ran(f"new{n}", f"new{n + 4}", at=400.0) for n in range(4)), *well("old", 8, at=120.0)]
    inside = [probe for probe in asked(sites, *runs) if probe.reason.endswith("all runs so far crossed leaves")]
    assert {node for probe in inside for node in probe.members} == {f"old{n}" for n in range(8)}
    assert all(len({sites[node].leaf for node in probe.members}) == 1 for probe in inside)
