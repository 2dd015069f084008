"""What a node measured in steps of time: its runs and the summaries of older ones, merged.

The idea: whatever is stored in some time becomes one summary for each step and check. Whole runs are read by their
rows, those in blocks by their columns, so no run of a block is made again. Runs with other parameters count in the same
step. While the compactor moves runs, some may count twice.

Example: a node has 24 blocks of a check for a day, each with 60 runs. In steps of five minutes, these are 288
summaries. A block of `nvml`, with 40 metrics of eight GPUs, takes 3 ms for one metric and 9 ms for all.
"""

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from muster.errors import Refused
from muster.model import Run
from muster_coordinator.store.database import Database
from muster_coordinator.store.quiet_rows import quiet_numbers, whole_bases
from muster_coordinator.store.rows import Unread
from muster_coordinator.store.runs_view import full_block
from muster_coordinator.store.series import FULL, FullBlock, rebuilt
from muster_coordinator.store.summaries import Summary, merged, summarised
from muster_coordinator.store.summary_block import SummaryBlock
from muster_coordinator.store.tables import QUIET_RUNS, RUNS, SERIES

BLOCKS_AT_ONCE = 100

MOST_WHOLE_RUNS = 10_000
"""Whole runs that are read at once: a node that fails each minute has as many in a week. They take half a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFilter:
    """What is wanted of a node, in seconds since the epoch; `until` is not included. None leaves a condition out."""

    node: str
    since: float
    until: float
    check: str | None = None
    metric: str | None = None

    def conditions(self, table: Table) -> list[ColumnElement[bool]]:
        """Conditions on rows of `table`, without those on the time."""
        found = [table.c.node == self.node]
        return found if self.check is None else [*found, table.c.check == self.check]

    def of_runs(self, table: Table) -> list[ColumnElement[bool]]:
        """Conditions on rows of a run each."""
        started_at = table.c.started_at
        return [*self.conditions(table), started_at >= self.since, started_at < self.until]


async def read_steps(database: Database, wanted: StepFilter, step_s: int | None) -> list[Summary]:
    """The summaries of each step and check, the earliest first; of the whole time if `step_s` is None.

    A step begins at a multiple of `step_s` since the epoch. Raises Refused if there are too many whole runs to read.
    """
    steps = _Steps(database.unread, wanted, step_s)
    async with database.reading() as connection:
        await _add_whole_runs(connection, steps, wanted.of_runs(RUNS))
        await _add_quiet_runs(connection, steps, wanted.of_runs(QUIET_RUNS))
        in_time = [SERIES.c.until >= wanted.since, SERIES.c.since < wanted.until]
        await _add_blocks(connection, steps, [*wanted.conditions(SERIES), *in_time])
    return await asyncio.to_thread(steps.merged)


class _Steps:
    """The summaries found so far, by check and step."""

    def __init__(self, unread: Unread, wanted: StepFilter, step_s: int | None) -> None:
        self.unread = unread
        self._wanted = wanted
        self._step_s = step_s
        self._found: dict[tuple[str, int], list[Summary]] = defaultdict(list)

    def add_runs(self, table: str, rows: Iterable[Any], read: Callable[[Any], Run]) -> None:
        """Adds the runs that `read` makes of the rows, each a key and a body."""
        self._add(summary for run in self.unread.leave_out(table, rows, read) for summary in summarised([run]))

    def add_blocks(self, rows: Sequence[Mapping[Any, Any]]) -> None:
        """Adds what these blocks hold."""
        for found in self.unread.leave_out("series", [(row["id"], row) for row in rows], self._of_block):
            self._add(found)

    def merged(self) -> list[Summary]:
        """One summary for each step and check, the earliest first."""
        found = [merged(same) for same in self._found.values()]
        return sorted(found, key=lambda summary: (summary.started_at, summary.check))

    def _add(self, summaries: Iterable[Summary]) -> None:
        for each in summaries:
            self._found[each.check, self._step_of(each.started_at)].append(each)

    def _step_of(self, at: float) -> int:
        return 0 if self._step_s is None else int(at // self._step_s)

    def _of_block(self, row: Mapping[Any, Any]) -> list[Summary]:
        block = full_block(row) if row["resolution_s"] == FULL else SummaryBlock.read(row)
        at_ms = block.times.at_ms if isinstance(block, FullBlock) else block.at_ms
        return block.in_slots(self._slots(at_ms), self._wanted.metric)

    def _slots(self, at_ms: Sequence[int]) -> list[slice]:
        """The rows of a block in each step, without those that are not wanted."""
        first = bisect_left(at_ms, 1000 * self._wanted.since)
        end = bisect_left(at_ms, 1000 * self._wanted.until)
        slots: list[slice] = []
        for _, rows in groupby(range(first, end), lambda row: self._step_of(at_ms[row] / 1000)):
            here = [*rows]
            slots.append(slice(here[0], here[-1] + 1))
        return slots


async def _add_whole_runs(connection: AsyncConnection, steps: _Steps, wanted: Sequence[ColumnElement[bool]]) -> None:
    query = select(RUNS.c.id, RUNS.c.body).where(*wanted).order_by(RUNS.c.started_at).limit(MOST_WHOLE_RUNS + 1)
    rows = (await connection.execute(query)).all()
    if len(rows) > MOST_WHOLE_RUNS:
        raise Refused(f"more than {MOST_WHOLE_RUNS:,} runs are stored one by one in this time; choose a shorter time")
    await asyncio.to_thread(steps.add_runs, "runs", rows, Run.model_validate_json)


async def _add_quiet_runs(connection: AsyncConnection, steps: _Steps, wanted: Sequence[ColumnElement[bool]]) -> None:
    rows = (await connection.execute(select(QUIET_RUNS).where(*wanted))).mappings().all()
    bases = await whole_bases(connection, steps.unread, {row["base"] for row in rows})
    of_known = [(f"{row['key']}.{row['seq']}", row) for row in rows if row["base"] in bases]

    def read(row: Mapping[Any, Any]) -> Run:
        return rebuilt(bases[row["base"]], quiet_numbers(row), row["key"])

    await asyncio.to_thread(steps.add_runs, "quiet_runs", of_known, read)


async def _add_blocks(connection: AsyncConnection, steps: _Steps, wanted: Sequence[ColumnElement[bool]]) -> None:
    query = select(SERIES).where(*wanted).order_by(SERIES.c.id).limit(BLOCKS_AT_ONCE)
    last = -1
    while True:
        rows = (await connection.execute(query.where(SERIES.c.id > last))).mappings().all()
        await asyncio.to_thread(steps.add_blocks, rows)
        if len(rows) < BLOCKS_AT_ONCE:
            return
        last = rows[-1]["id"]
