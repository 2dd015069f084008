"""Finds the latest runs or points over the tables that hold them, before anything is read in full.

The idea: whole runs and quiet runs have a row each, in the order of time. A block of many runs spans some time, and
blocks of many nodes span the same time. Only the times of a block are read to see which of its runs are among the
latest ones. Blocks come by their last start, the latest first. As soon as the next block ends before the last run of
the page, no later block can have one. So a page costs what it shows, and the starts in each block of the same hour.

Example: 10,000 nodes have 40,000 blocks in an hour. A page of 100 runs in the middle of that hour reads the starts in
all of them, since each may have one of the latest; it takes out those between the last run that it has so far and the
cursor, by bisection. That takes 1.3 s of a thread. A page for one node, or of the last hour, takes little.

While the compactor moves runs from one table to another, a run may be found twice; it is the same by its id.
"""

import asyncio
import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Text, cast, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from muster.wire.scheduled_runs import scheduled_id
from muster_coordinator.store.rows import Unread
from muster_coordinator.store.series import FULL, starts_of, times_of
from muster_coordinator.store.tables import QUIET_RUNS, RUNS, SERIES

BLOCKS_AT_ONCE = 200

_ID_OF_A_QUIET_RUN = QUIET_RUNS.c.key + "." + cast(QUIET_RUNS.c.seq, Text)


class BlockRow(NamedTuple):
    """A run or summary in a block, by the id of the block and the place in it."""

    block: int
    row: int


