"""Events about nodes for the quarantine.

Events gather here while a message is handled, because one run can change the evidence about many nodes, deep inside
methods that already return commands. Commands are never gathered like this: every method returns its own.
"""

from collections.abc import Container, Mapping

from muster_coordinator.evidence.definitions import Announcements
from muster_coordinator.evidence.node import Node
from muster_coordinator.evidence.standing_findings import standing_findings_of
from muster_coordinator.model.quarantine_events import (
    BacklogDelivered,
    EvidenceChanged,
    NodeDescribed,
    NodeHeard,
    NodeLost,
    QuarantineEvent,
    TestEnded,
)


class QuarantineNews:
    """Events about `nodes`. `domain` is the level of the topology at which nodes fail together."""

    def __init__(self, nodes: Mapping[str, Node], announced: Announcements, domain: str) -> None:
        self._nodes = nodes
        self._announced = announced
        self._domain = domain
        self._events: list[QuarantineEvent] = []
        self._tests_ended: list[TestEnded] = []
        self._delivered: dict[str, float] = {}  # the start of the youngest run, by node

    def take(self) -> list[QuarantineEvent]:
        """Events since the last call: evidence first, then the tests that have ended."""
        delivered = (BacklogDelivered(node=node, through=through) for node, through in self._delivered.items())
        events: list[QuarantineEvent] = [*self._events, *delivered, *self._tests_ended]
        self._events, self._delivered, self._tests_ended = [], {}, []
        return events

    def note_all(self, without: Container[str]) -> None:
        """Notes all that is known about every node at the start, except for nodes of `without` that are online.

        No node has been heard yet. A node that has left comes as a new one when it is heard again.
        """
        for name, node in self._nodes.items():
            if node.online and name in without:
                continue
            self.note_details(node)
            if not node.online:
                self.note_lost(node)

    def note_heard(self, node: Node) -> None:
        """Notes that a node was heard: for the first time, again, or still after a restart of the coordinator."""
        self._events.append(NodeHeard(node=node.name))

    def note_lost(self, node: Node) -> None:
        """Notes that a node fell silent."""
        self._events.append(NodeLost(node=node.name))

    def note_details(self, node: Node) -> None:
        """Notes the description of a node, and its evidence."""
        self.note_description(node)
        self.note_evidence(node)

    def note_description(self, node: Node) -> None:
        """Notes the position of a node, the checks that it runs, and whether it leaves."""
        self._events.append(
            NodeDescribed(
                node=node.name,
                domain=getattr(node.topology, self._domain),
                own_checks=node.announced.own,
                usual_checks=self._announced.run_by_more_than(len(self._nodes) / 2),
                silent_after_s=node.announced.silent_after_s,
                departure=node.inventory.leaving,
            )
        )

    def note_evidence(self, node: Node) -> None:
        """Notes the findings that stand against a node, and whether older runs may still wait in its outbox."""
        self._events.append(
            EvidenceChanged(
                node=node.name,
                findings=standing_findings_of(node.evidence),
                is_fit=node.is_fit,
                unfit_because=node.unfit_because,
                is_complete=node.backlog_before is None,
            )
        )

    def note_delivered(self, node: str, started_at: float) -> None:
        """Notes that a node delivered a run although older runs may wait in its outbox."""
        self._delivered[node] = max(started_at, self._delivered.get(node, 0.0))

    def note_test_ended(self, event: TestEnded) -> None:
        """Notes the end of a test that the quarantine has requested."""
        self._tests_ended.append(event)
