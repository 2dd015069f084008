"""The event stream of `/api/v1/events`.

All listeners share one log, and each has a position in it. Therefore the log bounds the memory, for any number of
listeners at any speed. A listener that falls behind the beginning of the log is disconnected.

Example: the log holds the events 501 to 1500. A listener at place 700 reads on from there; one at place 400 is
disconnected. When it returns with its last id, it gets the event `reset` first, because events are missing. An event
costs its encoding plus a constant for each listener.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

from muster_coordinator.model.events import Announce
from muster_coordinator.runtime.crowding import crowded_out
from muster_coordinator.runtime.event_ids import event_id, number_after_epoch

REMEMBERED = 10_000
"""Maximum number of events in the log. A listener that falls further behind is disconnected."""

REMEMBERED_BYTES = 16 << 20
"""Maximum number of bytes in the log. The event of a sweep of ten thousand nodes may have a million."""

CATCH_UP_S = 60.0
"""How long the stream keeps events for the return of the last listener. After that, events cost nothing."""

CHUNK_BYTES = 64 << 10
"""Events are sent together up to this size, because many small writes are the main cost of listeners."""

MOST_LISTENERS = 100
"""Enough for pages, scripts and exporters of a large fleet. One more disconnects one of the client with the most."""


class Listener:
    """One listener: `place` is the number of the event that it reads next, `cut_off` ends its connection.

    `has_missed`: events before its place are missing, and it has not been told so yet.
    """

    def __init__(self, stream: "Stream", place: int, cut_off: Callable[[], None], *, has_missed: bool) -> None:
        self.place = place
        self.has_missed = has_missed
        self.cut_off = cut_off
        self.news = asyncio.Event()
        self._stream = stream

    async def take(self) -> bytes | None:
        """Waits for events and returns them as server-sent events; None if the stream has ended for this listener."""
        while (frames := self._stream.read(self)) == b"":
            self.news.clear()
            await self.news.wait()
        return frames


class Stream:
    """Passes every event to every listener and never waits for any."""

    def __init__(self, epoch: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._epoch = epoch
        self._clock = clock
        self._next = 1  # the number of the next event
        self._log: deque[bytes] = deque()  # the latest events, encoded
        self._log_bytes = 0
        self._left_at: float | None = None  # when the last listener left
        self._listeners: dict[Listener, str] = {}  # with its client; the one that has listened longest comes first

    @property
    def listeners(self) -> int:
        """The number of listeners."""
        return len(self._listeners)

    def publish(self, announced: Announce) -> None:
        """Appends an event."""
        if self._is_wanted():
            self._append(self._frame(announced))
        else:
            self._clear_log()
        self._next += 1
        for listener in list(self._listeners):
            if listener.place < self._first:
                self._cut_off(listener)
            listener.news.set()

    def close(self) -> None:
        """Ends every listener once it has read the log to its end."""
        listeners, self._listeners = self._listeners, {}
        for listener in listeners:
            listener.news.set()

    @contextmanager
    def listen(self, last_id: str | None, cut_off: Callable[[], None], client: str = "") -> Iterator[Listener]:
        """A listener of a client for the events from now on; with `last_id` also for those after that event.

        If the log does not have all of these, the listener first gets the event `reset`.
        """
        if len(self._listeners) >= MOST_LISTENERS:
            self._cut_off(crowded_out(self._listeners, client))
        place = self._place_after(last_id) if last_id else self._next
        listener = Listener(self, place or self._next, cut_off, has_missed=place is None)
        self._listeners[listener] = client
        try:
            yield listener
        finally:
            self._listeners.pop(listener, None)
            self._left_at = self._clock()

    def read(self, listener: Listener) -> bytes | None:
        """The next events for a listener, b"" if there are none yet; None if it was disconnected or has read all."""
        if listener.place < self._first:
            return None
        if listener.has_missed:
            listener.has_missed = False
            return f"id: {event_id(self._epoch, listener.place - 1)}\nevent: reset\ndata: {{}}\n\n".encode()
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
        """The number of the first event in the log."""
        return self._next - len(self._log)

    def _is_wanted(self) -> bool:
        is_awaited = self._left_at is not None and self._clock() - self._left_at < CATCH_UP_S
        return bool(self._listeners) or is_awaited

    def _frame(self, announced: Announce) -> bytes:
        body = announced.payload.model_dump_json()
        return f"id: {event_id(self._epoch, self._next)}\nevent: {announced.kind}\ndata: {body}\n\n".encode()

    def _append(self, frame: bytes) -> None:
        self._log.append(frame)
        self._log_bytes += len(frame)
        while len(self._log) > 1 and (len(self._log) > REMEMBERED or self._log_bytes > REMEMBERED_BYTES):
            self._log_bytes -= len(self._log.popleft())

    def _clear_log(self) -> None:
        self._log.clear()
        self._log_bytes = 0

    def _place_after(self, last_id: str) -> int | None:
        """The number of the event after this one; None if that is not ours, or events since are not in the log."""
        number = number_after_epoch(last_id, self._epoch)
        return number + 1 if number is not None and self._first <= number + 1 <= self._next else None

    def _cut_off(self, listener: Listener) -> None:
        self._listeners.pop(listener, None)
        listener.cut_off()
        listener.news.set()
