"""How much a node may send. The coordinator drops what is more before it decodes it; an honest agent sends it again.

A node has an allowance for each kind of message, in messages and in bytes. Both refill at a constant rate up to a burst
(a token bucket). An ordinary agent sends a heartbeat every ten seconds, about 40 reports of 1 KiB for each check in an
hour, and a few replies a second during a sweep. After an outage it sends up to 10,000 kept runs, 500 at a time; burst
and rate admit these within about two minutes. Every limit is at least ten times what such an agent needs. It is twice
what the settings allow: with the shortest `agent.heartbeat_s` an agent sends two heartbeats a second.

Admitting a message takes constant time.
"""

from dataclasses import dataclass
from typing import NamedTuple

from muster.wire.topics import NodeTopic


class Rate(NamedTuple):
    """How much may come at once, and how much a second in the long run."""

    burst: float
    per_s: float


class Limits(NamedTuple):
    """What a node may send of one kind of message."""

    messages: Rate
    bytes: Rate


KIB, MIB = 1 << 10, 1 << 20

LIMITS = {
    NodeTopic.PRESENCE: Limits(Rate(40, 4), Rate(2 * MIB, 16 * KIB)),
    NodeTopic.INVENTORY: Limits(Rate(20, 0.2), Rate(4 * MIB, 64 * KIB)),
    NodeTopic.REPORT: Limits(Rate(400, 20), Rate(8 * MIB, 128 * KIB)),
    NodeTopic.GROUP: Limits(Rate(400, 20), Rate(4 * MIB, 128 * KIB)),
}


@dataclass(slots=True)
class Meter:
    """What was left at the time `at` of a limit, in messages and bytes."""

    limits: Limits
    at: float
    messages: float
    bytes: float

    @classmethod
    def full(cls, limits: Limits, now: float) -> "Meter":
        """A meter of which nothing is used yet."""
        return cls(limits, now, limits.messages.burst, limits.bytes.burst)

    def admit(self, size: int, now: float) -> bool:
        """Charges a message of `size` bytes; False, and nothing is charged, when too little is left."""
        passed_s, self.at = max(0.0, now - self.at), now
        self.messages = min(self.limits.messages.burst, self.messages + passed_s * self.limits.messages.per_s)
        self.bytes = min(self.limits.bytes.burst, self.bytes + passed_s * self.limits.bytes.per_s)
        if self.messages < 1 or self.bytes < size:
            return False
        self.messages -= 1
        self.bytes -= size
        return True


class Allowances:
    """What every node may still send."""

    MOST_METERS = 200_000
    """Four for each of 50,000 nodes. Without a broker ACL anybody can make up names; then the oldest meters go."""

    def __init__(self) -> None:
        self._meters: dict[tuple[str, NodeTopic], Meter] = {}

    def admit(self, node: str, topic: NodeTopic, size: int, now: float) -> bool:
        """Whether the coordinator may take a message of `size` bytes from this node; charges it if so."""
        limits = LIMITS.get(topic)
        if limits is None:
            return True  # no node sends on this topic; the codec refuses the message
        key = (node, topic)
        meter = self._meters.get(key)
        if meter is None:
            if len(self._meters) >= self.MOST_METERS:
                self._meters.pop(next(iter(self._meters)))
            meter = self._meters[key] = Meter.full(limits, now)
        return meter.admit(size, now)
