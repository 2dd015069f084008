"""Messages that wait to be decoded: one queue for each node, served in turns.

The messages of one node keep their order. A node that sends many messages delays only its own. Example: n1 has 1,000
messages waiting, then n2 sends one; n2's message is decoded second.

A node with an urgent message goes first, and one that has only kept messages goes last. With a message goes all that
waits before it: an inventory must be known before its node's runs. Of every TURNS + 1 messages one comes from a later
lane, so that nodes that call everything urgent hold up nobody else for long.

The bytes that may wait are bounded for each node and in total. `put` takes constant time, `take` constant time for each
message.
"""

from collections import OrderedDict, deque
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar

MOST_BYTES_OF_A_NODE = 8 << 20
"""Maximum number of waiting bytes of one node, more than an agent sends at once: 500 runs of at most 256 KiB, of which
hardly any has more than 10 KiB.
"""

MOST_BYTES = 32 << 20
"""Maximum number of waiting bytes of all nodes together. Above it, the coordinator reads nothing and the broker keeps
the messages.
"""

TURNS = 4

M = TypeVar("M")


class Lane(IntEnum):
    """Which messages go first.

    KEPT: the broker kept it, and delivers it because the coordinator is new. It says what a node last was, and at ten
    thousand nodes all of them take seconds.
    """

    URGENT = 0
    LIVE = 1
    KEPT = 2


_LANES = tuple(Lane)


class WaitingMessage(NamedTuple, Generic[M]):
    """A message with its size in bytes, the time at which it arrived, and its lane."""

    message: M
    size: int
    arrived_at: float
    lane: Lane


class _NodeQueue(Generic[M]):
    """The waiting messages of one node, and for each lane how many there are up to the last one of that lane."""

    __slots__ = ("_up_to", "bytes", "messages")

    def __init__(self) -> None:
        self.messages: deque[WaitingMessage[M]] = deque()
        self.bytes = 0
        self._up_to = [0] * len(_LANES)

    def append(self, waiting: WaitingMessage[M]) -> None:
        self.messages.append(waiting)
        self.bytes += waiting.size
        self._up_to[waiting.lane] = len(self.messages)

    def popleft(self) -> WaitingMessage[M]:
        waiting = self.messages.popleft()
        self.bytes -= waiting.size
        self._up_to = [max(0, count - 1) for count in self._up_to]
        return waiting

    @property
    def lane(self) -> Lane:
        """The first lane that has a message of this node."""
        return next(lane for lane in _LANES if self._up_to[lane])


class FairInbox(Generic[M]):
    """The waiting messages of all nodes.

    `bytes` is their total size; `live` and `live_bytes` are number and size of those that are not in the lane KEPT.
    `waited_s` is how long the last of these had waited.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self.live = 0
        self.live_bytes = 0
        self.waited_s = 0.0
        self._count = 0
        self._queues: dict[str, _NodeQueue[M]] = {}
        # Every node with waiting messages is in one of these, once; the next to be served comes first.
        self._turns: list[OrderedDict[str, None]] = [OrderedDict() for _ in _LANES]
        self._in_a_row = [0] * len(_LANES)

    def __len__(self) -> int:
        return self._count

    def put(self, node: str, message: M, size: int, now: float, lane: Lane = Lane.LIVE) -> bool:
        """Appends a message. Returns False without appending it if too many bytes of its node wait already."""
        queue = self._queues.get(node)
        if queue is None:
            queue = self._queues[node] = _NodeQueue()
            self._turns[lane][node] = None
        elif queue.bytes + size > MOST_BYTES_OF_A_NODE:
            return False
        elif lane < queue.lane:
            del self._turns[queue.lane][node]
            self._turns[lane][node] = None
        queue.append(WaitingMessage(message, size, now, lane))
        self._count_message(size, lane, 1)
        return True

    def take(self, most: int, most_bytes: float, now: float) -> list[M]:
        """Removes and returns up to `most` messages, one of each node in turns; stops after `most_bytes`."""
        taken: list[M] = []
        size = 0
        while self._queues and len(taken) < most and size < most_bytes:
            waiting = self._next()
            taken.append(waiting.message)
            size += waiting.size
            if waiting.lane is not Lane.KEPT:
                self.waited_s = now - waiting.arrived_at
        return taken

    def _next(self) -> WaitingMessage[M]:
        node = self._next_node()
        queue = self._queues[node]
        waiting = queue.popleft()
        if queue.messages:
            self._turns[queue.lane][node] = None
        else:
            del self._queues[node]
        self._count_message(waiting.size, waiting.lane, -1)
        return waiting

    def _count_message(self, size: int, lane: Lane, sign: int) -> None:
        self._count += sign
        self.bytes += sign * size
        if lane is not Lane.KEPT:
            self.live += sign
            self.live_bytes += sign * size

    def _next_node(self) -> str:
        """Removes the next node from its turns: of the first lane that has not had TURNS in a row, or else the last."""
        waiting = [lane for lane in _LANES if self._turns[lane]]
        for lane in waiting:
            if self._in_a_row[lane] < TURNS or lane is waiting[-1]:
                self._in_a_row[lane] += 1
                return self._turns[lane].popitem(last=False)[0]
            self._in_a_row[lane] = 0
        raise AssertionError("nobody waits")
