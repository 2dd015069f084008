"""What nodes send becomes events: each message is decoded, or dropped with its reason.

A message that is not valid is counted by kind, logged once a minute for each kind, and held against its node. No node
ends the coordinator with a message, not even if it meets a bug in muster.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress

import structlog

from muster.errors import RemoteError
from muster.log_limit import LogLimit
from muster.wire.report_head import ReportHead
from muster.wire.topics import NodeTopic, Topics
from muster_coordinator.evidence.node_events import event_of
from muster_coordinator.model.events import AgentMisbehaved, FleetEvent, ReportRepeated
from muster_coordinator.model.nodes import Misconduct
from muster_coordinator.runtime.inventory_digest import inventory_digest
from muster_coordinator.runtime.packets import IncomingMessage

WRONG = frozenset({"malformed", "oversized", "wrong_node"})
"""The kinds of refused messages that no version of the agent sends."""

log = structlog.get_logger()


class NodeMessages:
    """Decodes the messages of nodes; `read` returns the payload of one as it was before it was compressed.

    `is_known` says whether all runs of a node's report were taken already, `has_inventory` whether the inventory with
    this digest was taken last from a node. `received` counts messages, `refused` counts dropped ones by kind.
    """

    def __init__(
        self,
        topics: Topics,
        read: Callable[[str, NodeTopic, bytes], bytes],
        *,
        is_known: Callable[[str, ReportHead], bool],
        has_inventory: Callable[[str, str], bool],
    ) -> None:
        self.received = 0
        self.refused: Counter[str] = Counter()
        self._topics = topics
        self._read = read
        self._is_known = is_known
        self._has_inventory = has_inventory
        self._log_limit = LogLimit()
        self._misconduct: dict[tuple[str, Misconduct], str] = {}

    def event(self, message: IncomingMessage, head: ReportHead | None) -> FleetEvent | None:
        """The event that a message is; None if it says nothing new, or was refused."""
        self.received += 1
        try:
            node, topic = self._topics.parse_node(message.topic)
            return self._decoded(message, head, node, topic)
        except RemoteError as error:
            self.refuse(error, message.topic)
            return None

    def refuse(self, error: RemoteError, topic: str) -> None:
        """Notes that a message on this topic was dropped."""
        self.refused[error.kind] += 1
        if (left_out := self._log_limit.admit(error.kind, time.monotonic())) is not None:
            detail = error.detail[:500]
            log.warning("message_refused", kind=error.kind, detail=detail, topic=topic[:500], left_out=left_out)
        if error.kind in WRONG:
            with suppress(RemoteError):
                self._misconduct.setdefault((self._topics.parse_node(topic)[0], Misconduct.REFUSED), error.kind)

    def note_dropped(self, dropped: Mapping[tuple[str, NodeTopic], int]) -> None:
        """Notes how many messages beyond its allowance each node has sent on each topic."""
        for (node, topic), count in dropped.items():
            self.refused["beyond_allowance"] += count
            self._misconduct.setdefault((node, Misconduct.FLOODING), topic)

    def take_misconduct(self) -> list[AgentMisbehaved]:
        """The misconduct of nodes since the last call, once for each node and kind."""
        noted, self._misconduct = self._misconduct, {}
        return [AgentMisbehaved(node, kind, detail) for (node, kind), detail in noted.items()]

    def _decoded(
        self, message: IncomingMessage, head: ReportHead | None, node: str, topic: NodeTopic
    ) -> FleetEvent | None:
        if not message.payload and topic in (NodeTopic.PRESENCE, NodeTopic.INVENTORY):
            return None  # somebody has cleared the retained message
        try:
            if head is not None and self._is_known(node, head):
                return ReportRepeated(node, head.stream)
            digest = inventory_digest(message.payload) if topic is NodeTopic.INVENTORY else ""
            if digest and self._has_inventory(node, digest):
                return None  # its agent has sent a heartbeat before it, so it need not count as a sign of life
            payload = self._read(node, topic, message.payload)
            return event_of(topic, node, payload, kept=message.retain, digest=digest)
        except RemoteError:
            raise
        except Exception as error:  # a bug in muster; no node may end the coordinator with it
            self.refused["failed"] += 1
            self._misconduct.setdefault((node, Misconduct.FAILED), type(error).__name__)
            if (left_out := self._log_limit.admit("failed", time.monotonic())) is not None:
                log.exception("message_failed", topic=topic, node=node, left_out=left_out)
            return None
