"""Positions of nodes from sources other than the nodes: topology file, labels at schedulers, learned leaves.

Labels at schedulers also have the machine type.
"""

from collections.abc import Mapping

from muster.machine_type import labelled_machine_type
from muster.model import Topology
from muster.topology_labels import TopologyLabels, topology_of
from muster_coordinator.evidence.node import NOWHERE, Node
from muster_coordinator.model.events import LabelsSeen
from muster_coordinator.topology.learned import LearnedLeaf, MeasuredPair, learn_leaves

MOST_PAIRS = 50_000
"""All pairs of 300 nodes; comparing them takes about half a second."""


class Places:
    """Positions from the topology file (`declared`) and from labels; `keys` are the operator's label keys."""

    def __init__(self, declared: Mapping[str, Topology], keys: TopologyLabels) -> None:
        self._declared = declared
        self._keys = keys
        self._waiting: dict[str, dict[str, dict[str, str]]] = {}  # by node and actor

    def locate(self, node: Node) -> None:
        """Sets the position of a new node. Labels that arrived before the node count, too."""
        node.declared = self._declared.get(node.name, NOWHERE)
        node.scheduler_labels |= self._waiting.pop(node.name, {})
        self._follow_labels(node)

    def keep(self, event: LabelsSeen) -> None:
        """Keeps the labels of a node that is not known yet."""
        kept = {**self._waiting.pop(event.node, {}), event.actor: dict(event.labels)}
        if any(kept.values()):
            self._waiting[event.node] = kept

    def relabel(self, node: Node, event: LabelsSeen) -> bool:
        """Sets the labels of a node and the position that follows from them. Returns whether they changed."""
        if node.scheduler_labels.get(event.actor, {}) == event.labels:
            return False
        node.scheduler_labels[event.actor] = dict(event.labels)
        self._follow_labels(node)
        return True

    def _follow_labels(self, node: Node) -> None:
        labels = node.labels_of_schedulers
        node.scheduled = topology_of(labels, self._keys) if labels else NOWHERE
        node.labelled_machine_type = labelled_machine_type(labels)


def learned_places(nodes: Mapping[str, Node], pairs: list[MeasuredPair]) -> list[tuple[str, LearnedLeaf]]:
    """The leaves of nodes without a known leaf, learned from the bandwidth of pairs.

    Empty for more than MOST_PAIRS pairs: the fleet would wait too long.
    """
    met = {name for pair in pairs for name in (pair.one, pair.other)}
    known = {node.name: node.topology.leaf for node in nodes.values() if node.topology.leaf is not None}
    if known.keys() >= met or len(pairs) > MOST_PAIRS:
        return []
    leaves = learn_leaves(pairs, known)
    return [(name, leaf) for leaf in leaves for name in leaf.nodes if name not in known]
