"""What groups reach that run at the same time, in networks that are solved by hand."""

import pytest
from tests.cases import cases

np = pytest.importorskip("numpy")

from benchmarks.fabric.collectives import Collective  # noqa: E402  it needs numpy
from benchmarks.fabric.contention import Wave  # noqa: E402  it needs numpy
from benchmarks.fabric.defects import BrokenPart, Defect, shares_with  # noqa: E402  it needs numpy
from benchmarks.fabric.network import FatTree, Wiring, even_leaves, uneven_leaves  # noqa: E402  it needs numpy

FOUR_LEAVES = even_leaves(64)
ACROSS = [(node, node + 16) for node in range(16)]
"""Each node of the first of four leaves with one of the second."""


def bandwidth(wiring: Wiring, groups, *defects: Defect, collective=Collective.RING, others=(), seed=0) -> list[float]:
    """The bus bandwidth of each group in GB/s: eight times that of its slowest rail."""
    return [
        round(8 * min(rates), 3) for rates in by_rail(wiring, groups, *defects, collective=collective, others=others)
    ]


def by_rail(wiring: Wiring, groups, *defects: Defect, collective=Collective.RING, others=(), seed=0, queue_pairs=1):
    """The bus bandwidth of each group on each rail in GB/s."""
    network = FatTree(wiring)
    return Wave(
        network=network,
        collective=collective,
        groups=[np.array(group) for group in groups],
        parts=shares_with(network, np.ones(network.nodes), defects),
        others=np.array(others, dtype=np.int64),
        seed=seed,
        queue_pairs=queue_pairs,
    ).rail_rates()


@cases("group, collective, gbps", [
    ([0], Collective.RING, 450),
    ([0, 1], Collective.RING, 400),
    ([0, 16], Collective.RING, 400),
    ([*range(64)], Collective.RING, 400),
    ([0, 1], Collective.TREE, 400 / 2 * 2),
    ([*range(64)], Collective.TREE, 400 * 63 / 64),
])  # fmt: skip
def test_a_healthy_group_fills_its_nics(group, collective, gbps) -> None:
    """Eight of 50 GB/s; a node alone has only NVLink, and a tree moves n - 1 of n parts."""
    assert bandwidth(Wiring(leaves=FOUR_LEAVES), [group], collective=collective) == [gbps]


@pytest.mark.parametrize("rail_optimised", [True, False])
@cases("pairs, gbps", [(2, 400), (8, 400), (10, 320), (16, 200)])
def test_an_oversubscribed_uplink_is_shared(rail_optimised, pairs, gbps) -> None:
    """Sixteen nodes have room for eight at full speed; beyond that all get less, however healthy they are."""
    wiring = Wiring(leaves=FOUR_LEAVES, oversubscription=2.0, rail_optimised=rail_optimised)
    assert bandwidth(wiring, ACROSS[:pairs]) == [gbps] * pairs


def test_who_stays_inside_a_leaf_does_not_notice() -> None:
    """Fourteen pairs fill the uplinks, and the pair inside the leaf has all of its NICs."""
    wiring = Wiring(leaves=FOUR_LEAVES, oversubscription=2.0)
    *across, inside = bandwidth(wiring, [*ACROSS[:14], (14, 15)])
    assert across == [pytest.approx(8 * 400 / 14, abs=0.001)] * 14
    assert inside == 400


def test_leaves_of_different_size_have_different_room() -> None:
    """Of leaves of 24, 16, 8 and 16 nodes at 2:1, the third has room for four: its eight pairs get half."""
    wiring = Wiring(leaves=uneven_leaves(64), oversubscription=2.0)
    assert wiring.leaves == (24, 16, 8, 16)
    from_third = [(40 + number, number) for number in range(8)]
    others = [(8 + number, 48 + number) for number in range(4)]
    assert bandwidth(wiring, [*from_third, *others]) == [200] * 8 + [400] * 4


def test_a_ring_in_topology_order_crosses_each_leaf_once() -> None:
    """So a group of the whole fleet is at full speed where as many pairs are not."""
    assert bandwidth(Wiring(leaves=FOUR_LEAVES, oversubscription=8.0), [[*range(64)]]) == [400]


def test_flows_on_one_way_share_it() -> None:
    """Two pairs across two ways with room for one flow each: a rail is at full speed if both directions differ."""
    wiring = Wiring(leaves=(2, 2), ways=2)
    rails = np.concatenate([by_rail(wiring, [(0, 2), (1, 3)], seed=seed)[0] for seed in range(500)])
    assert {*rails.round(6)} == {25, 50}
    assert np.mean(rails > 49) == pytest.approx(1 / 4, abs=0.03)


