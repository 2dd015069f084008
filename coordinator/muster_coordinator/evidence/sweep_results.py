"""What a sweep has found, as evidence about its nodes: convictions, clearances, and the leaves that its pairs show."""

from muster_coordinator.evidence.convictions import clearance_in_words, conviction
from muster_coordinator.evidence.node import Node
from muster_coordinator.evidence.places import learned_places
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.model.events import FleetCommand, SaveNode
from muster_coordinator.model.sweep_records import FailedNode, SweepRecord
from muster_coordinator.topology.learned import MeasuredPair


class SweepResults:
    """Adds the results of sweeps to the nodes of `registry`."""

    def __init__(self, registry: NodeRegistry) -> None:
        self._registry = registry

    def take(self, record: SweepRecord, now: float) -> list[FleetCommand]:
        """Adds the findings of a sweep that has ended."""
        commands: list[FleetCommand] = []
        for failed in record.failed_nodes:
            commands += self._convict(failed, record, now)
        for name in record.cleared_nodes:
            commands += self._clear(self._registry.nodes[name], record, now)
        story = self._registry.story
        for link in record.failed_links:
            text = f"the link between {' and '.join(link.between)} failed: {'; '.join(link.reasons)}"
            commands += [story.tell(name, "link_failed", text, record.id, now) for name in link.between]
        text = f"a sweep with {record.check} could neither clear nor convict it"
        return commands + [story.tell(name, "inconclusive", text, record.id, now) for name in record.inconclusive]

    def learn_leaves(self, pairs: list[MeasuredPair], cause: str, now: float) -> list[FleetCommand]:
        """Learns which nodes share a leaf from the bandwidth of the pairs of a sweep."""
        commands: list[FleetCommand] = []
        for name, leaf in learned_places(self._registry.nodes, pairs):
            node = self._registry.nodes[name]
            node.learned_leaf = leaf.name
            commands.append(self._registry.story.tell(name, "place", f"is at leaf {leaf}", cause, now))
            commands += self._registry.note_change(node, now)
        return commands

    def _convict(self, failed: FailedNode, record: SweepRecord, now: float) -> list[FleetCommand]:
        node, finding = self._registry.nodes[failed.node], conviction(failed, record, now)
        node.evidence.convict(finding)
        text = f"convicted by a sweep with {record.check}: {finding.summary}"
        entry = self._registry.story.tell(node.name, "convicted", text, record.id, now)
        return [entry, SaveNode(node.record()), *self._registry.judge(node, record.id, now)]

    def _clear(self, node: Node, record: SweepRecord, now: float) -> list[FleetCommand]:
        was_convicted = node.evidence.clear(record.check, record.least_runs)
        text = clearance_in_words(record.check, node.evidence.convictions.get(record.check))
        entry = self._registry.story.tell(node.name, "cleared", text, record.id, now)
        if not was_convicted:
            return [entry]
        return [entry, SaveNode(node.record()), *self._registry.judge(node, record.id, now)]
