"""Notices a broker that does not give a coordinator what it has kept of the nodes.

A coordinator subscribes to the topics of all nodes with a wildcard. Mosquitto then sends the retained message of each
node; RabbitMQ sends none. In a new fleet no broker sends any, because nodes come after the coordinator. So a
coordinator that hears nodes, and has got no kept message some seconds after it connected, subscribes to their
presences once more: the broker has kept those by now. If still none comes, it asks the nodes for their inventories.
"""

import math

from muster.wire.messages import KEPT_NOTHING

COMES_WITHIN_S = 3.0
"""When the first kept message has come. A broker sends them before all that it receives after the subscription."""


class KeptMessages:
    """Whether kept messages came in this connection. `asks` is what the presence of the coordinator says about it."""

    def __init__(self) -> None:
        self.asks: tuple[str, ...] = ()
        self._missing_at = math.inf
        self._has_heard_nodes = self._has_tried = False

    def connected(self, now: float) -> None:
        """Notes a new connection with its subscriptions."""
        self.asks, self._has_heard_nodes, self._has_tried = (), False, False
        self._missing_at = now + COMES_WITHIN_S

    def heard(self, *, kept: bool) -> None:
        """Notes a message of a node, which the broker may have kept."""
        self._has_heard_nodes = True
        if kept:
            self._missing_at = math.inf

    def is_to_be_tried(self, now: float) -> bool:
        """True once in a connection, when a second subscription shows whether kept messages come."""
        if self._has_tried or not self._are_missing(now):
            return False
        self._has_tried, self._missing_at = True, now + COMES_WITHIN_S
        return True

    def is_found_missing(self, now: float) -> bool:
        """True once in a connection, when it is clear that no kept message comes."""
        if not self._has_tried or not self._are_missing(now):
            return False
        self.asks, self._missing_at = (KEPT_NOTHING,), math.inf
        return True

    def _are_missing(self, now: float) -> bool:
        return self._has_heard_nodes and now >= self._missing_at
