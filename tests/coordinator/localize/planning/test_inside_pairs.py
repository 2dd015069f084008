"""The pairs inside leaves of a round that crosses leaves."""

import itertools

from tests.cases import cases
from tests.coordinator.localize.runs import fleet

from muster_coordinator.localize.planning.inside_pairs import with_pairs_inside
from muster_coordinator.localize.planning.tournament import across_leaves


def inside(groups, sites):
    return [group for group in groups if len({sites[node].leaf for node in group}) == 1]


@cases(("count", "leaf_of", "wanted"), [(64, 16, 3), (64, 32, 3), (232, 58, 7)])
def test_there_are_enough_even_if_some_are_lies(count: int, leaf_of: int, wanted: int) -> None:
    """One pair more than that may end up inside, since two pairs exchange partners; every path keeps a pair."""
    sites = fleet(count, leaf_of=leaf_of)
    before = across_leaves(sites.values(), "s", 0)
    groups = with_pairs_inside(before, sites)
    assert sorted(node for group in groups for node in group) == sorted(sites)
    assert wanted <= len(inside(groups, sites)) <= wanted + 1
    leaves = {site.leaf for site in sites.values()}
    crossed = {frozenset(sites[node].leaf for node in group) for group in groups}
    assert crossed >= {frozenset(ends) for ends in itertools.combinations(leaves, 2)}


@cases("leaf_of", [0, 2, 4])
def test_nothing_changes_where_that_would_leave_a_path_out(leaf_of: int) -> None:
    """Or where nobody knows leaves, or a leaf may have liars only."""
    sites = fleet(128, leaf_of=leaf_of)
    before = across_leaves(sites.values(), "s", 0)
    assert {*map(frozenset, with_pairs_inside(before, sites))} == {*map(frozenset, before)}
