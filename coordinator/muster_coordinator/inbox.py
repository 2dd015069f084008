"""What has come from the broker and waits to be decoded: of every node what it may send, in turns, and no more.

Messages are judged here before anything else is done with them, because a flood costs as much as its messages do: some
20 µs where they are dropped at once, ten times as much where they are decoded, and a hundred times where they count.
"""

import asyncio
import time
from collections import Counter
from typing import Any

import aiomqtt
from paho.mqtt.client import MQTTMessage

from muster.wire.topics import FROM_NODE, NodeTopic
from muster_coordinator.allowance import Allowances
from muster_coordinator.bursts import read_in_bursts
from muster_coordinator.fair_inbox import MOST_BYTES, FairInbox
from muster_coordinator.muting import Muting

MOST = 5_000
"""Messages that wait before no more are read: the broker keeps them as long. So with MOST_BYTES."""

CHUNK = 200
"""Messages that are decoded before others in this process get their turn."""

_KINDS = {str(topic): topic for topic in FROM_NODE}


class Inbox(asyncio.Queue[list[aiomqtt.Message]]):
    """The messages of one connection, to be had in lists: aiomqtt starts a task for each `get`, dearer than a message.

    `dropped` counts by node and kind of message what was beyond their allowances; `flooded` is set when `muting` has
    decided that a node is to be listened to no longer.
    """

    _queue: FairInbox[aiomqtt.Message]

    def __init__(self, client: aiomqtt.Client, allowances: Allowances, muting: Muting) -> None:
        super().__init__()
        self.flooded = asyncio.Event()
        self.dropped: Counter[tuple[str, NodeTopic]] = Counter()
        self._allowances = allowances
        self._muting = muting
        client._queue = self  # type: ignore[assignment]  # aiomqtt would put every message into one of its own
        client._client.on_message = self._receive
        read_in_bursts(client, self.has_enough)

    def has_enough(self) -> bool:
        """Whether nothing more should be read until some of it was taken."""
        return self.qsize() >= MOST or self._queue.bytes >= MOST_BYTES

    def _receive(self, _client: Any, _userdata: Any, message: MQTTMessage) -> None:
        """Lets a message wait, unless its node has sent too much. What is none of a node's, the codec refuses."""
        try:
            *_, node, kind = ("", "", *message.topic.split("/"))
        except UnicodeDecodeError:
            return  # a broker that lets such a topic pass; nobody has subscribed to it
        size, now = len(message.payload), time.monotonic()
        topic = _KINDS.get(kind)
        if topic is not None and not self._allowances.admit(node, topic, size, now):
            self._drop(node, topic, size, now)
        elif self._queue.put(node, aiomqtt.Message._from_paho_message(message), size):
            self._wakeup_next(self._getters)  # type: ignore[attr-defined]  # as put_nowait does
        elif topic is not None:
            self._drop(node, topic, size, now)

    def _drop(self, node: str, topic: NodeTopic, size: int, now: float) -> None:
        self.dropped[node, topic] += 1
        if self._muting.note_dropped(node, topic, size, now):
            self.flooded.set()

    def _init(self, maxsize: int) -> None:
        self._queue = FairInbox()

    def _get(self) -> list[aiomqtt.Message]:
        return self._queue.take(CHUNK)
