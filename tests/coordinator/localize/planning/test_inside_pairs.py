"""The pairs inside leaves of a round that crosses leaves."""

import itertools

from tests.cases import cases
from tests.coordinator.localize.runs import diagnosed, fleet, ran

from muster_coordinator.localize.planning.inside_pairs import inside_for_the_first_time, with_pairs_inside
from muster_coordinator.localize.planning.tournament import across_leaves
from muster_coordinator.model.probes import Site


def inside(groups, sites):
    return [group for group in groups if len({sites[node].leaf for node in group}) == 1]


def paths(groups, sites):
    ends = (frozenset(sites[node].leaf for node in group) for group in groups)
    return {leaves for leaves in ends if len(leaves) == 2}


@cases(("count", "leaf_of"), [(64, 16), (64, 32), (232, 58)])
def test_two_thirds_are_inside_where_every_path_keeps_a_pair(count: int, leaf_of: int) -> None:
    """So links between leaves that are oversubscribed are not full."""
    sites = fleet(count, leaf_of=leaf_of)
    groups = with_pairs_inside(across_leaves(sites.values(), "s", 0), sites)
    assert sorted(node for group in groups for node in group) == sorted(sites)
    assert 0.6 <= len(inside(groups, sites)) / len(groups) <= 0.8
    leaves = {site.leaf for site in sites.values()}
    assert paths(groups, sites) == {frozenset(ends) for ends in itertools.combinations(leaves, 2)}


def test_of_1024_nodes_nearly_every_path_is_still_crossed() -> None:
    """One pair crosses nearly each of their paths, and 51 nodes may lie."""
    sites = fleet(1024, leaf_of=32)
    groups = with_pairs_inside(across_leaves(sites.values(), "s", 0), sites)
    assert sorted(node for group in groups for node in group) == sorted(sites)
    assert 27 <= len(inside(groups, sites)) <= 28
    assert len(paths(groups, sites)) > 0.96 * 496


def test_liars_with_many_leaves_of_their_own_do_not_meet() -> None:
    """51 of 1,024 nodes declare leaves of two: the pairs inside leaves are at larger ones."""
    sites = fleet(1024, leaf_of=32)
    sites |= {f"n{node}": Site(f"n{node}", leaf=f"own{node // 2}", places_itself=True) for node in range(51)}
    groups = with_pairs_inside(across_leaves(sites.values(), "s", 0), sites)
    leaves = {sites[node].leaf for group in inside(groups, sites) for node in group}
    assert len(leaves) == len(inside(groups, sites))
    assert not any(str(leaf).startswith("own") for leaf in leaves)


@cases(("count", "leaf_of"), [(128, 0), (16, 4), (12, 3)])
def test_nothing_changes_where_that_would_leave_out_many_paths(count: int, leaf_of: int) -> None:
    """Or where nobody knows leaves."""
    sites = fleet(count, leaf_of=leaf_of)
    before = across_leaves(sites.values(), "s", 0)
    assert {*map(frozenset, with_pairs_inside(before, sites))} == {*map(frozenset, before)}


ACROSS = [ran(f"n{n}", f"n{(n + 3) % 12}") for n in (0, 1, 2, 6, 7, 8)]
"""Twelve nodes at four leaves of three, in pairs that cross leaves."""


def test_where_each_path_needs_its_pair_nodes_run_inside_leaves_next() -> None:
    """Links between leaves that are oversubscribed hide what is wrong with nodes."""
    sites = fleet(12, leaf_of=3)
    probes = inside_for_the_first_time(diagnosed(sites, *ACROSS).evidence, sites)
    assert [probe.members for probe in probes] == [("n0", "n1"), ("n3", "n4"), ("n6", "n7"), ("n9", "n10")]
    assert not inside_for_the_first_time(diagnosed(sites, *ACROSS, ran("n0", "n1")).evidence, sites)


def test_eight_pairs_inside_leaves_are_enough() -> None:
    """More would share nothing, and cost runs."""
    sites = fleet(64, leaf_of=16)
    assert len(inside_for_the_first_time(diagnosed(sites, ran("n0", "n16")).evidence, sites)) == 8
