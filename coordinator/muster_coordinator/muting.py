"""Nodes that flood the broker, and what the coordinator subscribes to so that it need not read what they send.

Dropping a message costs the coordinator some 50 µs, so a node that sends 20,000 a second would keep it busy with that
alone. What it has not subscribed to costs it nothing. Usually it subscribes to a kind of message of all nodes at once.
While a node floods with one kind, it subscribes to that kind of each other node that it knows.

A node is muted for a minute; each time that it floods again within an hour, for twice as long, up to ten minutes. New
nodes are noticed by the kinds of message with which nobody floods, or else when the mute is over.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muster.wire.topics import FROM_NODE, NodeTopic, Topics

FLOOD_MESSAGES = 1_000
FLOOD_BYTES = 32 << 20
"""So much beyond its allowance within COUNTED_S is a flood. An agent that repeats what was dropped stays far below."""

COUNTED_S = 10.0
MUTED_S = 60.0
LONGEST_MUTE_S = 600.0
FORGIVEN_S = 3600.0

Flood = tuple[str, NodeTopic]
"""A node, and the kind of message that it floods with."""


@dataclass(slots=True)
class _Excess:
    """What came of one flood beyond the allowance since `since`; `mutes` counts how often it was muted."""

    since: float
    messages: int = 0
    bytes: int = 0
    mutes: int = 0
    muted_until: float = 0.0


class Muting:
    """Who is muted, with which kind of message."""

    def __init__(self) -> None:
        self._excess: dict[Flood, _Excess] = {}

    def note_dropped(self, node: str, topic: NodeTopic, size: int, now: float) -> bool:
        """Notes a message beyond the allowance; True when its node is to be muted from now on."""
        excess = self._excess.setdefault((node, topic), _Excess(now))
        if now < excess.muted_until:
            return False
        if now - excess.since > COUNTED_S:
            excess.since, excess.messages, excess.bytes = now, 0, 0
        excess.messages += 1
        excess.bytes += size
        if excess.messages < FLOOD_MESSAGES and excess.bytes < FLOOD_BYTES:
            return False
        excess.muted_until = now + min(MUTED_S * 2**excess.mutes, LONGEST_MUTE_S)
        excess.mutes += 1
        excess.since, excess.messages, excess.bytes = excess.muted_until, 0, 0
        return True

    def muted(self, now: float) -> frozenset[Flood]:
        """The floods that are muted now; forgets those that are long over."""
        self._excess = {flood: it for flood, it in self._excess.items() if now < it.since + FORGIVEN_S}
        return frozenset(flood for flood, it in self._excess.items() if now < it.muted_until)


def subscriptions(topics: Topics, muted: Iterable[Flood], known: Iterable[str]) -> frozenset[str]:
    """What to subscribe to while these floods are muted and these nodes are known."""
    quiet: dict[NodeTopic, set[str]] = {}
    for node, topic in muted:
        quiet.setdefault(topic, set()).add(node)
    names = frozenset(known) if quiet else frozenset()
    return frozenset(pattern for topic in FROM_NODE for pattern in _of_kind(topics, topic, quiet, names))


def _of_kind(topics: Topics, topic: NodeTopic, quiet: Mapping[NodeTopic, set[str]], known: frozenset[str]) -> list[str]:
    if topic not in quiet:
        return [topics.every_node(topic)]
    return [topics.node(node, topic) for node in known - quiet[topic]]
