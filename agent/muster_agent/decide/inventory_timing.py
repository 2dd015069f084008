"""Decides when the agent sends its inventory, and in which form.

The idea: the inventory goes out once in each connection, and again when it changes. The broker keeps it for
coordinators that start later. It waits for the first word of a coordinator, which says whether it takes compressed
messages: the broker keeps 20 KB for each node otherwise, and sends them all to a coordinator that starts. One that is
there is heard within milliseconds; without one, the wait ends after a second.

Two things that a coordinator says make it go out again: that it cannot read what the broker keeps, because that is
compressed; and that the broker gave it nothing that it had kept, as RabbitMQ does for subscriptions with wildcards.
"""

import math

from muster.wire.messages import DEFLATE, KEPT_NOTHING, CoordinatorPresence

WAITS_S = 1.0
"""The longest wait for the first word of a coordinator."""


class InventoryTiming:
    """Whether the inventory was sent in this connection, and when it may be; `is_sent`."""

    def __init__(self) -> None:
        self.is_sent = False
        self._is_deflated = False
        self._may_go_at = math.inf
        self._asked_by: int | None = None

    def connected(self, now: float) -> None:
        """Notes a new connection."""
        self.is_sent = False
        self._may_go_at = now + WAITS_S

    def changed(self) -> None:
        """Notes an inventory that differs from the one before it."""
        self.is_sent = False

    def due(self) -> float:
        """When it is to be sent; infinity if it was."""
        return math.inf if self.is_sent else self._may_go_at

    def sent(self, *, deflated: bool) -> None:
        """Notes that the broker has it."""
        self.is_sent, self._is_deflated = True, deflated

    def heard(self, coordinator: CoordinatorPresence) -> None:
        """Notes what a coordinator says. Each epoch may ask once, and a new connection answers anyway."""
        self._may_go_at = -math.inf
        if not coordinator.online:
            return
        if self._is_deflated and DEFLATE not in coordinator.accepts:
            self.is_sent = False
        if KEPT_NOTHING in coordinator.accepts and self._asked_by != coordinator.epoch:
            self._asked_by, self.is_sent = coordinator.epoch, False
