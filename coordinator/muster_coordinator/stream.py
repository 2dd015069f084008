"""What happens, as it happens, for those who listen to `/api/v1/events`."""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.events import Announce

REMEMBERED = 1_000
"""Events that a listener who was away for a moment can catch up on."""

WAITING = 1_000
"""Events that may wait for one listener. Who falls further behind is cut off, and may come back with the last id."""


@dataclass(frozen=True)
class Told:
    """One event with its place in the stream."""

    id: str
    announced: Announce

    @cached_property
    def frame(self) -> bytes:
        """The event as server-sent events write it; made once, and only if anybody listens."""
        body = self.announced.payload.model_dump_json()
        return f"id: {self.id}\nevent: {self.announced.kind}\ndata: {body}\n\n".encode()


Queue = asyncio.Queue[Told | None]
"""What waits for one listener; None ends it."""


class Stream:
    """Hands every event to every listener and never waits for any.

    Ids are `<epoch>-<number>`, so that those of an earlier coordinator are not taken for ours.
    """

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._number = 0
        self._told: deque[Told] = deque(maxlen=REMEMBERED)
        self._queues: set[Queue] = set()

    @property
    def listeners(self) -> int:
        """How many listen now."""
        return len(self._queues)

    def tell(self, announced: Announce) -> None:
        """Appends an event."""
        self._number += 1
        told = Told(f"{self._epoch}-{self._number}", announced)
        self._told.append(told)
        for queue in list(self._queues):
            if queue.qsize() < WAITING:
                queue.put_nowait(told)
            else:
                self._cut_off(queue)

    def close(self) -> None:
        """Ends every listener."""
        for queue in list(self._queues):
            self._cut_off(queue)

    @contextmanager
    def listen(self, last_id: str | None) -> Iterator[Queue]:
        """The events from now on; with `last_id` also those after it, as far as they are remembered."""
        queue: Queue = asyncio.Queue()
        for told in self._after(last_id):
            queue.put_nowait(told)
        self._queues.add(queue)
        try:
            yield queue
        finally:
            self._queues.discard(queue)

    def _after(self, last_id: str | None) -> list[Told]:
        ids = [told.id for told in self._told]
        return list(self._told)[ids.index(last_id) + 1 :] if last_id in ids else []

    def _cut_off(self, queue: Queue) -> None:
        self._queues.discard(queue)
        queue.put_nowait(None)
