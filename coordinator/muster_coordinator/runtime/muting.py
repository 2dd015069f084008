"""The nodes that flood the broker, and subscriptions that exclude their floods.

Dropping a message costs the coordinator about 50 µs. A node that sends 20,000 messages a second would keep it fully
busy. A message that the coordinator has not subscribed to costs it nothing. Usually it has one subscription for each
kind of message, for all nodes. While a node floods with one kind, the coordinator subscribes to that kind for each
other known node instead.

The coordinator mutes a node for a minute. If the node floods again within an hour, each mute is twice as long as the
last, up to ten minutes. A new node is still noticed by any kind of message with which no node floods. If there is none,
it is noticed when the mute ends.

Example: 1,200 messages within ten seconds beyond the allowance are a flood. The mutes last 60, 120, 240, 480 and then
600 s. Noting a message takes constant time; the subscriptions during a flood take time in proportion to the nodes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muster.backoff import backoff_s
from muster.wire.topics import FROM_NODE, NodeTopic, Topics

FLOOD_MESSAGES = 1_000
FLOOD_BYTES = 32 << 20
"""This much beyond the allowance within COUNTED_S is a flood. An agent that sends dropped reports again stays far
below.
"""

COUNTED_S = 10.0
MUTED_S = 60.0
LONGEST_MUTE_S = 600.0
FORGIVEN_S = 3600.0

Flood = tuple[str, NodeTopic]
"""A node and the kind of message with which it floods."""


@dataclass(slots=True)
class _Excess:
    """The messages of one kind of a node beyond its allowance since `since`, and the number of its mutes for them."""

    since: float
    messages: int = 0
    bytes: int = 0
    mutes: int = 0
    muted_until: float = 0.0


class MuteList:
    """The muted nodes, with the kind of message and the end of the mute."""

    def __init__(self) -> None:
        self._excess: dict[Flood, _Excess] = {}

    def note_dropped(self, node: str, topic: NodeTopic, size: int, now: float) -> bool:
        """Notes a message beyond the allowance. Returns True if the node is muted from now on."""
        excess = self._excess.setdefault((node, topic), _Excess(now))
        if now < excess.muted_until:
            return False
        if now - excess.since > COUNTED_S:
            excess.since, excess.messages, excess.bytes = now, 0, 0
        excess.messages += 1
        excess.bytes += size
        if excess.messages < FLOOD_MESSAGES and excess.bytes < FLOOD_BYTES:
            return False
        excess.mutes += 1
        excess.muted_until = now + backoff_s(excess.mutes, MUTED_S, LONGEST_MUTE_S)
        excess.since, excess.messages, excess.bytes = excess.muted_until, 0, 0
        return True

    def muted(self, now: float) -> frozenset[Flood]:
        """The floods that are muted now. Forgets floods that ended FORGIVEN_S ago."""
        self._excess = {flood: excess for flood, excess in self._excess.items() if now < excess.since + FORGIVEN_S}
        return frozenset(flood for flood, excess in self._excess.items() if now < excess.muted_until)


def subscriptions(topics: Topics, muted: Iterable[Flood], known: Iterable[str]) -> frozenset[str]:
    """The topic filters to subscribe to while these floods are muted. `known` are the names of all known nodes."""
    quiet: dict[NodeTopic, set[str]] = {}
    for node, topic in muted:
        quiet.setdefault(topic, set()).add(node)
    names = frozenset(known) if quiet else frozenset()
    return frozenset(pattern for topic in FROM_NODE for pattern in _of_kind(topics, topic, quiet, names))


def _of_kind(topics: Topics, topic: NodeTopic, quiet: Mapping[NodeTopic, set[str]], known: frozenset[str]) -> list[str]:
    if topic not in quiet:
        return [topics.every_node(topic)]
    return [topics.node(node, topic) for node in known - quiet[topic]]
