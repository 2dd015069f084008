"""Messages that wait to be decoded: one queue for each node, served in turns.

The messages of one node keep their order. A node that sends many messages delays only its own. Example: n1 has 1,000
messages waiting, then n2 sends one; n2's message is decoded second.

A node with an urgent message goes first, with all that waits before that message: its inventory must be known before
its runs. Of every URGENT_TURNS + 1 messages one is another node's, so that nodes that call everything urgent hold up
nobody else for long.

The bytes that may wait are bounded for each node and in total. `put` takes constant time, `take` constant time for each
message.
"""

from collections import OrderedDict, deque
from typing import Generic, NamedTuple, TypeVar

MOST_BYTES_OF_A_NODE = 8 << 20
"""Maximum number of waiting bytes of one node, more than an agent sends at once: 500 runs of at most 256 KiB, of which
hardly any has more than 10 KiB.
"""

MOST_BYTES = 32 << 20
"""Maximum number of waiting bytes of all nodes together. Above it, the coordinator reads nothing and the broker keeps
the messages.
"""

URGENT_TURNS = 4

M = TypeVar("M")


class WaitingMessage(NamedTuple, Generic[M]):
    """A message with its size in bytes, and the time at which it arrived."""

    message: M
    size: int
    arrived_at: float


class _NodeQueue(Generic[M]):
    """The waiting messages of one node. The first `urgent` of them end with an urgent one."""

    __slots__ = ("bytes", "messages", "urgent")

    def __init__(self) -> None:
        self.messages: deque[WaitingMessage[M]] = deque()
        self.bytes = 0
        self.urgent = 0


class FairInbox(Generic[M]):
    """The waiting messages of all nodes; `bytes` is their total size, `waited_s` how long the last one had waited."""

    def __init__(self) -> None:
        self.bytes = 0
        self.waited_s = 0.0
        self._count = 0
        self._queues: dict[str, _NodeQueue[M]] = {}
        # Every node with waiting messages is in one of these, once; the next to be served comes first.
        self._turns: OrderedDict[str, None] = OrderedDict()
        self._urgent_turns: OrderedDict[str, None] = OrderedDict()
        self._urgent_in_a_row = 0

    def __len__(self) -> int:
        return self._count

    def put(self, node: str, message: M, size: int, now: float, *, urgent: bool = False) -> bool:
        """Appends a message. Returns False without appending it if too many bytes of its node wait already."""
        queue = self._queues.get(node)
        if queue is None:
            queue = self._queues[node] = _NodeQueue()
            self._turns[node] = None
        elif queue.bytes + size > MOST_BYTES_OF_A_NODE:
            return False
        queue.messages.append(WaitingMessage(message, size, now))
        queue.bytes += size
        self.bytes += size
        self._count += 1
        if urgent:
            queue.urgent = len(queue.messages)
            self._turns.pop(node, None)
            self._urgent_turns[node] = None
        return True

    def take(self, most: int, most_bytes: float, now: float) -> list[M]:
        """Removes and returns up to `most` messages, one of each node in turns; stops after `most_bytes`."""
        taken: list[M] = []
        size = 0
        while self._queues and len(taken) < most and size < most_bytes:
            waiting = self._next()
            taken.append(waiting.message)
            size += waiting.size
            self.waited_s = now - waiting.arrived_at
        return taken

    def _next(self) -> WaitingMessage[M]:
        node = self._next_node()
        queue = self._queues[node]
        waiting = queue.messages.popleft()
        queue.bytes -= waiting.size
        queue.urgent = max(0, queue.urgent - 1)
        if not queue.messages:
            del self._queues[node]
        else:
            (self._urgent_turns if queue.urgent else self._turns)[node] = None
        self.bytes -= waiting.size
        self._count -= 1
        return waiting

    def _next_node(self) -> str:
        """Removes the next node from its turns."""
        goes_first = self._urgent_turns and (self._urgent_in_a_row < URGENT_TURNS or not self._turns)
        self._urgent_in_a_row = self._urgent_in_a_row + 1 if goes_first else 0
        node, _ = (self._urgent_turns if goes_first else self._turns).popitem(last=False)
        return node
