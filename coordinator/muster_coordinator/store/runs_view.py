"""Runs as they were reported, wherever they are stored: whole, as a quiet run, or in a block."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from muster.model import Run, Verdict
from muster.wire.scheduled_runs import IS_SCHEDULED
from muster_coordinator.store.database import Database
from muster_coordinator.store.merging import BlockRow, Latest, Located, Window, add_from_blocks, quiet_runs, whole_runs
from muster_coordinator.store.paging import Page, make_cursor, read_cursor
from muster_coordinator.store.quiet_rows import quiet_numbers, whole_base, whole_bases
from muster_coordinator.store.rows import Unread, read_row
from muster_coordinator.store.series import FULL, FullBlock, rebuilt, summaries_of, times_of
from muster_coordinator.store.summaries import Summary
from muster_coordinator.store.tables import QUIET_RUNS, RUNS, SERIES

_LARGEST_SEQ = 1 << 53


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """The runs to list; None leaves a condition out. `since` is in seconds since the epoch."""

    node: str | None = None
    check: str | None = None
    verdict: Verdict | None = None
    since: float | None = None

    def conditions(self, table: Table) -> list[ColumnElement[bool]]:
        """Conditions on rows of `table`, without that on the time."""
        equal = {"node": self.node, "check": self.check, "verdict": self.verdict and self.verdict.value}
        return [table.c[name] == value for name, value in equal.items() if value is not None]


async def read_runs(database: Database, wanted: RunFilter, limit: int, cursor: str | None) -> Page[Run]:
    """The runs that fit, the latest started first. Raises Refused if the cursor is not valid."""
    window = Window(count=limit + 1, since=wanted.since, before=position(cursor))
    latest = Latest(window.count)
    async with database.reading() as connection:
        latest.add(await whole_runs(connection, wanted.conditions(RUNS), window))
        if wanted.verdict in (None, Verdict.PASS, Verdict.SKIPPED):
            latest.add(await quiet_runs(connection, wanted.conditions(QUIET_RUNS), window))
            in_full = [SERIES.c.resolution_s == FULL, *wanted.conditions(SERIES)]
            await add_from_blocks(connection, database.unread, latest, in_full, window)
        return await page_of(connection, database.unread, latest.in_order(), limit, _as_run)


async def read_run(database: Database, run: str) -> Run | None:
    """One run; None if none with this id is stored. Raises Unreadable if it is damaged."""
    async with database.reading() as connection:
        body = await connection.scalar(select(RUNS.c.body).where(RUNS.c.id == run))
        if body is not None:
            return read_row("runs", run, body, Run.model_validate_json)
        if (found := IS_SCHEDULED.fullmatch(run)) is None or int(found[2]) >= _LARGEST_SEQ:
            return None
        return await _quiet_run(connection, found[1], int(found[2]))


async def _quiet_run(connection: AsyncConnection, key: str, seq: int) -> Run | None:
    rows = await connection.execute(select(QUIET_RUNS).where(QUIET_RUNS.c.key == key, QUIET_RUNS.c.seq == seq))
    if (row := rows.mappings().first()) is not None:
        base = await whole_base(connection, row["base"])
        return read_row("quiet_runs", f"{key}.{seq}", row, lambda row: rebuilt(base, quiet_numbers(row), key))
    blocks = await connection.execute(select(SERIES).where(SERIES.c.key == key))
    for block in blocks.mappings():
        run = read_row("series", block["id"], block, lambda row: _run_in(row, seq))
        if run is not None:
            return run
    return None


def _run_in(row: Mapping[Any, Any], seq: int) -> Run | None:
    """The run with this sequence number in a block; None if it is not there."""
    seqs = times_of(row["times"], row["count"]).seqs
    return full_block(row).run(seqs.index(seq)) if seq in seqs else None


# Pages


def position(cursor: str | None) -> tuple[float, str] | None:
    """The key of the last item of the page before. Raises Refused if the cursor is not valid."""
    if cursor is None:
        return None
    at, key = read_cursor(cursor, [float, str])
    return at, key


Item = Run | Summary


async def page_of(
    connection: AsyncConnection,
    unread: Unread,
    located: list[Located],
    limit: int,
    shown: Callable[[Item], Any],
) -> Page[Any]:
    """The page of what was located, as `shown`. It leaves out what cannot be read or shows as None."""
    wanted = located[:limit]
    sources = await _sources(connection, unread, wanted)
    # Making runs again takes up to a second for a page of many blocks, in which other requests must be answered.
    items = await asyncio.to_thread(lambda: list(_read(unread, wanted, sources)))
    last = wanted[-1][:2] if len(located) > limit else None
    found = (shown(item) for item in items)
    return Page(
        items=tuple(item for item in found if item is not None),
        next_cursor=None if last is None else make_cursor(*last),
    )


@dataclass(frozen=True, slots=True)
class _Sources:
    """What is needed to read what was located: the runs that quiet runs are like, and the rows of blocks."""

    bases: Mapping[str, Mapping[str, Any]]
    blocks: Mapping[int, Any]


async def _sources(connection: AsyncConnection, unread: Unread, wanted: Iterable[Located]) -> _Sources:
    bases = {each.where["base"] for each in wanted if _is_quiet(each.where)}
    blocks = {each.where.block for each in wanted if isinstance(each.where, BlockRow)}
    rows = (
        (await connection.execute(select(SERIES).where(SERIES.c.id.in_(sorted(blocks))))).mappings().all()
        if blocks
        else ()
    )
    return _Sources(await whole_bases(connection, unread, bases), {row["id"]: row for row in rows})


def _read(unread: Unread, wanted: Iterable[Located], sources: _Sources) -> Iterable[Item]:
    opened: dict[int, FullBlock | list[Summary]] = {}
    for each in wanted:
        table = "series" if isinstance(each.where, BlockRow) else "quiet_runs" if _is_quiet(each.where) else "runs"
        yield from unread.leave_out(table, [(each.id, each.where)], lambda where: _item(where, sources, opened))


def _item(where: Any, sources: _Sources, opened: dict[int, FullBlock | list[Summary]]) -> Item:
    if isinstance(where, BlockRow):
        block = opened.get(where.block)
        if block is None:
            row = sources.blocks.get(where.block)
            if row is None:
                raise ValueError("was replaced while it was read")
            block = opened[where.block] = full_block(row) if row["resolution_s"] == FULL else summaries_in(row)
        return block.run(where.row) if isinstance(block, FullBlock) else block[where.row]
    if _is_quiet(where):
        base = sources.bases.get(where["base"])
        if base is None:
            raise ValueError(f"the run {where['base']} that it is like cannot be read")
        return rebuilt(base, quiet_numbers(where), where["key"])
    return Run.model_validate_json(where)


def _is_quiet(where: Any) -> bool:
    return isinstance(where, Mapping)


def full_block(row: Mapping[Any, Any]) -> FullBlock:
    """The block of every run in this row."""
    return FullBlock.read(row["key"], row["times"], row["body"], row["count"])


def summaries_in(row: Mapping[Any, Any]) -> list[Summary]:
    """The summaries of a block."""
    return summaries_of(row["node"], row["check"], row["times"], row["body"], row["count"])


def _as_run(item: Item) -> Run | None:
    return item if isinstance(item, Run) else None
