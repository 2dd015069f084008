"""What makes the runs of healthy nodes slow: noise, stragglers, heat, other traffic, nodes of another generation.

None of it is a fault: nothing can be replaced, and a method that names a part because of it is wrong.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from benchmarks.fabric.flows import Floats, Numbers
from benchmarks.fabric.network import RAILS, FatTree

REPETITIONS = 5
"""Number of repetitions of a run. Their median is its result, as in the checks of muster."""

STRAGGLER = 3.0
"""How many times as long a straggling run takes: a host that swaps, a daemon that wakes up."""

TAIL_FROM, TAIL_INDEX, LONGEST_TAIL = 1.2, 1.5, 20.0
"""Of a heavy tail, by Pareto: the least factor, its index, and a bound. One such run in eight takes five times as long
or longer. With this index there is a mean but no variance; lifetimes of Unix processes have one of 1 (Harchol-Balter
and Downey 1997).
"""

HEAT_PERIOD = 8
"""Rounds from hot to cold and back: some minutes, in which a GPU or a rack warms up under load."""

LEFT_OVER = 0.5
"""Flows of others on a congested uplink, for each NIC that the uplink was built for."""


class OlderNodes(NamedTuple):
    """Nodes of one older generation: their `share` of the fleet, and their `speed` as a share of normal."""

    share: float
    speed: float = 0.5


@dataclass(frozen=True, kw_only=True)
class Disturbances:
    """What disturbs a fleet.

    `noise` is the relative standard deviation of a repetition, `straggling` the share of runs that take three times as
    long; with `heavy_tail`, they take some other time. `node_spread` is the standard deviation, from the best down, of
    the speed of healthy nodes, which stays. `node_drift` and `rack_drift` say how much slower a node, or all nodes of a
    rack, are at their hottest. A leaf's uplinks are congested with probability `congestion` in each round, or during
    the whole sweep if it is `lasting`. `slower_nodes` is the share of nodes that are of an older generation and reach
    `slower_speed` of normal.
    """

    noise: float = 0.02
    straggling: float = 0.0
    heavy_tail: bool = False
    node_spread: float = 0.0
    node_drift: float = 0.0
    rack_drift: float = 0.0
    congestion: float = 0.0
    lasting: bool = False
    older: tuple[OlderNodes, ...] = ()
    by_leaf: bool = False


class DisturbedFleet:
    """The disturbances of one fleet during one sweep. `lasting` draws what stays, `passing` what differs by run."""

    def __init__(
        self,
        network: FatTree,
        disturbances: Disturbances,
        lasting: np.random.Generator,
        passing: np.random.Generator,
    ) -> None:
        self._network = network
        self._disturbances = disturbances
        self._passing = passing
        nodes, leaves = network.nodes, len(network.wiring.leaves)
        self.generation = generations(disturbances, nodes, lasting)
        self._node_phase = lasting.random(nodes)
        self._rack_phase = lasting.random(nodes)[network.rack_of]
        self._congested = lasting.random(leaves) < disturbances.congestion
        self._node_speed = 1 - disturbances.node_spread * np.abs(lasting.normal(size=nodes))

    def speed(self, moment: int) -> Floats:
        """The speed of each node in a round; 1 is normal."""
        node, rack = self._disturbances.node_drift, self._disturbances.rack_drift
        speed = (1 - node * _heat(self._node_phase, moment)) * (1 - rack * _heat(self._rack_phase, moment))
        speeds = np.array([1.0, *(older.speed for older in self._disturbances.older)])
        found: Floats = speed * self._node_speed * speeds[self.generation]
        return found

    def other_traffic(self) -> Numbers:
        """The link of each flow of others in this round. Their NICs are not those of the fleet."""
        wiring, chance = self._network.wiring, self._disturbances.congestion
        passing = self._passing.random(len(wiring.leaves)) < chance
        found = [np.empty(0, dtype=np.int64)]
        for leaf in np.flatnonzero(self._congested if self._disturbances.lasting else passing):
            nics = wiring.leaves[leaf] * RAILS // self._network.planes
            flows = math.ceil(LEFT_OVER * nics / wiring.ways)
            found += [np.repeat(links, flows) for links in self._network.uplinks(int(leaf))]
        return np.concatenate(found)

    def measured(self, values: Floats) -> Floats:
        """What runs show that would reach these values without noise; one row for each run.

        Each column has noise of its own, and a straggling run is slow in all.
        """
        repetitions = self._passing.normal(1.0, self._disturbances.noise, (*values.shape, REPETITIONS))
        straggles = self._passing.random(len(values)) < self._disturbances.straggling
        noisy: Floats = values * np.median(repetitions, axis=-1)
        return noisy / np.where(straggles, self._straggling_times(len(values)), 1.0)[:, None]

    def _straggling_times(self, runs: int) -> Floats:
        """How many times as long runs would take if they straggled."""
        if not self._disturbances.heavy_tail:
            return np.full(runs, STRAGGLER)
        return np.minimum(TAIL_FROM * (1 + self._passing.pareto(TAIL_INDEX, runs)), LONGEST_TAIL)


def generations(disturbances: Disturbances, nodes: int, lasting: np.random.Generator) -> Numbers:
    """The generation of each node, 0 for the newest: the first that is drawn for a fleet."""
    drawn = lasting.permutation(nodes)
    waiting = np.arange(nodes) if disturbances.by_leaf else drawn
    found = np.zeros(nodes, dtype=np.int64)
    for generation, older in enumerate(disturbances.older, start=1):
        count = round(older.share * nodes)
        found[waiting[:count]] = generation
        waiting = waiting[count:]
    return found


def _heat(phase: Floats, moment: int) -> Floats:
    """From 0, cold, to 1, hot."""
    heat: Floats = (1 - np.cos(2 * np.pi * (phase + moment / HEAT_PERIOD))) / 2
    return heat
