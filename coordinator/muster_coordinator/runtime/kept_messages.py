"""Notices a broker that does not give a coordinator what it has kept of the nodes.

A coordinator subscribes to the topics of all nodes with a wildcard. Mosquitto then sends the retained message of each
node; RabbitMQ sends none. So a coordinator that hears nodes, and has got no kept message some seconds after it
connected, asks them for their inventories.
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
        self._has_heard_nodes = False

    def connected(self, now: float) -> None:
        """Notes a new connection with its subscriptions."""
        self.asks, self._has_heard_nodes = (), False
        self._missing_at = now + COMES_WITHIN_S

    def heard(self, *, kept: bool) -> None:
        """Notes a message of a node, which the broker may have kept."""
        self._has_heard_nodes = True
        if kept:
            self._missing_at = math.inf

    def is_found_missing(self, now: float) -> bool:
        """True once in a connection, when it is clear that no kept message comes."""
        if not self._has_heard_nodes or now < self._missing_at:
            return False
        self.asks, self._missing_at = (KEPT_NOTHING,), math.inf
        return True
