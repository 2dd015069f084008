"""The network of a fleet as links with capacities: NICs, leaf switches with their uplinks, spines.

Every node has one NIC for each rail. With rail-optimised wiring, the NICs of one rail go to a switch of their own, so a
leaf is a group of switches, one for each rail, and traffic stays on its rail. Otherwise all NICs of a leaf go to one
switch. In both, a leaf switch has a link to and from every spine; a spine is one of the ways that ECMP chooses from.
The switches themselves forward at full speed. Each link has a capacity for either direction.

Example: leaves of 32 nodes with 8 rails of 50 GB/s, rail-optimised, 2:1 oversubscribed, 4 ways. A switch has 32 x 50 =
1,600 GB/s down to nodes, 800 GB/s up to spines, and 200 GB/s for each way: four nodes fill it.

Sources: a NIC of a DGX H100 has 400 Gbit/s, 50 GB/s; NVLink 4 moves 450 GB/s each way for each GPU; scalable units have
32 nodes and a leaf switch for each of the 8 rails (NVIDIA DGX SuperPOD reference architecture, DGX H100).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from benchmarks.fabric.flows import Floats, Numbers

RAILS = 8
NIC_GBPS = 50.0
NVLINK_GBPS = 450.0
NODES_PER_LEAF = 32
NODES_PER_RACK = 8
FEWEST_LEAVES = 4
ONE_LEAF = 8


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """The wiring of a fleet. `leaves` has the number of nodes at each leaf, `ways` is the number of spines.

    `oversubscription` is the capacity from a leaf to its nodes, divided by that from the leaf to the spines. A flow to
    another leaf is no faster than `uplink_speed`, as a share of a NIC: the links between switches may be bundles of
    cables that are slower than a NIC.
    """

    leaves: tuple[int, ...]
    rail_optimised: bool = True
    oversubscription: float = 1.0
    ways: int = 1
    uplink_speed: float = 1.0


def even_leaves(nodes: int) -> tuple[int, ...]:
    """Leaves of 32 nodes, smaller ones where they would be fewer than four; up to eight nodes share one."""
    if nodes <= ONE_LEAF:
        return (nodes,)
    size = min(NODES_PER_LEAF, nodes // FEWEST_LEAVES)
    return (*[size] * (nodes // size), *[nodes % size][: nodes % size])


def uneven_leaves(nodes: int) -> tuple[int, ...]:
    """Leaves in turn half as large again, as large and half as large as even ones."""
    even = even_leaves(nodes)
    if len(even) == 1:
        return even
    wanted = [max(round(even[0] * share), 1) for _, share in zip(even, [1.5, 1.0, 0.5] * len(even), strict=False)]
    return _cut(wanted, nodes)


def lopsided_leaves(nodes: int) -> tuple[int, ...]:
    """One leaf has five of eight nodes, three have an eighth each. A quarter of all pairs stays inside a leaf then."""
    if nodes <= ONE_LEAF:
        return (nodes,)
    small = nodes // 8
    return _cut([nodes - 3 * small, small, small, small], nodes)


def _cut(wanted: list[int], nodes: int) -> tuple[int, ...]:
    """The sizes, cut or repeated so that they come to this number of nodes."""
    sizes: list[int] = []
    while (left := nodes - sum(sizes)) > 0:
        sizes.append(min(wanted[len(sizes) % len(wanted)], left))
    return tuple(sizes)


class PartShares(NamedTuple):
    """What parts deliver, as a share of what they should: 1 if healthy, 0 if nothing gets through.

    `nodes` by node and `links` by node and rail. `switches` by leaf and number: it counts for all ports of the switch,
    also for those to nodes. `ways` by leaf and spine, `paths` by two leaves: these also bound each single flow across
    them, to that share of a NIC. For a link that trained down to a lower speed, or loses packets, that is so even if
    the flow is the only one on it.
    """

    nodes: Floats
    links: Floats
    switches: Floats
    ways: Floats
    paths: dict[tuple[int, int], float]


class HopLinks(NamedTuple):
    """The links of hops: one NIC to send, one to receive, and the links to and from a spine, -1 within a switch."""

    sends: Numbers
    receives: Numbers
    up: Numbers
    down: Numbers


@dataclass(frozen=True)
class FatTree:
    """The links of a wiring. Nodes, leaves, rails and ways have numbers from 0; nodes are numbered leaf by leaf."""

    wiring: Wiring

    @cached_property
    def nodes(self) -> int:
        return sum(self.wiring.leaves)

    @property
    def planes(self) -> int:
        """The number of switches of each leaf."""
        return RAILS if self.wiring.rail_optimised else 1

    @cached_property
    def leaf_of(self) -> Numbers:
        """The leaf of each node."""
        return np.repeat(np.arange(len(self.wiring.leaves)), self.wiring.leaves)

    @cached_property
    def rack_of(self) -> Numbers:
        """The rack of each node; nodes of one rack share a leaf."""
        sizes = np.array([-(-nodes // NODES_PER_RACK) for nodes in self.wiring.leaves])
        place = np.concatenate([np.arange(nodes) for nodes in self.wiring.leaves])
        racks: Numbers = (np.cumsum(sizes) - sizes)[self.leaf_of] + place // NODES_PER_RACK
        return racks

    def healthy(self) -> PartShares:
        """Every part delivers all that it should."""
        leaves, ways = len(self.wiring.leaves), self.wiring.ways
        nodes, links = np.ones(self.nodes), np.ones((self.nodes, RAILS))
        return PartShares(nodes, links, np.ones((leaves, self.planes)), np.ones((leaves, ways)), {})

    def uplinks(self, leaf: int) -> tuple[Numbers, Numbers]:
        """The links of a leaf to the spines, and those from the spines."""
        each = self.planes * self.wiring.ways
        first = 2 * self.nodes * RAILS + leaf * each
        up = np.arange(first, first + each)
        return up, up + len(self.wiring.leaves) * each

    def capacities(self, parts: PartShares) -> Floats:
        """The capacity of each link in GB/s: NICs that send, NICs that receive, links to spines, links from spines."""
        ports = parts.switches[self.leaf_of][:, np.arange(RAILS) % self.planes]
        nics = np.minimum(np.minimum(parts.nodes[:, None], ports), parts.links) * NIC_GBPS
        sizes = np.array(self.wiring.leaves, dtype=np.float64)
        switch = sizes * (RAILS / self.planes) * NIC_GBPS / self.wiring.oversubscription
        shares = np.minimum(parts.switches[:, :, None], parts.ways[:, None, :])
        ways = ((switch / self.wiring.ways)[:, None, None] * shares).ravel()
        return np.concatenate([nics.ravel(), nics.ravel(), ways, ways])

    def route(self, source: Numbers, target: Numbers, rail: Numbers, way: Numbers) -> HopLinks:
        """The links of hops from node to node on a rail, over the spine `way` if they leave their leaf."""
        nics = self.nodes * RAILS
        here, there = self.leaf_of[source], self.leaf_of[target]
        plane = rail % self.planes
        switches = len(self.wiring.leaves) * self.planes
        up = 2 * nics + (here * self.planes + plane) * self.wiring.ways + way
        down = 2 * nics + (switches + there * self.planes + plane) * self.wiring.ways + way
        leaves = here != there
        sends, receives = source * RAILS + rail, nics + target * RAILS + rail
        return HopLinks(sends, receives, np.where(leaves, up, -1), np.where(leaves, down, -1))

    def ceilings(self, source: Numbers, target: Numbers, way: Numbers, parts: PartShares) -> Floats:
        """What each hop can reach by itself because of the uplinks, path or way that it takes, in GB/s."""
        here, there = self.leaf_of[source], self.leaf_of[target]
        shares = np.minimum(parts.ways[here, way], parts.ways[there, way])
        for (one, other), share in parts.paths.items():
            across = ((here == one) & (there == other)) | ((here == other) & (there == one))
            shares[across] = np.minimum(shares[across], share)
        return np.where(here != there, shares * self.wiring.uplink_speed * NIC_GBPS, np.inf)
