"""Messages from the broker that wait to be decoded: within the allowance of each node, and in turns.

The inbox drops messages beyond the allowance before any other work is done on them. A dropped message costs about 20
µs, a decoded message ten times as much, and a message that changes the fleet a hundred times as much.

It also defers reports that the coordinator cannot take in time: it drops those that are not urgent while more than
LATE_S of work waits, by the speed of the last batches, and those that miss runs because of that
(`deferred_reports`). When less waits, it invites the nodes of deferred reports one after the other, as many as it will
have time for. Agents that get no invitation send them again after 5, 10, 20, 40 and then 60 s.
So the coordinator works all the time, heartbeats and new failures reach it within seconds, and memory is bounded. Left
at the broker, they would wait in the order in which they came, and the broker drops what does not fit into its queue.

Messages that the broker has kept do not make the inbox late: a new coordinator gets two of each node at once, and they
wait until nothing else does.
"""

import asyncio
import time
from collections import Counter
from typing import NamedTuple

import aiomqtt

from muster.wire.report_head import ReportHead, report_head
from muster.wire.topics import FROM_NODE, NodeTopic
from muster_coordinator.runtime.bursts import read_in_bursts
from muster_coordinator.runtime.deferred_reports import DeferredReports
from muster_coordinator.runtime.fair_inbox import MOST_BYTES, FairInbox, Lane
from muster_coordinator.runtime.load_meter import LoadMeter
from muster_coordinator.runtime.muting import MuteList
from muster_coordinator.runtime.packets import IncomingMessage
from muster_coordinator.runtime.rate_limits import Allowances

LATE_S = 0.5
"""While this much work waits, the inbox takes only urgent reports. Agents send a report again after 5 s."""

WEIGHT = 0.2
"""The weight of the last batch in the speed, and of the last report in the mean of their sizes."""

LEAST = 8
"""As many messages may always wait, so that there is work for the next turn."""

MOST = 5_000
"""While this many messages wait in other lanes than KEPT, or MOST_BYTES in all, the coordinator reads nothing and the
broker keeps the messages."""

CHUNK = 50
"""Maximum number of messages that are decoded before other tasks of this process get their turn."""

TURN_S = 0.1
"""Maximum work, by the speed of the last batches, that is decoded before that: an urgent message waits for a turn."""

TURN_BYTES = 256 << 10
"""Maximum number of bytes that are decoded before that. If they are not compressed, that takes 0.1 s of a core."""

MOST_INVITED = 50
"""Maximum number of invitations on their way."""

INVITED_FOR_S = 2.0
"""A node that has not answered an invitation until then counts no longer."""

_KINDS = {str(topic): topic for topic in FROM_NODE}


class ReceivedMessage(NamedTuple):
    """A message; if it is a report, with its first fields."""

    message: IncomingMessage
    head: ReportHead | None