class Located(NamedTuple):
    """A run or summary: its start by the coordinator's clock, its id, and its row or place in a block."""

    at: float
    id: str
    where: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time of the wanted runs, and how many of the latest are wanted; `before` is the key of the last one seen."""

    count: int
    since: float | None = None
    until: float | None = None
    before: tuple[float, str] | None = None

    def admits(self, at: float, id: str) -> bool:
        """Whether a run with this key is in the window."""
        if (self.since is not None and at < self.since) or (self.until is not None and at >= self.until):
            return False
        return self.before is None or (at, id) < self.before

    def conditions(self, started_at: ColumnElement[float], id: ColumnElement[str]) -> list[ColumnElement[bool]]:
        """The same as conditions on rows."""
        found = [] if self.since is None else [started_at >= self.since]
        if self.until is not None:
            found.append(started_at < self.until)
        if self.before is not None:
            found += [started_at <= self.before[0], tuple_(started_at, id) < tuple_(*self.before)]
        return found


@dataclass(slots=True)
class Latest:
    """The latest of all that was found so far, up to a number."""

    count: int
    floor: float = float("-inf")
    """Nothing that started earlier can be among the latest."""
    _found: dict[str, Located] = field(default_factory=dict)

    def add(self, located: Sequence[Located]) -> None:
        """Adds what was found; of two with the same id, the first stays."""
        for each in located:
            self._found.setdefault(each.id, each)
        if located and len(self._found) >= self.count:
            self._found = {each.id: each for each in self.in_order()}
            self.floor = min(each.at for each in self._found.values())

    def in_order(self) -> list[Located]:
        """The latest, the last first."""
        return heapq.nlargest(self.count, self._found.values(), key=lambda each: each[:2])


async def whole_runs(
    connection: AsyncConnection, wanted: Sequence[ColumnElement[bool]], window: Window
) -> list[Located]:
    """The latest whole runs, each with its body."""
    key = _in_byte_order(RUNS.c.id, connection)
    query = select(RUNS.c.started_at, RUNS.c.id, RUNS.c.body)
    query = query.where(*wanted, *window.conditions(RUNS.c.started_at, key))
    rows = await connection.execute(query.order_by(RUNS.c.started_at.desc(), key.desc()).limit(window.count))
    return [Located(_time(at), str(run), body) for at, run, body in rows]


async def quiet_runs(
    connection: AsyncConnection, wanted: Sequence[ColumnElement[bool]], window: Window
) -> list[Located]:
    """The latest quiet runs that have a row of their own, each with its row."""
    key = _in_byte_order(_ID_OF_A_QUIET_RUN, connection)
    query = select(QUIET_RUNS).where(*wanted, *window.conditions(QUIET_RUNS.c.started_at, key))
    rows = await connection.execute(query.order_by(QUIET_RUNS.c.started_at.desc(), key.desc()).limit(window.count))
    return [Located(_time(row["started_at"]), scheduled_id(row["key"], row["seq"]), row) for row in rows.mappings()]


async def add_from_blocks(
    connection: AsyncConnection, unread: Unread, latest: Latest, wanted: Sequence[ColumnElement[bool]], window: Window
) -> None:
    """Adds the latest runs and summaries in blocks."""
    columns = (SERIES.c.id, SERIES.c.key, SERIES.c.resolution_s, SERIES.c.until, SERIES.c.count, SERIES.c.times)
    ends = (SERIES.c.until, SERIES.c.id)
    query = select(*columns).where(*wanted, *_overlapping(window)).order_by(*(end.desc() for end in ends))
    last: tuple[float, int] | None = None
    while True:
        following = query if last is None else query.where(tuple_(*ends) < tuple_(*last))
        rows = (await connection.execute(following.limit(BLOCKS_AT_ONCE))).mappings().all()
        # In a thread, because a page may need the starts in each block of an hour, of the whole fleet.
        await asyncio.to_thread(_add_rows, unread, latest, rows, window)
        if len(rows) < BLOCKS_AT_ONCE or rows[-1]["until"] < latest.floor:
            return
        last = rows[-1]["until"], rows[-1]["id"]


def _add_rows(unread: Unread, latest: Latest, rows: Iterable[Any], window: Window) -> None:
    """Adds the latest of these blocks, which are in the order of their last start, the latest first."""
    for row in rows:
        if row["until"] < latest.floor:
            return
        for located in unread.leave_out("series", [(row["id"], row)], lambda row: _located(row, window, latest.floor)):
            latest.add(located)


def _located(row: Any, window: Window, floor: float) -> list[Located]:
    """The runs or summaries of a block that are in the window and did not start before `floor`."""
    at_ms = starts_of(row["times"], row["count"])
    least = floor if window.since is None else max(floor, window.since)
    most = float("inf") if window.before is None else window.before[0]
    rows = range(bisect_left(at_ms, least, key=_seconds), bisect_right(at_ms, most, key=_seconds))
    if not rows:
        return []
    found = [Located(_seconds(at_ms[place]), key, BlockRow(row["id"], place)) for place, key in _ids(row, rows)]
    return [each for each in found if window.admits(each.at, each.id)]


def _ids(row: Any, places: range) -> Iterator[tuple[int, str]]:
    """The ids of the runs or summaries in these places of a block."""
    if row["resolution_s"] != FULL:
        return ((place, f"{row['id']}.{place}") for place in places)
    seqs = times_of(row["times"], row["count"]).seqs
    return ((place, scheduled_id(row["key"], seqs[place])) for place in places)


def _seconds(at_ms: int) -> float:
    return at_ms / 1000


def _overlapping(window: Window) -> list[ColumnElement[bool]]:
    found = [] if window.since is None else [SERIES.c.until >= window.since]
    if window.until is not None:
        found.append(SERIES.c.since < window.until)
    return found if window.before is None else [*found, SERIES.c.since <= window.before[0]]


def _in_byte_order(id: ColumnElement[str], connection: AsyncConnection) -> ColumnElement[str]:
    """The id, ordered as in Python; PostgreSQL orders by the language of the database."""
    return id.collate("C") if connection.dialect.name == "postgresql" else id


def _time(at: Any) -> float:
    """The start of a run. What is no number in a damaged row comes before all numbers, as in SQLite."""
    return at if isinstance(at, float | int) else float("inf")