def test_many_queue_pairs_spread_over_the_ways() -> None:
    """With a thousand connections for each hop, no way is much fuller than another."""
    wiring = Wiring(leaves=(2, 2), ways=2)
    assert by_rail(wiring, [(0, 2), (1, 3)], queue_pairs=1000).min() > 45


DEFECTS = {
    "a node, alone": (Defect(part=BrokenPart.NODE, of=(0,), share=0.5), [0], 225),
    "a node": (Defect(part=BrokenPart.NODE, of=(0,), share=0.5), [0, 1], 200),
    "a link, alone": (Defect(part=BrokenPart.LINK, of=(0,), share=0.5), [0], 450),
    "a link": (Defect(part=BrokenPart.LINK, of=(0,), share=0.5), [0, 1], 200),
    "a rail": (Defect(part=BrokenPart.RAIL, of=(0, 3), share=0.5), [0, 1], 200),
    "the rail of another": (Defect(part=BrokenPart.RAIL, of=(2, 3), share=0.5), [0, 1], 400),
    "a leaf, inside": (Defect(part=BrokenPart.LEAF, of=(1,), share=0.4), [16, 17], 160),
    "a leaf, outside": (Defect(part=BrokenPart.LEAF, of=(1,), share=0.4), [0, 16], 160),
    "another leaf": (Defect(part=BrokenPart.LEAF, of=(1,), share=0.4), [0, 1], 400),
    "a leaf, alone": (Defect(part=BrokenPart.LEAF, of=(1,), share=0.4), [16], 450),
    "a switch, inside": (Defect(part=BrokenPart.SWITCH, of=(1, 5), share=0.4), [16, 17], 160),
    "a switch, outside": (Defect(part=BrokenPart.SWITCH, of=(1, 5), share=0.4), [0, 16], 160),
    "a switch elsewhere": (Defect(part=BrokenPart.SWITCH, of=(1, 5), share=0.4), [0, 1], 400),
    "a path": (Defect(part=BrokenPart.PATH, of=(0, 1), share=0.4), [16, 0], 160),
    "another path": (Defect(part=BrokenPart.PATH, of=(0, 1), share=0.4), [16, 32], 400),
    "a path in a ring": (Defect(part=BrokenPart.PATH, of=(0, 1), share=0.4), [0, 1, 16, 32], 160),
    "a path beside a ring": (Defect(part=BrokenPart.PATH, of=(0, 2), share=0.4), [0, 16, 32, 48], 400),
    "the only way": (Defect(part=BrokenPart.WAY, of=(0, 0), share=0.4), [0, 16], 160),
    "a leaf that hangs": (Defect(part=BrokenPart.LEAF, of=(1,)), [0, 16], 0),
    "a link that hangs": (Defect(part=BrokenPart.LINK, of=(0,)), [0, 16], 0),
    "a path that hangs": (Defect(part=BrokenPart.PATH, of=(0, 1)), [0, 16], 0),
}


@cases("defect, group, gbps", DEFECTS.values(), ids=DEFECTS)
def test_a_defect_bounds_the_groups_that_use_the_part(defect, group, gbps) -> None:
    """And no others; alone, only a node itself is slow."""
    assert bandwidth(Wiring(leaves=FOUR_LEAVES), [group], defect) == [gbps]


@cases("part", [BrokenPart.RAIL, BrokenPart.SWITCH])
def test_a_slow_rail_shows_by_itself(part) -> None:
    """The other seven carry what they can, whether one rail of a node or a switch is slow."""
    (rails,) = by_rail(Wiring(leaves=FOUR_LEAVES), [(0, 1)], Defect(part=part, of=(0, 3), share=0.5))
    assert [*rails] == [50, 50, 50, 25, 50, 50, 50, 50]


def test_what_a_slow_group_leaves_is_for_others() -> None:
    """At 2:1, eight of 16 pairs behind slow links take 10 of 50 GB/s on each rail: 80 of 400. The others get 40."""
    slow = [Defect(part=BrokenPart.LINK, of=(node,), share=0.2) for node in range(8)]
    wiring = Wiring(leaves=FOUR_LEAVES, oversubscription=2.0)
    assert bandwidth(wiring, ACROSS, *slow) == [80] * 8 + [320] * 8


def test_traffic_of_others_takes_its_part() -> None:
    """Four nodes send through an uplink of 200 GB/s on each rail, beside two flows of others on rail 0."""
    wiring = Wiring(leaves=(4, 4))
    up, _ = FatTree(wiring).uplinks(0)
    pairs = [(node, node + 4) for node in range(4)]
    assert bandwidth(wiring, pairs, others=[up[0], up[0]]) == [pytest.approx(8 * 200 / 6, abs=0.001)] * 4
