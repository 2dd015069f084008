"""Nodes that are slow alike in themselves: another kind of machine, or a setting, and no faults.

The idea: hardware breaks node by node, and differently. If a quarter of all nodes reaches the same lower value, they
have something in common: an older generation of GPUs, a power limit, a driver. That is a finding about the fleet. If
they are enough to be compared with each other, they are from then on, as if they had declared it.

Example: of 64 nodes, 32 reach 450 alone and 32 reach 225, all within 3 %. Nobody is convicted. If only four of the
slow ones have run alone, but 28 others are at half of normal at best with each other, the same holds for these four.

While too few nodes tell what is normal, every slow one may be of such a kind, and others run alone.

Takes O(n log n) for n nodes.
"""

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.evidence.hardware import ComparedKind, name_of
from muster_coordinator.localize.evidence.history import NodeHistory
from muster_coordinator.localize.evidence.reached import ALIKE, best_of_nodes
from muster_coordinator.localize.evidence.slow_runs import Thresholds
from muster_coordinator.localize.evidence.sweep_thresholds import SweepThresholds
from muster_coordinator.localize.evidence.threshold import Threshold
from muster_coordinator.localize.significance import crowds

FEWEST, SHARE = 2, 0.25
"""Minimum size of a population, in nodes and as a share of all that tell something about it. A fifth of a fleet may
have broken one by one. Nodes behind a bad leaf tell nothing about themselves.

Chosen by simulation: of 768 sweeps of four and six nodes, 17 name something healthy at 4, and 6 at 2; all are of fleets
where half of the nodes are older and nobody has declared it. As many faults are found.
"""

FEWEST_AT_LEAF = 3
"""Two nodes of one leaf may break alike; that three of them do is no chance."""

FEWEST_NORMAL = 3
"""How many nodes have to be normal alone before a slow one is convicted. In a fleet of three, it is both others.

Prevents: two of four nodes are older, and nobody has declared it. One of them crashes with others and the second is
half as fast as the two that are left.
"""

FEWEST_SEEN = 12
"""How many nodes have to be seen before a slow one is convicted, as long as others may be as slow. A node is seen if it
has run alone, or has reached clearly more with others than slow nodes do alone. If a quarter of the fleet is as slow,
there is another such node among twelve in 97 of 100 sweeps.

Prevents: of 16 nodes, eight are older, nobody has declared it, and each pair has one of them. Leaf a is bad, so only
its nodes run alone, beside a few controls. a2 is the only older one among them.
"""


def runs_alone(thresholds: SweepThresholds) -> Mapping[ComparedKind, "RunsAlone"]:
    """What the nodes of each declared kind reach alone, where that can be compared."""
    if sum(len(run.members) == 1 for run in thresholds.runs) < FEWEST:  # as in most sweeps of large fleets
        return {}
    found = {}
    for kind, nodes in thresholds.hardware.kinds.items():
        among = thresholds.among(kind)
        if among.alone is not None:
            found[kind] = RunsAlone(among, among.alone, frozenset(nodes), thresholds.passed.intersection(nodes))
    return found


def slow_alike(alone: Mapping[ComparedKind, "RunsAlone"]) -> Mapping[str, str]:
    """The nodes that are slow alone by a common cause, with the name of the kind that they are.

    There are many of them, or may be, and they reach the same. Nodes of one declared kind are compared with each other.
    """
    found: dict[str, str] = {}
    for kind, of_kind in alone.items():
        for population in of_kind.populations():
            name = f"{name_of(kind)} at {statistics.median(population.values()):.0%} of normal"
            found |= dict.fromkeys(population, name)
    return found


def may_be_slow_alike(histories: Iterable[NodeHistory], thresholds: SweepThresholds) -> bool:
    """Whether a quarter of these nodes reach so little that other hardware may be the cause, and not shared links.

    Prevents: 60 % of the fleet reach half of what others do. Nearly all pairs are that slow, so other pairs would tell
    nothing. Only a run alone shows what each node can do.
    """
    runs = [(*history.bad, *history.unclear) for history in histories]
    slower = sum(any(not thresholds.is_contended(run) for run in those) for those in runs)
    return slower >= max(FEWEST, SHARE * len(runs))


def _apart(shares: Mapping[str, float]) -> Iterator[Mapping[str, float]]:
    """The populations among these nodes: between what two of them reach, there is a gap."""
    population, last = dict[str, float](), 0.0
    for node, share in sorted(shares.items(), key=lambda item: item[1]):
        if population and share > ALIKE * last:
            yield population
            population = {}
        population[node] = last = share
    if population:
        yield population


