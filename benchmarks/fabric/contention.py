"""What groups reach that run at the same time: the hops of all of them as flows on one network.

The hops of a group on one rail move at one pace, because each rank passes on what it gets: they are one flow. A rail
does not wait for the others, so a fast rail takes its full share although the slowest rail decides when the group is
done. Real groups lie between this and eight rails in step, which leave more to others where links are full: of 64 nodes
in pairs over four ways, the median pair reaches 229 GB/s like this and 256 in step, the slowest tenth 178 in both.

ECMP: a switch hashes the addresses and ports of a connection and so sends it over one of the ways, always the same in
one run. Two connections on one way share it, however idle the others are. With several queue pairs, a hop is cut into
as many connections, each hashed by itself, and the fullest way decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from benchmarks.fabric.collectives import Collective, Hops, bus_share, hops_of
from benchmarks.fabric.flows import Floats, Numbers, Uses, max_min_rates
from benchmarks.fabric.network import NIC_GBPS, NVLINK_GBPS, RAILS, FatTree, PartShares


@dataclass(frozen=True, kw_only=True)
class Wave:
    """Groups of nodes that run at the same time, on a network whose `parts` deliver these shares.

    `others` has the link of each flow that belongs to nobody here. `seed` decides about ways. Each hop on a rail has
    this number of `queue_pairs`.
    """

    network: FatTree
    collective: Collective
    groups: Sequence[Numbers]
    parts: PartShares
    others: Numbers
    seed: int
    queue_pairs: int = 1

    def rail_rates(self) -> Floats:
        """The bus bandwidth of each group on each rail, in GB/s: one row for each group.

        A node alone reaches what its GPUs exchange over NVLink; each rail counts as an eighth of it.
        """
        inside = np.array([self.parts.nodes[nodes].min() for nodes in self.groups]) * NVLINK_GBPS / RAILS
        shares = np.array([bus_share(self.collective, len(nodes)) if len(nodes) > 1 else 1.0 for nodes in self.groups])
        ceilings = np.repeat(inside / shares, RAILS)
        group, source, target = self._hops()
        flows, links, times = self._uses(group, source, target, ceilings)
        others = np.arange(len(self.others))
        uses = Uses(
            np.concatenate([flows, len(ceilings) + others]),
            np.concatenate([links, self.others]),
            np.concatenate([times, np.ones(len(others))]),
        )
        limits = np.concatenate([ceilings, np.full(len(others), NIC_GBPS)])
        rates = max_min_rates(self.network.capacities(self.parts), uses, limits)[: len(ceilings)]
        found: Floats = shares[:, None] * rates.reshape(len(self.groups), RAILS)
        return found

    def _hops(self) -> tuple[Numbers, Numbers, Numbers]:
        """The group, the sender and the receiver of each hop; groups of one size together."""
        by_size: dict[int, list[int]] = {}
        for number, nodes in enumerate(self.groups):
            by_size.setdefault(len(nodes), []).append(number)
        none = np.empty(0, dtype=np.int64)
        found = [(none, none, none)]
        for size, numbers in by_size.items():
            if size > 1:
                hops = _hops_of(self.collective, size)
                nodes = np.stack([self.groups[number] for number in numbers])
                which = np.repeat(np.array(numbers), len(hops.source))
                found.append((which, nodes[:, hops.source].ravel(), nodes[:, hops.target].ravel()))
        group, source, target = (np.concatenate(column) for column in zip(*found, strict=True))
        return group, source, target

    def _uses(self, group: Numbers, source: Numbers, target: Numbers, ceilings: Floats) -> Uses:
        """The links of every connection; lowers `ceilings` to what paths and ways let through."""
        rail, pair = (each.ravel() for each in np.indices((RAILS, self.queue_pairs)))
        rail, pair = (np.tile(each, len(group)) for each in (rail, pair))
        group, source, target = (np.repeat(each, RAILS * self.queue_pairs) for each in (group, source, target))
        keys = np.stack([group, source, target, rail, pair])
        way = hashes(keys, self.seed) % self.network.wiring.ways
        flow = group * RAILS + rail
        np.minimum.at(ceilings, flow, self.network.ceilings(source, target, way, self.parts))
        links = np.stack(self.network.route(source, target, rail, way))
        is_used = links >= 0
        flows = np.broadcast_to(flow, links.shape)[is_used]
        return Uses(flows, links[is_used], np.full(len(flows), 1 / self.queue_pairs))


def hashes(keys: Numbers, seed: int) -> Numbers:
    """A hash of each column: splitmix64, row by row (Steele, Lea and Flood 2014)."""
    state = np.full(keys.shape[1], seed & (2**64 - 1), dtype=np.uint64)
    for row in keys:
        state = state + row.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return (state >> np.uint64(1)).astype(np.int64)


@lru_cache(maxsize=64)
def _hops_of(collective: Collective, nodes: int) -> Hops:
    return hops_of(collective, nodes)
