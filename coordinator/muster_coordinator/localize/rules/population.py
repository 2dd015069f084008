"""Nodes that are slow alike in themselves: another kind of machine, or a setting, and no faults.

The idea: hardware breaks node by node, and differently. If a quarter of all nodes reaches the same lower value, they
have something in common: an older generation of GPUs, a power limit, a driver. That is a finding about the fleet.

Example: of 64 nodes, 32 reach 450 alone and 32 reach 225, all within 3 %. Nobody is convicted.
"""

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.history import NodeHistory
from muster_coordinator.localize.significance import crowds

FEWEST, SHARE = 4, 0.25
"""Minimum size of a population, in nodes and as a share of the fleet. A fifth of a fleet may have broken one by one."""

ALIKE = 1.1
"""Runs of one population lie within this ratio: five standard deviations of the noise of a usual fabric."""


def slow_alike(evidence: GroupEvidence) -> frozenset[str]:
    """The nodes that were only slow alone, with best values so close together that they have a common cause.

    O(n log n) for n nodes.
    """
    slow = (node for node, history in evidence.histories.items() if history.bad_alone and not history.passed_alone)
    reached = {node: best for node in slow if (best := _best_alone(evidence.histories[node])) > 0}
    enough = max(FEWEST, SHARE * len(evidence.sites))
    return crowds(reached, ALIKE, enough)


def _best_alone(history: NodeHistory) -> float:
    alone = (run.objective for run in history.bad if len(run.members) == 1)
    return max((value for value in alone if value), default=0.0)
