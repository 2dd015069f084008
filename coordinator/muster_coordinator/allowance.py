"""How much a node may send. What is more is dropped before it is decoded; an agent that means well sends it again.

A node has an allowance for each kind of message, in messages and in bytes. Both fill at a constant rate up to a burst.
An ordinary agent sends a heartbeat every ten seconds, some 40 reports of 1 KiB an hour and check, and in a sweep a few
replies a second. After an outage it sends up to 10,000 kept runs, 500 at a time, which the burst and the rate take in
about two minutes. Every limit is at least ten times what such an agent needs, and twice what the settings allow: with
the shortest `agent.heartbeat_s` it sends two heartbeats a second.
"""

from dataclasses import dataclass
from typing import NamedTuple

from muster.wire.topics import NodeTopic


class Rate(NamedTuple):
    """So much at once, and so much a second in the long run."""

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
    """What is left of a limit that was full at `at`, in messages and bytes."""

    limits: Limits
    at: float
    messages: float
    bytes: float

    @classmethod
    def full(cls, limits: Limits, now: float) -> "Meter":
        return cls(limits, now, limits.messages.burst, limits.bytes.burst)

    def admit(self, size: int, now: float) -> bool:
        """Whether a message of so many bytes may be taken `now`, which counts against what is left."""
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
    """Four for each of 50,000 nodes. Without an ACL at the broker, anybody can make up names; then the oldest go."""

    def __init__(self) -> None:
        self._meters: dict[tuple[str, NodeTopic], Meter] = {}

    def admit(self, node: str, topic: NodeTopic, size: int, now: float) -> bool:
        """Whether a message of this node may be taken `now`."""
        limits = LIMITS.get(topic)
        if limits is None:
            return True  # nodes have nothing to say there, and the codec refuses it
        key = (node, topic)
        meter = self._meters.get(key)
        if meter is None:
            if len(self._meters) >= self.MOST_METERS:
                self._meters.pop(next(iter(self._meters)))
            meter = self._meters[key] = Meter.full(limits, now)
        return meter.admit(size, now)