@dataclass(frozen=True)
class RunsAlone:
    """What the `nodes` of one declared kind reach alone. `passed` are those that have passed with others."""

    thresholds: Thresholds
    typical: Threshold
    nodes: Set[str]
    passed: Set[str]

    @cached_property
    def best(self) -> Mapping[str, float]:
        """The highest value of each node that has one."""
        best = best_of_nodes(run for run in self.thresholds.runs if len(run.members) == 1)
        return {node: value for node, value in best.items() if value > 0}

    @cached_property
    def normal(self) -> float:
        """What more nodes have reached than may lie is normal, even if most that have run alone are slow."""
        best = sorted(self.best.values(), reverse=True)[self.thresholds.liars :]
        return max((self.typical.typical, *best[:1]))

    @cached_property
    def slow(self) -> Mapping[str, float]:
        """The slow nodes, with what they reach."""
        threshold = self.thresholds.alone_for(self.normal) or self.typical
        return {node: value for node, value in self.best.items() if value < threshold.slow_below}

    @cached_property
    def _together(self) -> Mapping[str, float]:
        """The highest value of each node with others."""
        return best_of_nodes(run for run in self.thresholds.runs if len(run.members) > 1)

    @cached_property
    def _telling(self) -> Set[str]:
        """The nodes that have run alone, and those whose passing with others shows that they are not slow alone.

        Rule: they have reached clearly more than a node that passes with others although it is slow alone. Prevents:
        seven of twelve nodes have a power limit, and every pair has one of them, so all pass. Only two of the seven run
        alone, and one of them would be convicted.
        """
        hidden = max((self._together.get(node, 0.0) for node in self.passed & self.slow.keys()), default=0.0)
        return self._better_than(hidden) | self.best.keys()

    @cached_property
    def _seen(self) -> Set[str]:
        """The nodes that have run alone, and those that reach clearly more with others than every slow node alone."""
        return self._better_than(max(self.slow.values(), default=0.0)) | self.best.keys()

    def _better_than(self, level: float) -> Set[str]:
        return {node for node in self.passed if self._together.get(node, 0.0) > ALIKE * level}

    @cached_property
    def unseen(self) -> Set[str]:
        """The nodes that may be as slow alone as the slow ones are."""
        return self.nodes - self._seen

    @cached_property
    def missing(self) -> int:
        """How many of the unseen nodes have to run alone before a slow one is known to be no kind of its own."""
        if not self.slow:
            return 0
        for_normal = min(FEWEST_NORMAL, len(self.nodes) - 1) - len(self._seen - self.slow.keys())
        for_others = 0 if self.passed <= self._seen else FEWEST_SEEN - len(self._seen)
        return max(0, for_normal, for_others)

    def populations(self) -> Iterator[Mapping[str, float]]:
        """The nodes that are slow by a common cause, or may be, each with its share of normal."""
        fewest, share = (1, 0.0) if self.missing else (FEWEST, SHARE)
        shares = {node: value / self.normal for node, value in self.slow.items()}
        found = crowds(self.slow, ALIKE, max(fewest, share * len(self._telling)))
        found |= _alike_at_a_leaf(self.thresholds, self.passed, self.slow)
        alike = {node: shares[node] for node in found | _as_slow_as_others(self.thresholds, shares)}
        return (population for population in _apart(alike) if len(population) >= fewest)


def _alike_at_a_leaf(thresholds: Thresholds, passed: Set[str], slow: Mapping[str, float]) -> frozenset[str]:
    """The nodes of a leaf without a node that has passed that are as slow as two others there.

    Only their runs alone show what they can do. Prevents: most of the fleet is old, and every pair has an old node, so
    all pass. Leaf d is bad, and only there nodes run alone: eight old ones would be convicted.
    """
    found: frozenset[str] = frozenset()
    for nodes in thresholds.fabric.leaves.values():
        if passed.isdisjoint(nodes):
            found |= crowds({node: slow[node] for node in slow.keys() & {*nodes}}, ALIKE, FEWEST_AT_LEAF)
    return found


def _as_slow_as_others(thresholds: Thresholds, alone: Mapping[str, float]) -> frozenset[str]:
    """The nodes whose share of normal `alone` is what a quarter of the other nodes reach at best without them.

    Prevents: half of 64 nodes are of an older generation, and a path hangs. Only the nodes that met across it run
    alone, among them six old ones. They would be convicted, although most pairs are as slow as they are.
    """
    normal = thresholds.best
    if not alone or not normal:
        return frozenset()
    others = (run for run in thresholds.runs if len(run.members) > 1 and alone.keys().isdisjoint(run.members))
    shares = sorted(value / normal for value in best_of_nodes(others).values() if value)
    enough = max(FEWEST, SHARE * len(shares))
    return frozenset(
        node
        for node, share in alone.items()
        if bisect_right(shares, ALIKE * share) - bisect_left(shares, share / ALIKE) >= enough
    )
