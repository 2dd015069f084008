"""Copies the quarantine's decisions to the nodes of the registry."""

from collections import Counter
from collections.abc import Iterable

from muster.model import ServiceState
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.model.events import FleetCommand, SaveNode
from muster_coordinator.model.quarantine import NodeDecision, QuarantineRecord


class DecidedStates:
    """Service states of the nodes of `registry`. `changes` counts the nodes that came to each state since the start."""

    def __init__(self, registry: NodeRegistry) -> None:
        self.changes: Counter[ServiceState] = Counter()
        self._registry = registry

    def adopt(self, stored: Iterable[QuarantineRecord]) -> tuple[QuarantineRecord, ...]:
        """Takes over stored records, and returns them with one for each node that has none.

        For a node without a record, only its service state is known.
        """
        records = {record.node: record for record in stored}
        for name, node in self._registry.nodes.items():
            decision = NodeDecision(state=node.service, since=node.first_seen)
            record = records.setdefault(name, QuarantineRecord(node=name, decision=decision))
            node.dry_run, node.left = record.decision.dry_run, record.evidence.has_left
            node.evidence.date_as(record.evidence.findings)
            self._registry.counts.count(node)
        return tuple(records.values())

    def show(self, record: QuarantineRecord, now: float) -> list[FleetCommand]:
        """Copies a record to its node; ignores a node that was forgotten."""
        node = self._registry.nodes.get(record.node)
        decided = (record.state, record.decision.dry_run, record.evidence.has_left)
        if node is None or (node.service, node.dry_run, node.left) == decided:
            return []
        if node.service is not record.state:
            self.changes[record.state] += 1
        node.service, node.dry_run, node.left = decided
        return [SaveNode(node.record()), self._registry.announce(node, now)]
