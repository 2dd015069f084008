"""Where nodes stand beside what they say themselves: by the topology file, and by the labels at their schedulers."""

from collections.abc import Mapping

from muster.model import Topology
from muster.topology_labels import TopologyLabels, topology_of
from muster_coordinator.evidence.node import NOWHERE, Node
from muster_coordinator.model.events import LabelsSeen
from muster_coordinator.topology.learned import LearnedLeaf, MeasuredPair, learn_leaves

MOST_PAIRS = 50_000
"""All pairs of 300 nodes; comparing them takes about half a second."""


class Places:
    """`declared` is what the topology file says, and `keys` are the operator's own for labels that place nodes."""

    def __init__(self, declared: Mapping[str, Topology], keys: TopologyLabels) -> None:
        self._declared = declared
        self._keys = keys
        self._waiting: dict[str, dict[str, dict[str, str]]] = {}  # by node and actor

    def locate(self, node: Node) -> None:
        """Notes where a node stands that was not known until now; labels that were seen before count."""
        node.declared = self._declared.get(node.name, NOWHERE)
        node.scheduler_labels |= self._waiting.pop(node.name, {})
        self._follow_labels(node)

    def keep(self, event: LabelsSeen) -> None:
        """Keeps the labels of a node until it is known, as far as it has any."""
        kept = {**self._waiting.pop(event.node, {}), event.actor: dict(event.labels)}
        if any(kept.values()):
            self._waiting[event.node] = kept

    def relabel(self, node: Node, event: LabelsSeen) -> bool:
        """Takes over the labels of a node, and where they place it; whether they are news."""
        if node.scheduler_labels.get(event.actor, {}) == event.labels:
            return False
        node.scheduler_labels[event.actor] = dict(event.labels)
        self._follow_labels(node)
        return True

    def _follow_labels(self, node: Node) -> None:
        labels = node.labels_of_schedulers
        node.scheduled = topology_of(labels, self._keys) if labels else NOWHERE


def learned_places(nodes: Mapping[str, Node], pairs: list[MeasuredPair]) -> list[tuple[str, LearnedLeaf]]:
    """The leaves of nodes with unknown places, learned from what pairs of nodes have reached.

    Nothing for more than MOST_PAIRS: comparing them would keep the fleet waiting.
    """
    met = {name for pair in pairs for name in (pair.one, pair.other)}
    known = {node.name: node.topology.leaf for node in nodes.values() if node.topology.leaf is not None}
    if known.keys() >= met or len(pairs) > MOST_PAIRS:
        return []
    leaves = learn_leaves(pairs, known)
    return [(name, leaf) for leaf in leaves for name in leaf.nodes if name not in known]
