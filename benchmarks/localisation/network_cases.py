"""The cases on the simulated network: conditions under which healthy nodes differ, crossed with what is broken.

A condition without a fault is the healthy twin of the condition with one: whatever a method names there is wrong. The
conditions and faults of `KNOWN_GAPS` are those on which the rules failed when this simulation was new.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from benchmarks.fabric.collectives import Collective
from benchmarks.fabric.defects import BrokenPart, Defect
from benchmarks.fabric.disturbances import Disturbances, OlderNodes
from benchmarks.fabric.membership import HangEnding, Membership
from benchmarks.fabric.network import RAILS, FatTree, Wiring, even_leaves, lopsided_leaves, uneven_leaves
from benchmarks.fabric.swept_fleet import FleetSetup

FleetCondition = Callable[[int], FleetSetup]
Break = Callable[[FleetSetup, random.Random], FleetSetup]
NetworkCase = Callable[[int, random.Random], FleetSetup]

WAYS = 4
"""Spines of a small fleet. The fewer ways, the more flows share one by chance, and the less their number varies."""

SLOW, BARELY_SLOW = 0.4, 0.7
"""What a slow part delivers, as a share of normal."""

HALF_OLD = (OlderNodes(0.5),)

FEWEST_AT_LEAF = 3
"""With fewer nodes, a bad leaf cannot be told from bad links of its nodes."""


def fleet(  # each keyword is one way in which fleets differ
    nodes: int,
    *,
    leaves: Callable[[int], tuple[int, ...]] = even_leaves,
    oversubscription: float = 1.0,
    ways: int = 1,
    uplink_speed: float = 1.0,
    queue_pairs: int = 1,
    rail_optimised: bool = True,
    collective: Collective = Collective.RING,
    disturbances: Disturbances | None = None,
    membership: Membership | None = None,
) -> FleetSetup:
    """A fleet in which nothing is broken."""
    wiring = Wiring(
        leaves=leaves(nodes),
        oversubscription=oversubscription,
        ways=ways,
        uplink_speed=uplink_speed,
        rail_optimised=rail_optimised,
    )
    return FleetSetup(
        network=FatTree(wiring),
        disturbances=disturbances or Disturbances(),
        membership=membership or Membership(),
        collective=collective,
        queue_pairs=queue_pairs,
    )


CONDITIONS: dict[str, FleetCondition] = {
    "calm": fleet,
    "noise 5%": partial(fleet, disturbances=Disturbances(noise=0.05)),
    "trees": partial(fleet, collective=Collective.TREE),
    "2:1": partial(fleet, oversubscription=2.0),
    "2:1 uneven": partial(fleet, leaves=uneven_leaves, oversubscription=2.0),
    "2:1 lopsided": partial(fleet, leaves=lopsided_leaves, oversubscription=2.0),
    "slow uplinks": partial(fleet, uplink_speed=0.75),
    "slow uplinks, uneven": partial(fleet, leaves=uneven_leaves, uplink_speed=0.75),
    "slow uplinks, lopsided": partial(fleet, leaves=lopsided_leaves, uplink_speed=0.75),
    "2:1 uneven, one switch": partial(fleet, leaves=uneven_leaves, oversubscription=2.0, rail_optimised=False),
    "ECMP": partial(fleet, ways=WAYS),
    "ECMP, 4 queue pairs": partial(fleet, ways=WAYS, queue_pairs=4),
    "no labels": partial(fleet, membership=Membership(unlabelled=1.0)),
    "2:1 uneven, no labels": partial(
        fleet, leaves=uneven_leaves, oversubscription=2.0, membership=Membership(unlabelled=1.0)
    ),
    "a fifth unlabelled": partial(fleet, membership=Membership(unlabelled=0.2)),
    "5% mislabelled": partial(fleet, membership=Membership(mislabelled=0.05)),
    "a fifth declines": partial(fleet, membership=Membership(declining=0.2)),
    "agents vanish": partial(fleet, membership=Membership(vanishing=0.01)),
    "stragglers": partial(fleet, disturbances=Disturbances(straggling=0.02)),
    "heavy tail": partial(fleet, disturbances=Disturbances(straggling=0.05, heavy_tail=True)),
    "unequal nodes": partial(fleet, disturbances=Disturbances(node_spread=0.04)),
    "hot nodes": partial(fleet, disturbances=Disturbances(node_drift=0.1)),
    "hot racks": partial(fleet, disturbances=Disturbances(rack_drift=0.12)),
    "congestion": partial(fleet, disturbances=Disturbances(congestion=0.25)),
    "lasting congestion": partial(fleet, disturbances=Disturbances(congestion=0.25, lasting=True)),
    "two generations": partial(fleet, disturbances=Disturbances(older=HALF_OLD)),
    "two generations, declared": partial(
        fleet, disturbances=Disturbances(older=HALF_OLD), membership=Membership(typed=True)
    ),
    "two generations by leaf, declared": partial(
        fleet, disturbances=Disturbances(older=HALF_OLD, by_leaf=True), membership=Membership(typed=True)
    ),
    "three generations, declared": partial(
        fleet,
        disturbances=Disturbances(older=(OlderNodes(0.25, 0.75), OlderNodes(0.25))),
        membership=Membership(typed=True),
    ),
    "a few old nodes, declared": partial(
        fleet, disturbances=Disturbances(older=(OlderNodes(1 / 16),)), membership=Membership(typed=True)
    ),
    "60% at half speed": partial(fleet, disturbances=Disturbances(older=(OlderNodes(0.6),))),
    "a bad day": partial(
        fleet,
        leaves=uneven_leaves,
        oversubscription=2.0,
        ways=WAYS,
        queue_pairs=4,
        disturbances=Disturbances(noise=0.03, straggling=0.01, node_drift=0.05, rack_drift=0.05, congestion=0.1),
        membership=Membership(mislabelled=0.02, unlabelled=0.05, declining=0.1, vanishing=0.002),
    ),
}


def nothing(setup: FleetSetup, lots: random.Random) -> FleetSetup:
    """The healthy twin."""
    return setup


def a_node(setup: FleetSetup, lots: random.Random, *, share: float = SLOW, chance: float = 1.0) -> FleetSetup:
    """One node is slow."""
    return _broken(setup, BrokenPart.NODE, lots.randrange(setup.network.nodes), share=share, chance=chance)


def crash(setup: FleetSetup, lots: random.Random, *, drags: float) -> FleetSetup:
    """The ranks of one node crash, and drag others along with this probability."""
    defect = Defect(part=BrokenPart.NODE, of=(lots.randrange(setup.network.nodes),), crashes=True)
    return replace(setup, defects=(defect,), membership=replace(setup.membership, drags=drags))


def a_link(setup: FleetSetup, lots: random.Random, *, share: float = SLOW, chance: float = 1.0) -> FleetSetup:
    """The link of one node is slow."""
    return _broken(setup, BrokenPart.LINK, lots.randrange(setup.network.nodes), share=share, chance=chance)


def a_rail(setup: FleetSetup, lots: random.Random) -> FleetSetup:
    """One rail of one node is slow."""
    return _broken(setup, BrokenPart.RAIL, lots.randrange(setup.network.nodes), lots.randrange(RAILS))


def a_leaf(setup: FleetSetup, lots: random.Random, *, share: float = SLOW) -> FleetSetup:
    """The switches of one leaf are slow."""
    return _broken(setup, BrokenPart.LEAF, lots.choice(_large_leaves(setup)), share=share)


def a_switch(setup: FleetSetup, lots: random.Random) -> FleetSetup:
    """The switch of one rail is slow at one leaf; with one switch for all rails, the leaf."""
    planes = setup.network.planes
    part, rail = (BrokenPart.SWITCH, (lots.randrange(planes),)) if planes > 1 else (BrokenPart.LEAF, ())
    return _broken(setup, part, lots.choice(_large_leaves(setup)), *rail)


def a_path(setup: FleetSetup, lots: random.Random, *, share: float = SLOW) -> FleetSetup:
    """What lies between two leaves is slow."""
    return _broken(setup, BrokenPart.PATH, *sorted(lots.sample(_large_leaves(setup), 2)), share=share)


def a_way(setup: FleetSetup, lots: random.Random) -> FleetSetup:
    """The connection of one leaf with one spine is slow."""
    return _broken(setup, BrokenPart.WAY, lots.choice(_large_leaves(setup)), lots.randrange(setup.network.wiring.ways))


def a_leaf_and_a_label(setup: FleetSetup, lots: random.Random) -> FleetSetup:
    """A leaf is slow, and one healthy node has its label by mistake."""
    broken = a_leaf(setup, lots)
    (leaf,) = broken.defects[0].of
    others = [node for node, there in enumerate(setup.network.leaf_of) if there != leaf]
    return replace(broken, membership=replace(setup.membership, labels={lots.choice(others): leaf}))


def timed_out(setup: FleetSetup, lots: random.Random, *, breaks: Break) -> FleetSetup:
    """Runs that hang are ended by the agents at their deadline."""
    broken = breaks(setup, lots)
    return replace(broken, membership=replace(broken.membership, hang_ending=HangEnding.TIMED_OUT))


def nodes_at(setup: FleetSetup, lots: random.Random, *, share: float) -> FleetSetup:
    """A share of the nodes has a fault: slow in themselves, or at their link or at a rail, by 30 to 90 %."""
    bad = lots.sample(range(setup.network.nodes), max(1, round(share * setup.network.nodes)))
    parts = [lots.choice([BrokenPart.NODE, BrokenPart.LINK, BrokenPart.RAIL]) for _ in bad]
    defects = (
        Defect(
            part=part,
            of=(node, lots.randrange(RAILS)) if part is BrokenPart.RAIL else (node,),
            share=lots.uniform(0.1, BARELY_SLOW),
        )
        for node, part in zip(bad, parts, strict=True)
    )
    return replace(setup, defects=tuple(defects))


def _broken(setup: FleetSetup, part: BrokenPart, *of: int, share: float = SLOW, chance: float = 1.0) -> FleetSetup:
    return replace(setup, defects=(Defect(part=part, of=of, share=share, chance=chance),))


def _large_leaves(setup: FleetSetup) -> list[int]:
    """The leaves that have enough nodes for their fault to be found."""
    return [leaf for leaf, nodes in enumerate(setup.network.wiring.leaves) if nodes >= FEWEST_AT_LEAF]


HEALTHY = "healthy"

BREAKS: dict[str, Break] = {
    HEALTHY: nothing,
    "a node at 40%": a_node,
    "a node at 70%": partial(a_node, share=BARELY_SLOW),
    "a node crashes": partial(crash, drags=0.0),
    "a node crashes and drags": partial(crash, drags=0.5),
    "a link at 40%": a_link,
    "a rail at 40%": a_rail,
    "a leaf at 40%": a_leaf,
    "a leaf at 40%, one label wrong": a_leaf_and_a_label,
    "a switch at 40%": a_switch,
    "a path at 40%": a_path,
    "a way at 40%": a_way,
    "5% of the nodes": partial(nodes_at, share=0.05),
    "a node hangs": partial(a_node, share=0.0),
    "a link hangs": partial(a_link, share=0.0),
    "a leaf hangs": partial(a_leaf, share=0.0),
    "a path hangs": partial(a_path, share=0.0),
    "a leaf hangs until the deadline": partial(timed_out, breaks=partial(a_leaf, share=0.0)),
    "a path hangs until the deadline": partial(timed_out, breaks=partial(a_path, share=0.0)),
    "a link half of the time": partial(a_link, chance=0.5),
    "a node 0.3 of the time": partial(a_node, chance=0.3),
}


def is_possible(case: str, nodes: int) -> bool:
    """Whether a fleet of this size can have the fault: there is none between leaves where there is only one."""
    condition, broken = case.split(": ", 1)
    return not broken.startswith(BETWEEN_NODES) or len(_large_leaves(CONDITIONS[condition](nodes))) > 1


def _case(condition: FleetCondition, breaks: Break, nodes: int, lots: random.Random) -> FleetSetup:
    return breaks(condition(nodes), lots)


NETWORK_CASES: dict[str, NetworkCase] = {
    f"{condition}: {broken}": partial(_case, CONDITIONS[condition], BREAKS[broken])
    for condition in CONDITIONS
    for broken in BREAKS
}
"""Every condition with every fault."""

BETWEEN_NODES = ("a leaf", "a switch", "a path", "a way")
"""The beginnings of the names of faults between nodes, which need two leaves."""

INTERMITTENT = ("a link half of the time", "a node 0.3 of the time")
"""The faults that are not persistent. Their recall has no target."""

HEALTHY_TWINS = tuple(case for case in NETWORK_CASES if case.endswith(f": {HEALTHY}"))

CALM = tuple(case for case in NETWORK_CASES if case.startswith("calm: "))

KNOWN_GAPS = (
    "slow uplinks, lopsided: healthy",
    "slow uplinks, lopsided: a node at 40%",
    "2:1 lopsided: healthy",
    "2:1 lopsided: a node at 40%",
    "2:1 uneven: healthy",
    "2:1 uneven: a node at 40%",
    "ECMP: healthy",
    "ECMP: a node at 40%",
    "2:1 uneven, no labels: healthy",
    "2:1 uneven, no labels: a node at 40%",
    "stragglers: healthy",
    "calm: a leaf hangs",
    "calm: a path hangs",
    "calm: a link hangs",
    "calm: a leaf at 40%, one label wrong",
    "5% mislabelled: a leaf at 40%",
    "a fifth declines: a leaf at 40%",
    "a fifth declines: a path at 40%",
    "two generations: healthy",
    "60% at half speed: healthy",
    "calm: a link half of the time",
    "calm: a node 0.3 of the time",
)
"""Another simulation, which the rules were not made for, found these cases."""
