"""Nodes that stand elsewhere than their label says, by what they reach.

The idea: labels come from lists that people keep. A node that fails with the nodes of its leaf, and passes with those
of another one, stands there, and the path between both leaves is bad.

Example: the path a-c is bad. a9 stands at leaf a and has the label of leaf c. a9-c1 and a9-c2 are slow, as if leaf c
were bad, and a9-a1 passes, as if it had crossed the path.

Takes time in proportion to the runs of the nodes that have passed and have unexplained bad runs.
"""

from collections.abc import Iterator
from dataclasses import replace

from muster_coordinator.localize.evidence.fabric import KnownFabric
from muster_coordinator.localize.rules.clearance import Clearance
from muster_coordinator.localize.rules.evidence_against import disjoint

SEVERAL = 2
"""Once, chance may make a node slow inside its leaf."""


def corrected_fabric(clearance: Clearance) -> KnownFabric:
    """The fabric, in which each node that seems to have a wrong label stands at the leaf where it passes."""
    fabric = clearance.nodes.evidence.fabric
    moved = {node: replace(fabric.sites[node], leaf=leaf) for node, leaf in _moved(clearance)}
    return KnownFabric({**fabric.sites, **moved}) if moved else fabric


def _moved(clearance: Clearance) -> Iterator[tuple[str, str]]:
    """The healthy nodes that fail with several of their leaf and pass with none, with the only leaf where they pass."""
    evidence = clearance.nodes.evidence
    for node in clearance.healthy & clearance.nodes.suspects.keys():
        neighbours = evidence.fabric.neighbours(node)
        failing = disjoint(run.others(node) for run in clearance.runs_with_healthy(node))
        good = evidence.histories[node].good_together
        passed = {other for run in good for other in run.others(node)}
        if sum(map(neighbours.issuperset, failing)) >= SEVERAL and neighbours.isdisjoint(passed):
            leaves = evidence.fabric.leaves_of(passed)
            yield from ((node, leaf) for leaf in leaves if leaf is not None and len(leaves) == 1)
