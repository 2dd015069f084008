"""Shows on the nodes what the quarantine decided about them."""

from collections import Counter
from collections.abc import Iterable

from muster.model import ServiceState
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.model.events import Announce, Command, SaveNode
from muster_coordinator.model.quarantine import NodeDecision, QuarantineRecord


class DecidedStates:
    """Service states of the nodes of `registry`. `changes` counts how often a node came to each since the start."""

    def __init__(self, registry: NodeRegistry) -> None:
        self.changes: Counter[ServiceState] = Counter()
        self._registry = registry

    def adopt(self, stored: Iterable[QuarantineRecord]) -> tuple[QuarantineRecord, ...]:
        """Takes over stored records, and returns them with one for each node that has none.

        Of a node without a record, its service state is all that is known.
        """
        records = {record.node: record for record in stored}
        for name, node in self._registry.nodes.items():
            decision = NodeDecision(state=node.service, since=node.first_seen)
            record = records.setdefault(name, QuarantineRecord(node=name, decision=decision))
            node.dry_run, node.left = record.decision.dry_run, record.evidence.has_left
            node.evidence.date_as(record.evidence.findings)
        return tuple(records.values())

    def show(self, record: QuarantineRecord, now: float) -> list[Command]:
        """Shows a record on its node. A node that was forgotten shows nothing."""
        node = self._registry.nodes.get(record.node)
        decided = (record.state, record.decision.dry_run, record.evidence.has_left)
        if node is None or (node.service, node.dry_run, node.left) == decided:
            return []
        if node.service is not record.state:
            self.changes[record.state] += 1
        node.service, node.dry_run, node.left = decided
        return [SaveNode(node.record()), Announce("node", self._registry.view(node, now))]
