"""The hops of rings and trees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

from benchmarks.fabric.collectives import Collective, bus_share, double_tree, hops_of  # noqa: E402  it needs numpy


def test_a_ring_passes_everything_on() -> None:
    """Each node sends to the next one, the last to the first."""
    hops = hops_of(Collective.RING, 4)
    assert [*zip(hops.source, hops.target, strict=True)] == [(0, 1), (1, 2), (2, 3), (3, 0)]


def test_the_first_tree_is_that_of_nccl() -> None:
    """The picture in src/graph/trees.cc: 14 ranks, 0 above 8, 8 above 4 and 12, and so on."""
    children: dict[int | None, list[int]] = {}
    for rank, parent in enumerate(double_tree(14)[0]):
        children.setdefault(parent, []).append(rank)
    drawn = {None: [0], 0: [8], 8: [4, 12], 4: [2, 6], 12: [10, 13], 2: [1, 3], 6: [5, 7], 10: [9, 11]}
    assert children == drawn


@given(st.integers(2, 200))
def test_both_trees_reach_every_rank(nodes: int) -> None:
    """From one root, over few levels; and no NIC carries more than four hops each way."""
    for tree in double_tree(nodes):
        assert tree.count(None) == 1
        assert all(_levels(tree, rank) <= nodes.bit_length() for rank in range(nodes))
    hops = hops_of(Collective.TREE, nodes)
    assert max(np.bincount(hops.source)) <= 4
    assert max(np.bincount(hops.target)) <= 4


def _levels(tree: list[int | None], rank: int) -> int:
    """The number of hops to the root; a tree with a loop would not end here."""
    level = 0
    while (parent := tree[rank]) is not None and level <= len(tree):
        rank, level = parent, level + 1
    return level


def test_the_bus_bandwidth_of_two_nodes_is_what_a_nic_carries() -> None:
    """A ring has one hop each way on it, the trees two with half of the data."""
    for collective, hops in ((Collective.RING, 1), (Collective.TREE, 2)):
        assert bus_share(collective, 2) * 50 / hops == 50
