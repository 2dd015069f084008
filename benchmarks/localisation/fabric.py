"""A simulated fabric with faults: what a group of its nodes would measure.

The bandwidth of a group is the least that its members and what lies between them can do, as a share of normal, times
noise; the median over the repetitions of a run counts. What is wrong with a node shows in all its runs, also alone;
what is wrong with its link, a rail, its leaf or a path shows only in runs with others that use it.
"""

import random
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

from muster_coordinator.model.probes import GroupRun, Probe, RunOutcome, Site

RAILS = 8
NODES_PER_RACK = 8
NODES_PER_LEAF = 32
FEWEST_LEAVES = 4
REPETITIONS = 5


@dataclass(frozen=True, kw_only=True)
class Faults:
    """Shares of normal that faulty parts deliver; 0 crashes the run. `chance` says how often a node's shows."""

    nodes: dict[str, float] = field(default_factory=dict)
    rails: dict[tuple[str, int], float] = field(default_factory=dict)
    links: dict[str, float] = field(default_factory=dict)
    leaves: dict[str, float] = field(default_factory=dict)
    paths: dict[tuple[str, str], float] = field(default_factory=dict)
    chance: dict[str, float] = field(default_factory=dict)

    @property
    def bad_nodes(self) -> frozenset[str]:
        """The nodes of which something is at fault."""
        return frozenset((*self.nodes, *self.links, *(node for node, _ in self.rails)))


def lots_of(name: str) -> random.Random:
    """Lots that are the same whenever they are drawn under this name."""
    return random.Random(name)  # noqa: S311 - not a secret


def sites_of(count: int) -> dict[str, Site]:
    """A fleet of `count` nodes: racks of 8, leaves of 32, smaller ones where they would be fewer than four."""
    per_leaf = min(NODES_PER_LEAF, max(count // FEWEST_LEAVES, 1))
    per_rack = min(NODES_PER_RACK, per_leaf)
    return {
        f"n{number}": Site(f"n{number}", f"rack{number // per_rack}", f"leaf{number // per_leaf}")
        for number in range(count)
    }


class Fabric:
    """Runs groups over `sites`; what happens by chance is drawn from `lots`."""

    def __init__(self, sites: dict[str, Site], faults: Faults, noise: float, lots: random.Random) -> None:
        self.faults = faults
        self._sites = sites
        self._noise = noise
        self._lots = lots
        self._runs = 0

    @property
    def absent(self) -> frozenset[str]:
        """No node: all are always there."""
        return frozenset()

    def run_round(self, probes: Iterable[Probe]) -> list[GroupRun]:
        """What the groups show, which do not disturb each other."""
        return [self.run(probe) for probe in probes]

    def run(self, probe: Probe) -> GroupRun:
        """What the group shows. A crash takes down all members and does not tell whose it was."""
        self._runs += 1
        base = min(self._of_node(node) for node in probe.members)
        if len(probe.members) > 1:
            base = min(base, self._between(probe.members))
        rails = self._rails(probe.members) if len(probe.members) > 1 else [1.0]
        if base == 0 or min(rails) == 0:
            return GroupRun(
                group=f"g{self._runs}", members=probe.members, outcome=RunOutcome.BAD, detail="the run crashed"
            )
        return GroupRun(
            group=f"g{self._runs}",
            members=probe.members,
            outcome=RunOutcome.GOOD,
            objective=self._noisy(min(base, *rails)),
            rails=tuple(self._noisy(min(base, rail) / RAILS) for rail in rails) if probe.by_rail else (),
        )

    def _of_node(self, node: str) -> float:
        share = self.faults.nodes.get(node, 1.0)
        shows = share == 1.0 or self._lots.random() < self.faults.chance.get(node, 1.0)
        return share if shows else 1.0

    def _between(self, members: tuple[str, ...]) -> float:
        leaves = sorted({leaf for node in members if (leaf := self._sites[node].leaf) is not None})
        shares = [self.faults.links.get(node, 1.0) for node in members]
        shares += [self.faults.leaves.get(leaf, 1.0) for leaf in leaves]
        if self.faults.paths:  # a group of the whole fleet has too many to look for none
            shares += [self.faults.paths.get(ends, 1.0) for ends in combinations(leaves, 2)]
        return min(shares)

    def _rails(self, members: tuple[str, ...]) -> list[float]:
        if not self.faults.rails:
            return [1.0] * RAILS
        return [min(self.faults.rails.get((node, rail), 1.0) for node in members) for rail in range(RAILS)]

    def _noisy(self, share: float) -> float:
        repetitions = [self._lots.gauss(1.0, self._noise) for _ in range(REPETITIONS)]
        median: float = statistics.median(repetitions)
        return share * median
