"""What happens, as it happens, for those who listen to `/api/v1/events`.

Every event is written once, into one log that all listeners share; a listener is a place in it. So memory is bounded by
the log, however many listen and however slowly they read. Who falls behind the log's beginning is cut off.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

from muster_coordinator.events import Announce

REMEMBERED = 10_000
"""Events that a listener may be behind. Who falls further behind is cut off, and may come back with the last id."""

REMEMBERED_BYTES = 16 << 20
"""The same in bytes: the event of a sweep of ten thousand nodes may have a million."""

CATCH_UP_S = 60.0
"""How long after the last listener has left events are kept for its return; without listeners they cost nothing."""

CHUNK_BYTES = 64 << 10
"""Events are sent together up to this size: many small writes are what listeners cost."""

MOST_LISTENERS = 100
"""Pages, scripts and exporters of a large fleet. For one more, the one that has listened longest is cut off."""


class Listener:
    """One place in the stream. `cut_off` ends its connection."""

    def __init__(self, stream: "Stream", place: int, cut_off: Callable[[], None]) -> None:
        self.place = place
        self.cut_off = cut_off
        self.news = asyncio.Event()
        self._stream = stream

    async def take(self) -> bytes | None:
        """What has happened since the last time, as server-sent events write it; None when the stream has ended."""
        while (told := self._stream.read(self)) == b"":
            self.news.clear()
            await self.news.wait()
        return told


class Stream:
    """Hands every event to every listener and never waits for any.

    Ids are `<epoch>-<number>`, so that those of an earlier coordinator are not taken for ours.
    """

    def __init__(self, epoch: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._epoch = epoch
        self._clock = clock
        self._next = 1  # the number of the event that comes next
        self._log: deque[bytes] = deque()  # the last events, up to that one
        self._log_bytes = 0
        self._left_at: float | None = None  # when the last listener left
        self._listeners: dict[Listener, None] = {}  # who has listened longest comes first

    @property
    def listeners(self) -> int:
        """How many listen now."""
        return len(self._listeners)

    def tell(self, announced: Announce) -> None:
        """Appends an event."""
        if self._is_heard():
            self._append(self._frame(announced))
        else:
            self._forget_all()
        self._next += 1
        for listener in list(self._listeners):
            if listener.place < self._first:
                self._cut_off(listener)
            listener.news.set()

    def close(self) -> None:
        """Ends every listener when it has read what it can."""
        listeners, self._listeners = self._listeners, {}
        for listener in listeners:
            listener.news.set()

    @contextmanager
    def listen(self, last_id: str | None, cut_off: Callable[[], None]) -> Iterator[Listener]:
        """The events from now on; with `last_id` also those after it, if they are remembered."""
        if len(self._listeners) >= MOST_LISTENERS:
            self._cut_off(next(iter(self._listeners)))
        listener = Listener(self, self._place_after(last_id), cut_off)
        self._listeners[listener] = None
        try:
            yield listener
        finally:
            self._listeners.pop(listener, None)
            self._left_at = self._clock()

    def read(self, listener: Listener) -> bytes | None:
        """A chunk of what a listener has not read yet, b"" when that is nothing; None when it has lost its place."""
        if listener.place < self._first:
            return None
        frames, size = [], 0
        for frame in islice(self._log, listener.place - self._first, None):
            frames.append(frame)
            size += len(frame)
            if size >= CHUNK_BYTES:
                break
        listener.place += len(frames)
        return b"".join(frames) if frames or listener in self._listeners else None

    @property
    def _first(self) -> int:
        return self._next - len(self._log)

    def _is_heard(self) -> bool:
        is_awaited = self._left_at is not None and self._clock() - self._left_at < CATCH_UP_S
        return bool(self._listeners) or is_awaited

    def _frame(self, announced: Announce) -> bytes:
        body = announced.payload.model_dump_json()
        return f"id: {self._epoch}-{self._next}\nevent: {announced.kind}\ndata: {body}\n\n".encode()

    def _append(self, frame: bytes) -> None:
        self._log.append(frame)
        self._log_bytes += len(frame)
        while len(self._log) > 1 and (len(self._log) > REMEMBERED or self._log_bytes > REMEMBERED_BYTES):
            self._log_bytes -= len(self._log.popleft())

    def _forget_all(self) -> None:
        self._log.clear()
        self._log_bytes = 0

    def _place_after(self, last_id: str | None) -> int:
        epoch, _, number = (last_id or "").partition("-")
        is_ours = epoch == str(self._epoch) and number.isascii() and number.isdigit() and len(number) < 20
        wanted = int(number) + 1 if is_ours else self._next
        return wanted if self._first <= wanted <= self._next else self._next

    def _cut_off(self, listener: Listener) -> None:
        self._listeners.pop(listener, None)
        listener.cut_off()
        listener.news.set()
