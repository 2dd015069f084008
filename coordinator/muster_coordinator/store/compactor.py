"""Packs quiet runs into blocks, and old blocks into summaries.

| What | Becomes | When |
|---|---|---|
| rows of quiet runs | a block with every run, for each check and hour | an hour has passed |
| blocks with every run | summaries of 5 minutes, six hours in a block | after `store.keep_full_days` |
| summaries of 5 minutes | hourly summaries, a day in a block | after `store.keep_days` |

One node is packed at a time, in a thread, and the nodes are spread over SPREAD_S: 10,000 nodes at three in a second.
What is packed is deleted and stored in one transaction, which is given up if another coordinator has deleted any of it
meanwhile. So no run is lost or counted twice.

A row of a quiet run that cannot be read, or whose whole run is damaged or absent, is counted and logged once. It stays
until it is older than `store.keep_days`.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import structlog
from sqlalchemy import ColumnElement, Select, Table, and_, delete, func, insert, or_, select, tuple_

from muster.config import StoreSettings
from muster_coordinator.store import packing
from muster_coordinator.store.database import Database
from muster_coordinator.store.packing import TO_HOURS, TO_MINUTES, ResolutionStep, whole_span
from muster_coordinator.store.quiet_rows import whole_bases
from muster_coordinator.store.rows import Unreadable
from muster_coordinator.store.summaries import HOUR_S
from muster_coordinator.store.tables import QUIET_RUNS, SERIES

EVERY_S = 600.0
SPREAD_S = 3_000.0
"""The time over which the nodes of one pass are spread; less than an hour, because each hour has its pass."""

LONGEST_PAUSE_S = 1.0

LATE_S = 300.0
"""Runs of the last hour that come later than this have a block of their own."""

DAY_S = 86_400.0

ROWS = 5_000
"""Quiet runs that are packed together: more than a node has in an hour."""

KEYS_AT_ONCE = 400
STRETCHES_AT_ONCE = 100

MOST_LEFT = 100_000
"""Unreadable rows that are remembered. If there are more, they are counted again."""

log = structlog.get_logger()


class Compactor:
    """Packs what is old enough in one database."""

    def __init__(self, database: Database, keep: StoreSettings, clock: Callable[[], float]) -> None:
        self.packed = 0
        self._database = database
        self._keep = keep
        self._clock = clock
        self._left: set[tuple[str, int]] = set()

    async def run(self) -> None:
        """Packs every EVERY_S, without end. Raises WriteFailed if the database cannot be written.

        If the database cannot be read, it goes on: the database only keeps more than it should.
        """
        while True:
            try:
                await self.compact(_pause)
            except Unreadable as error:
                log.error("not_compacted", error=str(error))
            await asyncio.sleep(EVERY_S)

    async def compact(self, pause: Callable[[int], Awaitable[None]] | None = None) -> None:
        """Packs everything that is old enough now, with a `pause` after each node, which gets the number of nodes."""
        now = self._clock()
        hour = whole_span(now - LATE_S, HOUR_S)
        nodes = await self._nodes(_nodes_with_quiet_runs(hour))
        for node in nodes:
            await self._pack_runs(node, hour, now - self._keep.keep_days * DAY_S)
            await _pausing(pause, len(nodes))
        await self._downsample_all(TO_MINUTES, now - self._keep.keep_full_days * DAY_S, pause)
        await self._downsample_all(TO_HOURS, now - self._keep.keep_days * DAY_S, pause)

    async def downsample(self, level: ResolutionStep, before: float) -> int:
        """Downsamples the blocks of this level from before that time. Returns the number of nodes that had any."""
        return await self._downsample_all(level, before, None)

    async def _downsample_all(
        self, level: ResolutionStep, before: float, pause: Callable[[int], Awaitable[None]] | None
    ) -> int:
        end = whole_span(before, level.span_s)
        old = SERIES.c.resolution_s == level.source_s, SERIES.c.until < end
        nodes = await self._nodes(select(SERIES.c.node).where(*old).distinct())
        for node in nodes:
            await self._downsample(node, level, end)
            await _pausing(pause, len(nodes))
        return len(nodes)

    async def _nodes(self, query: Select[tuple[str]]) -> Sequence[str]:
        async with self._database.reading() as connection:
            return list(await connection.scalars(query))

    async def _pack_runs(self, node: str, end: float, keep_from: float) -> None:
        """Packs quiet runs of a node from before `end`, a whole hour; deletes unreadable ones of before `keep_from`."""
        key = (QUIET_RUNS.c.started_at, QUIET_RUNS.c.key, QUIET_RUNS.c.seq)
        query = select(QUIET_RUNS).where(QUIET_RUNS.c.node == node, QUIET_RUNS.c.started_at < end)
        query = query.order_by(*key).limit(ROWS)
        last: tuple[Any, ...] | None = None
        while True:
            async with self._database.reading() as connection:
                following = query if last is None else query.where(tuple_(*key) > tuple_(*last))
                rows = (await connection.execute(following)).mappings().all()
                new = [row for row in rows if _key(row) not in self._left]
                bases = await whole_bases(connection, self._database.unread, {row["base"] for row in new})
            blocks, packed = await asyncio.to_thread(packing.packed_rows, new, bases, self._database.unread)
            keys = {_key(row) for row in packed}
            await self._replace(QUIET_RUNS, _stretches(keys), blocks)
            self.packed += len(packed)
            await self._leave(node, [row for row in rows if _key(row) not in keys], keep_from)
            if len(rows) < ROWS:
                return
            last = tuple(rows[-1][column] for column in ("started_at", "key", "seq"))

    async def _leave(self, node: str, rows: Sequence[Mapping[Any, Any]], keep_from: float) -> None:
        """Remembers rows that cannot be read, and deletes those from before `keep_from`."""
        old = {_key(row) for row in rows if row["started_at"] < keep_from}
        if old:
            await self._replace(QUIET_RUNS, _stretches(old), [])
            log.warning("unreadable_runs_removed", node=node, runs=len(old))
        if len(self._left) > MOST_LEFT:
            self._left.clear()
        self._left.difference_update(old)
        self._left.update({_key(row) for row in rows} - old)

    async def _downsample(self, node: str, level: ResolutionStep, end: float) -> None:
        """Downsamples the blocks of a node from before `end`, those of one block at a time."""
        old = SERIES.c.node == node, SERIES.c.resolution_s == level.source_s, SERIES.c.until < end
        async with self._database.reading() as connection:
            found = (await connection.execute(select(SERIES.c.id, SERIES.c.since).where(*old))).all()
        together: defaultdict[int, list[int]] = defaultdict(list)
        for block, since in found:
            together[int(since // level.span_s)].append(block)
        for _, ids in sorted(together.items()):
            async with self._database.reading() as connection:
                rows = (await connection.execute(select(SERIES).where(SERIES.c.id.in_(ids)))).mappings().all()
            blocks, used = await asyncio.to_thread(packing.downsampled, rows, level, self._database.unread)
            await self._replace(SERIES, _with_ids([row["id"] for row in used]), blocks)

    async def _replace(self, table: Table, old: Sequence["_OldRows"], blocks: Sequence[dict[str, Any]]) -> None:
        if not old:
            return
        try:
            async with self._database.writing() as connection:
                for rows in old:
                    gone = await connection.execute(delete(table).where(rows.condition))
                    if gone.rowcount != rows.number:
                        raise _PackedByAnother
                if blocks:
                    await connection.execute(insert(SERIES), list(blocks))
        except _PackedByAnother:
            log.warning("packed_by_another_coordinator", table=table.name)


def _key(row: Mapping[Any, Any]) -> tuple[str, int]:
    return row["key"], row["seq"]


class _PackedByAnother(Exception):
    """Another coordinator has packed the same rows, which rolls this transaction back."""


def _nodes_with_quiet_runs(end: float) -> Select[tuple[str]]:
    """The nodes with a quiet run from before `end`, one after the other: a list of all would read every row."""
    nodes = select(func.min(QUIET_RUNS.c.node).label("node")).cte(recursive=True)
    following = select(func.min(QUIET_RUNS.c.node)).where(QUIET_RUNS.c.node > nodes.c.node).scalar_subquery()
    nodes = nodes.union_all(select(following).where(nodes.c.node.is_not(None)))
    oldest = select(func.min(QUIET_RUNS.c.started_at)).where(QUIET_RUNS.c.node == nodes.c.node).scalar_subquery()
    return select(nodes.c.node).where(nodes.c.node.is_not(None), oldest < end)


class _OldRows(NamedTuple):
    """The condition that exactly `number` rows meet."""

    condition: ColumnElement[bool]
    number: int


def _with_ids(ids: Sequence[int]) -> list[_OldRows]:
    """The blocks with these ids."""
    parts = [ids[first : first + KEYS_AT_ONCE] for first in range(0, len(ids), KEYS_AT_ONCE)]
    return [_OldRows(SERIES.c.id.in_(part), len(part)) for part in parts]


def _stretches(keys: Iterable[tuple[str, int]]) -> list[_OldRows]:
    """The quiet runs with these keys and numbers: those that follow each other in one condition.

    A node has one or two stretches in an hour. A condition with each number takes longer to write than to look up.
    """
    stretches: list[tuple[str, int, int]] = []
    for key, seq in sorted(keys):
        last = stretches[-1] if stretches else None
        if last is not None and last[0] == key and last[2] + 1 == seq:
            stretches[-1] = key, last[1], seq
        else:
            stretches.append((key, seq, seq))
    parts = [stretches[first : first + STRETCHES_AT_ONCE] for first in range(0, len(stretches), STRETCHES_AT_ONCE)]
    return [_OldRows(or_(*map(_is_in, part)), sum(last - first + 1 for _, first, last in part)) for part in parts]


def _is_in(stretch: tuple[str, int, int]) -> ColumnElement[bool]:
    key, first, last = stretch
    return and_(QUIET_RUNS.c.key == key, QUIET_RUNS.c.seq.between(first, last))


async def _pausing(pause: Callable[[int], Awaitable[None]] | None, nodes: int) -> None:
    if pause is not None:
        await pause(nodes)


async def _pause(nodes: int) -> None:
    await asyncio.sleep(min(LONGEST_PAUSE_S, SPREAD_S / nodes))
