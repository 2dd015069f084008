"""The whole fleet for viewers: a snapshot, and the changes since as server-sent events.

Both are made once for all viewers. A snapshot is encoded and compressed once for each version, in a thread. A frame is
encoded once for all viewers that have the same version, which is nearly always all of them. Nothing is queued for a
viewer: one that reads slowly gets what has changed meanwhile in a single frame, or is told to take a snapshot. So it
delays nobody, and costs its socket's buffer.

Without viewers, a change costs the making of its row.
"""

import asyncio
import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from muster_coordinator.model.fleet_columns import FleetChange, FleetNumbers, FleetSnapshot, SnapshotNeeded
from muster_coordinator.model.nodes import NodeView
from muster_coordinator.runtime.crowding import crowded_out
from muster_coordinator.runtime.event_ids import event_id, number_after_epoch
from muster_coordinator.views.node_rows import DatedRow, changed_before, columns, row_of
from muster_coordinator.views.versioned_nodes import VersionedNodes

LOOK_S = 1.0
"""Interval between two looks at the numbers of the fleet, some of which change without any node."""

SEEDED_AT_ONCE = 10
"""Nodes that are read at once for the first snapshot: 0.7 ms."""

COMPRESSION = 6
"""Level of gzip: 10,000 nodes take 60 ms; level 9 takes three times as long for 3 % less."""

MOST_VIEWERS = 100
"""As many browsers share one stream for all their tabs. One more disconnects one of the client with the most."""


@dataclass(frozen=True, slots=True)
class EncodedSnapshot:
    """A snapshot as JSON, and compressed with gzip."""

    epoch: int
    version: int
    body: bytes
    compressed: bytes

    @property
    def id(self) -> str:
        """The id with which a viewer that has this snapshot listens to changes."""
        return event_id(self.epoch, self.version)


class Viewer:
    """One viewer: `version` is what it has, None if it needs a snapshot; `cut_off` ends its connection."""

    def __init__(self, changes: "ChangeStream", version: int | None, cut_off: Callable[[], None]) -> None:
        self.version = version
        self.cut_off = cut_off
        self.news = asyncio.Event()
        self._changes = changes

    async def take(self) -> bytes | None:
        """Waits for a change and returns it as a server-sent event; None if the stream has ended for this viewer."""
        while (frame := self._changes.frame(self)) == b"":
            self.news.clear()
            await self.news.wait()
        return frame