class Inbox(asyncio.Queue[list[ReceivedMessage]]):
    """The messages of one connection. `get` returns lists, because aiomqtt starts a task for each `get`.

    `dropped` counts the messages beyond the allowance, by node and kind. `flooded` is set when `mutes` has muted a
    node. `deferred` are the nodes whose reports were deferred. `meter` counts the reports that are taken and deferred.
    """

    _queue: FairInbox[ReceivedMessage]

    def __init__(self, client: aiomqtt.Client, allowances: Allowances, mutes: MuteList, meter: LoadMeter) -> None:
        super().__init__()
        self.flooded = asyncio.Event()
        self.dropped: Counter[tuple[str, NodeTopic]] = Counter()
        self.deferred: set[str] = set()
        self._allowances = allowances
        self._mutes = mutes
        self._meter = meter
        self._deferred_reports = DeferredReports()
        self._invited: dict[str, float] = {}  # by node, when; the oldest first
        self._report_bytes = 0.0  # the mean of the last reports
        self._s_per_byte = 0.0
        self._batch_at: float | None = None  # when the last batch began, if more waited behind it
        self._batch_bytes = 0
        client._queue = self  # type: ignore[assignment]  # replaces the queue of aiomqtt
        read_in_bursts(client, self._receive, self.has_enough)

    def has_enough(self) -> bool:
        """Whether the coordinator should read nothing more until some messages are taken."""
        return self._queue.live >= MOST or self._queue.bytes >= MOST_BYTES

    @property
    def is_late(self) -> bool:
        """Whether too much work waits."""
        return self._queue.live >= LEAST and self._queue.live_bytes * self._s_per_byte >= LATE_S

    def invite(self, now: float) -> list[tuple[str, str]]:
        """The nodes and streams of deferred reports for which there is time now. Each is returned once."""
        while self._invited and now - next(iter(self._invited.values())) > INVITED_FOR_S:
            del self._invited[next(iter(self._invited))]
        invited = []
        while len(self._invited) < MOST_INVITED and self._has_time() and (first := self._deferred_reports.pop()):
            self._invited[first[0]] = now
            invited.append(first)
        return invited

    def _has_time(self) -> bool:
        """Whether there is time for a report beside those that wait and those that are invited."""
        expected = self._queue.live_bytes + len(self._invited) * self._report_bytes
        return expected * self._s_per_byte < LATE_S

    def _receive(self, message: IncomingMessage) -> None:
        """Queues a message, or drops it if its node has sent too much. The codec refuses messages that have no node."""
        *_, node, kind = ("", "", *message.topic.split("/"))
        size, now = len(message.payload), time.monotonic()
        topic = _KINDS.get(kind)
        if topic is not None and not self._allowances.admit(node, topic, size, now):
            self._drop(node, topic, size, now)
            return
        head = None
        if topic is NodeTopic.REPORT:
            head = report_head(message.payload)
            self._invited.pop(node, None)
            self._report_bytes += WEIGHT * (size - self._report_bytes)
        lane = _lane(message, head)
        if topic is NodeTopic.REPORT and lane is not Lane.URGENT and self._is_to_wait(node, head):
            self._meter.note_deferred()
            self._deferred_reports.defer(node, head)
            self.deferred.add(node)
        elif self._queue.put(node, ReceivedMessage(message, head), size, now, lane):
            self._deferred_reports.take(node, head)
            self._wakeup_next(self._getters)  # type: ignore[attr-defined]  # as asyncio.Queue.put_nowait does
        elif topic is not None:
            self._drop(node, topic, size, now)

    def _is_to_wait(self, node: str, head: ReportHead | None) -> bool:
        """Whether a report that is not urgent has to be sent again later."""
        return self.is_late or self._deferred_reports.is_useless(node, head)

    def _drop(self, node: str, topic: NodeTopic, size: int, now: float) -> None:
        self.dropped[node, topic] += 1
        if self._mutes.note_dropped(node, topic, size, now):
            self.flooded.set()

    def _init(self, maxsize: int) -> None:
        self._queue = FairInbox()

    def _get(self) -> list[ReceivedMessage]:
        now, waiting = time.monotonic(), self._queue.bytes
        if self._batch_at is not None:
            took = (now - self._batch_at) / self._batch_bytes
            self._s_per_byte += (WEIGHT if self._s_per_byte else 1.0) * (took - self._s_per_byte)
        most_bytes = min(TURN_BYTES, TURN_S / self._s_per_byte) if self._s_per_byte else TURN_BYTES
        taken = self._queue.take(CHUNK, most_bytes, now)
        self._batch_at, self._batch_bytes = now if self._queue else None, max(1, waiting - self._queue.bytes)
        self._meter.note_waited(self._queue.waited_s)
        return taken


def _lane(message: IncomingMessage, head: ReportHead | None) -> Lane:
    if head is not None and head.urgent:
        return Lane.URGENT
    return Lane.KEPT if message.retain else Lane.LIVE
