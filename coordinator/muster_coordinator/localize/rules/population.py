"""Nodes that are slow alike in themselves: another kind of machine, or a setting, and no faults.

The idea: hardware breaks node by node, and differently. If a quarter of all nodes reaches the same lower value, they
have something in common: an older generation of GPUs, a power limit, a driver. That is a finding about the fleet.

Example: of 64 nodes, 32 reach 450 alone and 32 reach 225, all within 3 %. Nobody is convicted. If only two of the slow
ones have run alone, but 30 others are at half of normal at best with each other, the same holds for these two.

Takes O(n log n) for n nodes.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.reached import best_of_nodes
from muster_coordinator.localize.evidence.slow_runs import Thresholds
from muster_coordinator.localize.significance import crowds

FEWEST, SHARE = 4, 0.25
"""Minimum size of a population, in nodes and as a share of all that have passed or run alone. A fifth of a fleet may
have broken one by one. Nodes behind a bad leaf tell nothing about themselves."""

ALIKE = 1.1
"""Runs of one population lie within this ratio: five standard deviations of the noise of a usual fabric."""


def slow_alike(evidence: GroupEvidence) -> frozenset[str]:
    """Nodes that are slow alone by a common cause: there are many of them, and they reach the same.

    Nodes of one kind of hardware are compared with each other.
    """
    found = (
        _slow_alike(evidence.thresholds.among(kind), evidence.cleared.intersection(nodes))
        for kind, nodes in evidence.hardware.kinds.items()
    )
    return frozenset().union(*found)


def _slow_alike(thresholds: Thresholds, passed: frozenset[str]) -> frozenset[str]:
    """The nodes that are slow alike in the runs of these thresholds; `passed` are the nodes that have passed.

    What more nodes have reached than may lie is normal, even if most that have run alone are slow.
    """
    threshold, runs = thresholds.alone, thresholds.runs
    if threshold is None:
        return frozenset()
    alone = best_of_nodes(run for run in runs if len(run.members) == 1)
    best = sorted(alone.values(), reverse=True)[thresholds.liars :]
    normal = max((threshold.typical, *best[:1]))
    slow_below = normal * threshold.slow_below / threshold.typical
    slow = {node: value for node, value in alone.items() if 0 < value < slow_below}
    telling = passed.union(node for node, value in alone.items() if value > 0)
    enough = max(FEWEST, SHARE * len(telling))
    shares = {node: value / normal for node, value in slow.items()}
    return crowds(slow, ALIKE, enough) | _as_slow_as_others(thresholds, shares)


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
