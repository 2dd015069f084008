"""The pairs inside leaves of a round that crosses leaves."""

import itertools

from tests.cases import cases
from tests.coordinator.localize.runs import fleet

from muster_coordinator.localize.planning.inside_pairs import with_pairs_inside
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
