"""Nodes that are slow alike in themselves: another kind of machine, or a setting, and no faults.

The idea: hardware breaks node by node, and differently. If a quarter of all nodes reaches the same lower value, they
have something in common: an older generation of GPUs, a power limit, a driver. That is a finding about the fleet. If
they are enough to be compared with each other, they are from then on, as if they had declared it.

Example: of 64 nodes, 32 reach 450 alone and 32 reach 225, all within 3 %. Nobody is convicted. If only four of the
slow ones have run alone, but 28 others are at half of normal at best with each other, the same holds for these four.

Takes O(n log n) for n nodes.
"""

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Set

from muster_coordinator.localize.evidence.hardware import name_of
from muster_coordinator.localize.evidence.history import NodeHistory
from muster_coordinator.localize.evidence.reached import ALIKE, best_of_nodes
from muster_coordinator.localize.evidence.slow_runs import Thresholds
from muster_coordinator.localize.evidence.sweep_thresholds import SweepThresholds
from muster_coordinator.localize.significance import crowds

FEWEST, SHARE = 2, 0.25
"""Minimum size of a population, in nodes and as a share of all that tell something about it. A fifth of a fleet may
have broken one by one. Nodes behind a bad leaf tell nothing about themselves.

Chosen by simulation: of 768 sweeps of four and six nodes, 17 name something healthy at 4, and 6 at 2; all are of fleets
where half of the nodes are older and nobody has declared it. As many faults are found.
"""

FEWEST_AT_LEAF = 3
"""Two nodes of one leaf may break alike; that three of them do is no chance."""


def slow_alike(thresholds: SweepThresholds) -> Mapping[str, str]:
    """The nodes that are slow alone by a common cause, with the name of the kind that they are.

    There are many of them, and they reach the same. Nodes of one declared kind are compared with each other.
    """
    found: dict[str, str] = {}
    if sum(len(run.members) == 1 for run in thresholds.runs) < FEWEST:  # as in most sweeps of large fleets
        return found
    for kind, nodes in thresholds.hardware.kinds.items():
        for population in _apart(_shares_alone(thresholds.among(kind), thresholds.passed.intersection(nodes))):
            if len(population) >= FEWEST:
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


def _shares_alone(thresholds: Thresholds, passed: frozenset[str]) -> Mapping[str, float]:
    """The nodes that are slow alike in the runs of these thresholds, each with its share of normal alone.

    `passed` are the nodes that have passed. What more nodes have reached than may lie is normal, even if most that have
    run alone are slow.
    """
    if thresholds.alone is None:
        return {}
    alone = best_of_nodes(run for run in thresholds.runs if len(run.members) == 1)
    best = sorted(alone.values(), reverse=True)[thresholds.liars :]
    normal = max((thresholds.alone.typical, *best[:1]))
    threshold = thresholds.alone_for(normal) or thresholds.alone
    slow = {node: value for node, value in alone.items() if 0 < value < threshold.slow_below}
    telling = _telling(thresholds, passed, slow.keys()).union(node for node, value in alone.items() if value > 0)
    enough = max(FEWEST, SHARE * len(telling))
    shares = {node: value / normal for node, value in slow.items()}
    alike = crowds(slow, ALIKE, enough) | _alike_at_a_leaf(thresholds, passed, slow)
    alike |= _as_slow_as_others(thresholds, shares)
    return {node: shares[node] for node in alike}


def _telling(thresholds: Thresholds, passed: frozenset[str], slow: Set[str]) -> frozenset[str]:
    """The nodes whose passing with others shows that they are not as slow alone as these are.

    Rule: they have reached clearly more than a node that passes with others although it is slow alone. Prevents: seven
    of twelve nodes have a power limit, and every pair has one of them, so all pass. Only two of the seven run alone,
    and one of them would be convicted.
    """
    together = best_of_nodes(run for run in thresholds.runs if len(run.members) > 1)
    hidden = max((together.get(node, 0.0) for node in passed & slow), default=0.0)
    return frozenset(node for node in passed if together.get(node, 0.0) > ALIKE * hidden)


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
