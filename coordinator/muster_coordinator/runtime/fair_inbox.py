"""Messages that wait to be decoded: one queue for each node, served in turns.

The messages of one node keep their order. A node that sends many messages delays only its own. Example: n1 has 1,000
messages waiting, then n2 sends one; n2's message is decoded second. The bytes that may wait are bounded for each node
and in total. `put` takes constant time, `take` constant time for each message.
"""

from collections import deque
from typing import Generic, NamedTuple, TypeVar

MOST_BYTES_OF_A_NODE = 8 << 20
"""Maximum number of waiting bytes of one node, more than an agent sends at once: 500 runs of at most 256 KiB, of which
hardly any has more than 10 KiB.
"""

MOST_BYTES = 32 << 20
"""Maximum number of waiting bytes of all nodes together. Above it, the coordinator reads nothing and the broker keeps
the messages.
"""

MOST_BYTES_AT_ONCE = 1 << 20
"""Maximum number of bytes that `take` returns at once, before other tasks of this process get their turn."""

M = TypeVar("M")


class WaitingMessage(NamedTuple, Generic[M]):
    """A message with its size in bytes."""

    message: M
    size: int


class FairInbox(Generic[M]):
    """The waiting messages of all nodes; `bytes` is their total size."""

    def __init__(self) -> None:
        self.bytes = 0
        self._count = 0
        self._queues: dict[str, deque[WaitingMessage[M]]] = {}
        self._bytes_of: dict[str, int] = {}
        self._turns: deque[str] = deque()  # every node with waiting messages, once

    def __len__(self) -> int:
        return self._count

    def put(self, node: str, message: M, size: int) -> bool:
        """Appends a message. Returns False without appending it if too many bytes of its node wait already."""
        waiting = self._bytes_of.get(node, 0)
        if waiting and waiting + size > MOST_BYTES_OF_A_NODE:
            return False
        if node not in self._queues:
            self._queues[node] = deque()
            self._turns.append(node)
        self._queues[node].append(WaitingMessage(message, size))
        self._bytes_of[node] = waiting + size
        self.bytes += size
        self._count += 1
        return True

    def take(self, most: int) -> list[M]:
        """Removes and returns up to `most` messages, one of each node in turns; stops after MOST_BYTES_AT_ONCE."""
        taken: list[M] = []
        size = 0
        while self._turns and len(taken) < most and size < MOST_BYTES_AT_ONCE:
            message, its_size = self._next()
            taken.append(message)
            size += its_size
        return taken

    def _next(self) -> WaitingMessage[M]:
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
