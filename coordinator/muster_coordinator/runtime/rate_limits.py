"""The rate at which a node may send. The coordinator drops the excess undecoded; an honest agent sends it again.

A node has an allowance for each kind of message, in messages and in bytes. Both refill at a constant rate up to a burst
(a token bucket). An ordinary agent sends a heartbeat every ten seconds, about 40 reports of 1 KiB for each check in an
hour, and a few replies a second during a sweep. After an outage it sends up to 10,000 kept runs, 500 at a time; burst
and rate admit these within about two minutes. Every limit is at least ten times what such an agent needs. It is twice
what the settings allow: with the shortest `agent.heartbeat_s` an agent sends two heartbeats a second.

Admitting a message takes constant time.
"""

from typing import NamedTuple

from muster.token_bucket import TokenBucket
from muster.wire.topics import NodeTopic


class AllowedRate(NamedTuple):
    """The amount that may come at once (`burst`), and the amount per second in the long run."""

    burst: float
    per_s: float


class MessageLimits(NamedTuple):
    """The limits of a node for one kind of message."""

    messages: AllowedRate
    bytes: AllowedRate


KIB, MIB = 1 << 10, 1 << 20

LIMITS = {
    NodeTopic.PRESENCE: MessageLimits(AllowedRate(40, 4), AllowedRate(2 * MIB, 16 * KIB)),
    NodeTopic.INVENTORY: MessageLimits(AllowedRate(20, 0.2), AllowedRate(4 * MIB, 64 * KIB)),
    NodeTopic.REPORT: MessageLimits(AllowedRate(400, 20), AllowedRate(8 * MIB, 128 * KIB)),
    NodeTopic.GROUP: MessageLimits(AllowedRate(400, 20), AllowedRate(4 * MIB, 128 * KIB)),
}


class Meter:
    """The remaining allowance of one node for one kind of message, in messages and bytes."""

    __slots__ = ("_bytes", "_messages")

    def __init__(self, limits: MessageLimits) -> None:
        self._messages = TokenBucket(*limits.messages)
        self._bytes = TokenBucket(*limits.bytes)

    def admit(self, size: int, now: float) -> bool:
        """Charges a message of `size` bytes. Returns False without charging it if too little is left."""
        messages, left = self._messages.left(now), self._bytes.left(now)
        if messages < 1 or left < size:
            return False
        self._messages.spend(1)
        self._bytes.spend(size)
        return True

    def charge(self, size: int, now: float) -> None:
        """Charges `size` more bytes of a message that was admitted, even if less is left."""
        self._bytes.left(now)
        self._bytes.spend(size)


class Allowances:
    """The remaining allowances of every node."""

    MOST_METERS = 200_000
    """Maximum number of meters: four for each of 50,000 nodes. Without a broker ACL, a client can make up names; then
    the oldest meters go.
    """

    def __init__(self) -> None:
        self._meters: dict[tuple[str, NodeTopic], Meter] = {}

    def admit(self, node: str, topic: NodeTopic, size: int, now: float) -> bool:
        """Charges a message of `size` bytes to its node. Returns whether the coordinator may take it."""
        limits = LIMITS.get(topic)
        if limits is None:
            return True  # no node sends on this topic; the codec refuses the message
        key = (node, topic)
        meter = self._meters.get(key)
        if meter is None:
            if len(self._meters) >= self.MOST_METERS:
                self._meters.pop(next(iter(self._meters)))
            meter = self._meters[key] = Meter(limits)
        return meter.admit(size, now)

    def charge_inflated(self, node: str, topic: NodeTopic, size: int, now: float) -> None:
        """Charges a node for what its compressed message has grown by: decoding it costs as much as if it had been."""
        if (meter := self._meters.get((node, topic))) is not None:
            meter.charge(size, now)
