"""Messages that wait to be decoded: in the order in which a node has sent them, and of all nodes in turns.

So a node that has sent much waits for its own messages only. What waits is bounded in bytes, for a node and in all.
"""

from collections import deque
from typing import Generic, NamedTuple, TypeVar

MOST_BYTES_OF_A_NODE = 8 << 20
"""More than an agent has on its way: 500 runs of 256 KiB at most, of which hardly any has more than 10 KiB."""

MOST_BYTES = 32 << 20
"""Of all nodes. While so much waits, no more is read and the broker keeps it."""

MOST_BYTES_AT_ONCE = 1 << 20
"""Of what is taken in one go, before others in this process get their turn."""

M = TypeVar("M")


class Waiting(NamedTuple, Generic[M]):
    """A message with the bytes that it takes."""

    message: M
    size: int


class FairInbox(Generic[M]):
    """What waits, by node."""

    def __init__(self) -> None:
        self.bytes = 0
        self._count = 0
        self._queues: dict[str, deque[Waiting[M]]] = {}
        self._bytes_of: dict[str, int] = {}
        self._turns: deque[str] = deque()  # every node of which something waits, once

    def __len__(self) -> int:
        return self._count

    def put(self, node: str, message: M, size: int) -> bool:
        """Lets a message wait; False when too much of its node waits already."""
        waiting = self._bytes_of.get(node, 0)
        if waiting and waiting + size > MOST_BYTES_OF_A_NODE:
            return False
        if node not in self._queues:
            self._queues[node] = deque()
            self._turns.append(node)
        self._queues[node].append(Waiting(message, size))
        self._bytes_of[node] = waiting + size
        self.bytes += size
        self._count += 1
        return True

    def take(self, most: int) -> list[M]:
        """At most so many messages, one of each node in turns, and no more after MOST_BYTES_AT_ONCE."""
        taken: list[M] = []
        size = 0
        while self._turns and len(taken) < most and size < MOST_BYTES_AT_ONCE:
            message, its_size = self._next()
            taken.append(message)
            size += its_size
        return taken

    def _next(self) -> Waiting[M]:
        node = self._turns.popleft()
        queue = self._queues[node]
        waiting = queue.popleft()
        if queue:
            self._turns.append(node)
            self._bytes_of[node] -= waiting.size
        else:
            del self._queues[node], self._bytes_of[node]
        self.bytes -= waiting.size
        self._count -= 1
        return waiting