class ChangeStream:
    """The fleet of a coordinator for viewers.

    `names` and `view` give the nodes, `numbers` those about the fleet, `clock` the time in seconds since 1970.
    """

    def __init__(
        self,
        epoch: int,
        *,
        names: Callable[[], Sequence[str]],
        view: Callable[[str], NodeView | None],
        numbers: Callable[[], FleetNumbers],
        clock: Callable[[], float],
    ) -> None:
        self._epoch = epoch
        self._names = names
        self._view = view
        self._numbers = numbers
        self._clock = clock
        self._nodes = VersionedNodes()
        self._fleet: FleetNumbers | None = None  # at the present version
        self._at = 0.0  # when the present version was made
        self._is_seeded = False
        self._snapshot: EncodedSnapshot | None = None
        self._making = asyncio.Lock()
        self._viewers: dict[Viewer, str] = {}  # with its client; the one that has viewed longest comes first
        self._frames: dict[int | None, bytes] = {}  # to the present version, by the version before
        self._timer: asyncio.TimerHandle | None = None

    @property
    def id(self) -> str:
        """The id of the present version, with which a viewer that has it listens to changes."""
        return event_id(self._epoch, self._nodes.version)

    @property
    def viewers(self) -> int:
        """The number of viewers."""
        return len(self._viewers)

    def note(self, view: NodeView) -> None:
        """Notes the present state of a node."""
        self._nodes.note(row_of(view), self._clock())
        self._cut_when_due()

    def drop(self, name: str) -> None:
        """Notes that a node was forgotten."""
        self._nodes.drop(name, self._clock())
        self._cut_when_due()

    async def snapshot(self) -> EncodedSnapshot:
        """The whole fleet at the present version, encoded for the first that requests it."""
        async with self._making:
            await self._seed()
            if self._nodes.due_in(_now()) == 0 or self._fleet is None:
                self._cut()
            if self._snapshot is None or self._snapshot.version != self._nodes.version:
                assert self._fleet is not None
                # In a thread: rows and numbers never change, and a later version has others.
                self._snapshot = await asyncio.to_thread(
                    _encoded, self._epoch, self._nodes.version, self._at, self._fleet, self._nodes.rows
                )
            return self._snapshot

    @contextmanager
    def watch(self, last_id: str | None, cut_off: Callable[[], None], client: str = "") -> Iterator[Viewer]:
        """A viewer of a client for the changes after the version in `last_id`; without one it needs a snapshot."""
        if len(self._viewers) >= MOST_VIEWERS:
            other = crowded_out(self._viewers, client)
            del self._viewers[other]
            other.cut_off()
            other.news.set()
        viewer = Viewer(self, number_after_epoch(last_id, self._epoch), cut_off)
        self._viewers[viewer] = client
        self._cut_within(0.0 if self._fleet is None else self._nodes.due_in(_now()))
        try:
            yield viewer
        finally:
            self._viewers.pop(viewer, None)

    def frame(self, viewer: Viewer) -> bytes | None:
        """What a viewer needs to have the present version, b"" if it has it; None if the stream has ended for it."""
        if viewer not in self._viewers:
            return None
        if viewer.version == self._nodes.version or self._fleet is None:
            return b""
        if (frame := self._frames.get(viewer.version)) is None:
            frame = self._frames[viewer.version] = self._frame(viewer.version, self._fleet)
        viewer.version = self._nodes.version
        return frame

    def close(self) -> None:
        """Ends the stream for every viewer."""
        viewers, self._viewers = self._viewers, {}
        for viewer in viewers:
            viewer.news.set()
        if self._timer is not None:
            self._timer.cancel()

    def _cut_when_due(self) -> None:
        if self._viewers and self._nodes.has_changes:
            self._cut_within(self._nodes.due_in(_now()))

    def _cut_within(self, delay_s: float) -> None:
        """Makes a cut after this time, unless one comes earlier."""
        at = _now() + delay_s
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(at, self._cut_for_viewers)

    def _cut_for_viewers(self) -> None:
        self._timer = None
        if self._viewers:
            self._cut()
            self._cut_within(LOOK_S)

    def _cut(self) -> None:
        fleet = self._numbers()
        if self._nodes.cut(_now(), always=fleet != self._fleet):
            self._fleet, self._at = fleet, self._clock()
            self._frames.clear()
            for viewer in self._viewers:
                viewer.news.set()

    def _frame(self, version: int | None, fleet: FleetNumbers) -> bytes:
        changed = None if version is None else self._nodes.since(version)
        if version is None or changed is None:
            needed = SnapshotNeeded(epoch=self._epoch, version=self._nodes.version)
            return self._event("reset", needed.model_dump_json())
        names, nodes = columns(changed.rows, self._at)
        change = FleetChange.model_construct(
            epoch=self._epoch,
            version=self._nodes.version,
            at=self._at,
            fleet=fleet,
            names=names,
            nodes=nodes,
            since=version,
            gone=tuple(changed.gone),
        )
        return self._event("change", change.model_dump_json())

    def _event(self, kind: str, body: str) -> bytes:
        return f"id: {self.id}\nevent: {kind}\ndata: {body}\n\n".encode()

    async def _seed(self) -> None:
        """Reads every node once. Changes arrive by `note` meanwhile, and count."""
        if self._is_seeded:
            return
        names = self._names()
        for start in range(0, len(names), SEEDED_AT_ONCE):
            for name in names[start : start + SEEDED_AT_ONCE]:
                if not self._nodes.knows(name) and (view := self._view(name)) is not None:
                    self._nodes.seed(row_of(view), changed_before(view))
            await asyncio.sleep(0)
        self._is_seeded = True


def _encoded(epoch: int, version: int, at: float, fleet: FleetNumbers, rows: Sequence[DatedRow]) -> EncodedSnapshot:
    by_place = sorted(rows, key=lambda dated: (*(name or "" for name in dated.row.place), dated.row.name))
    names, nodes = columns(by_place, at)  # by place, the column of places shrinks from 16 KB to 2 KB
    snapshot = FleetSnapshot.model_construct(epoch=epoch, version=version, at=at, fleet=fleet, names=names, nodes=nodes)
    body = snapshot.model_dump_json().encode()
    return EncodedSnapshot(epoch, version, body, gzip.compress(body, COMPRESSION, mtime=0))


def _now() -> float:
    return asyncio.get_running_loop().time()
