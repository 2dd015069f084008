"""Deletes what is past retention: old runs become summaries of an hour each, and very old data goes.

Runs with findings are kept for longer, and the last runs of each check of a node as long as the node, because its
evidence can be rebuilt from them. A batch is summarised and deleted in one transaction, so that a run is never counted
twice and never lost.

Nodes that have left the fleet are kept as long as runs without findings. All of these are kept as long as runs with
findings: stories, transitions (the latest of each node longer), requests, ended sweeps, acceptance reports, and nodes
that were never removed but are on hold, were out of service or are silent.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import ColumnElement, Select, Table, delete, exists, func, insert, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from muster.config import StoreSettings
from muster.model import Run, Verdict
from muster_coordinator.model.events import RetentionEnded
from muster_coordinator.model.sweep_records import SweepState
from muster_coordinator.store.compactor import Compactor
from muster_coordinator.store.database import Database
from muster_coordinator.store.disk_budget import DiskBudget
from muster_coordinator.store.last_runs import last_runs
from muster_coordinator.store.packing import hourly_blocks
from muster_coordinator.store.rows import Unreadable
from muster_coordinator.store.stored_cases import old_transitions
from muster_coordinator.store.summaries import HOUR_S, Summary, hour_of, summarised
from muster_coordinator.store.tables import (
    ACCEPTANCE_NODES,
    ACCEPTANCE_REPORTS,
    ACTIONS,
    ANNOUNCEMENTS,
    EVIDENCE,
    GROUPS,
    LEVELS,
    NODES,
    QUIET_RUNS,
    REQUESTS,
    RESULTS,
    RUN_BASES,
    RUNS,
    SERIES,
    STORY,
    STREAMS,
    SWEEPS,
)

EVERY_S = 3_600.0
BATCH = 1_000
"""Rows in one transaction: as many runs as a node has in an hour, and about 50 ms that the pipeline may wait."""

DAY_S = 86_400.0

FOUND_NOTHING = (Verdict.PASS, Verdict.SKIPPED)
FOUND_SOMETHING = (Verdict.WARN, Verdict.FAIL, Verdict.UNKNOWN)

log = structlog.get_logger()


@dataclass(slots=True)
class RetentionCounts:
    """Numbers of summarised and deleted rows since the start, for metrics."""

    runs: int = 0
    summaries: int = 0


class Retention:
    """Applies the retention of the settings to one database; `deliver` takes the event about nodes past retention."""

    def __init__(
        self,
        database: Database,
        keep: StoreSettings,
        clock: Callable[[], float],
        deliver: Callable[[RetentionEnded], object],
    ) -> None:
        self.counts = RetentionCounts()
        self.compactor = Compactor(database, keep, clock)
        self.budget = DiskBudget(
            database,
            self.compactor,
            keep.max_gb,
            clock,
            thin_whole_runs=lambda before: self._thin_before(FOUND_NOTHING, before),
            remove_summaries=self._remove_summaries,
            remove_acceptance_reports=self._remove_acceptance_reports,
        )
        self._database = database
        self._keep = keep
        self._clock = clock
        self._deliver = deliver
        self._through: dict[tuple[str, tuple[Verdict, ...]], float] = {}  # everything before this time was processed
        self._anew_at = 0.0

    async def run(self) -> None:
        """Applies retention every EVERY_S, without end. Raises WriteFailed if the database cannot be written.

        If the database cannot be read, it goes on: the database only keeps more than it should.
        """
        while True:
            try:
                await self.thin()
                await self.budget.keep()
            except Unreadable as error:
                log.error("not_thinned", error=str(error))
            await asyncio.sleep(EVERY_S)

    async def thin(self) -> None:
        """Summarises and deletes everything that is old enough now."""
        now, before = self._clock(), RetentionCounts(self.counts.runs, self.counts.summaries)
        # Nodes report when a run began, so runs that are already old may have arrived meanwhile.
        if now >= self._anew_at:
            self._through.clear()
            self._anew_at = now + DAY_S
        await self._remove_old(now)
        await self._remove_what_is_left_of_nodes()
        for verdicts, days in (
            (FOUND_NOTHING, self._keep.keep_days),
            (FOUND_SOMETHING, self._keep.keep_findings_days),
        ):
            await self._thin_before(verdicts, now - days * DAY_S)
        await self._remove_summaries(now - self._keep.keep_summaries_days * DAY_S)
        if self.counts != before:
            runs, summaries = self.counts.runs - before.runs, self.counts.summaries - before.summaries
            log.info("thinned", runs_summarised=runs, summaries_removed=summaries)

    async def _thin_before(self, verdicts: tuple[Verdict, ...], before: float) -> int:
        """Summarises the whole runs from before that time. Returns their number."""
        before_this, end = self.counts.runs, float(hour_of(before) * HOUR_S)
        for node in await self._nodes_with_runs_before(end, verdicts):
            while await self._thin_runs(node, verdicts, end):
                pass
        return self.counts.runs - before_this

    async def _remove_summaries(self, before: float) -> None:
        """Deletes the blocks that end before that time, and counts their summaries."""
        too_old = SERIES.c.until < before
        async with self._database.reading() as connection:
            count = await connection.scalar(select(func.sum(SERIES.c.count)).where(too_old))
        await self._remove(SERIES, too_old)
        self.counts.summaries += count or 0

    async def _remove_old(self, now: float) -> None:
        """Deletes data that is too old and has no summary."""
        short, long = now - self._keep.keep_days * DAY_S, now - self._keep.keep_findings_days * DAY_S
        ended = SWEEPS.c.created_at < long, SWEEPS.c.state.in_([SweepState.FINISHED, SweepState.ABORTED])
        await self._remove(ACTIONS, *old_transitions(long))
        await self._remove(REQUESTS, REQUESTS.c.at < long)
        await self._remove(STORY, STORY.c.at < long)
        await self._remove(GROUPS, GROUPS.c.sweep.in_(select(SWEEPS.c.id).where(*ended)))
        await self._remove(SWEEPS, *ended)
        await self._remove_acceptance_reports(long)
        self._deliver(RetentionEnded(before=long, left_before=short))

    async def _remove_acceptance_reports(self, before: float) -> None:
        """Deletes the acceptance reports that were received before that time."""
        await self._remove(ACCEPTANCE_REPORTS, ACCEPTANCE_REPORTS.c.received_at < before)
        await self._remove(ACCEPTANCE_NODES, ACCEPTANCE_NODES.c.report.not_in(select(ACCEPTANCE_REPORTS.c.id)))

    async def _remove_what_is_left_of_nodes(self) -> None:
        """Deletes the measurements of nodes that are past retention, and streams without a stored run."""
        known = select(NODES.c.name)
        async with self._database.reading() as connection:
            gone = {*await connection.scalars(_nodes_with_runs())} - {*await connection.scalars(known)}
        self._through = {of: moment for of, moment in self._through.items() if of[0] not in gone}
        for node in sorted(gone):
            for table in (QUIET_RUNS, RUNS):  # the node may come again just now
                await self._remove(table, table.c.node == node, table.c.node.not_in(known))
        of_stream = RUNS.c.node == STREAMS.c.node, RUNS.c.stream == STREAMS.c.stream
        async with self._database.writing() as connection:
            await connection.execute(delete(STREAMS).where(~exists().where(*of_stream)))
            for table in (LEVELS, RESULTS, EVIDENCE, RUN_BASES):
                await connection.execute(delete(table).where(table.c.node.not_in(known)))
            announced = select(NODES.c.announced).where(NODES.c.announced.is_not(None))
            await connection.execute(delete(ANNOUNCEMENTS).where(ANNOUNCEMENTS.c.id.not_in(announced)))

    async def _remove(self, table: Table, *wanted: ColumnElement[bool]) -> int:
        """Deletes these rows, a batch at a time. Returns their number."""
        key = tuple_(*table.primary_key)
        batch = select(*table.primary_key).where(*wanted).limit(BATCH)
        removed = 0
        while True:
            async with self._database.writing() as connection:
                gone = (await connection.execute(delete(table).where(key.in_(batch)))).rowcount
            removed += gone
            if gone < BATCH:
                return removed

    async def _nodes_with_runs_before(self, end: float, verdicts: tuple[Verdict, ...]) -> Sequence[str]:
        """The nodes with such runs; a transaction for each of thousands of other nodes would delay other tasks."""
        old = RUNS.c.verdict.in_(verdicts), RUNS.c.started_at < end
        async with self._database.reading() as connection:
            return (await connection.scalars(select(RUNS.c.node).where(*old).distinct())).all()

    async def _thin_runs(self, node: str, verdicts: tuple[Verdict, ...], end: float) -> bool:
        """Summarises the next hours of a node before `end`, a whole hour. Returns whether there may be more."""
        begin = self._through.get((node, verdicts), 0.0)
        wanted = [RUNS.c.node == node, RUNS.c.verdict.in_(verdicts), RUNS.c.started_at >= begin]
        async with self._database.writing() as connection:
            old, more = await self._oldest(connection, [*wanted, RUNS.c.started_at < end])
            if more:
                old, end = _whole_hours(old)
            last = await self._last(connection, node, {run.check for run in old})
            gone = [run for run in old if run.id not in last]
            await self._replace(connection, gone, summarised(gone))
        self.counts.runs += len(gone)
        self._through[node, verdicts] = end
        return more and (bool(gone) or end > begin)

    async def _oldest(
        self, connection: AsyncConnection, wanted: Sequence[ColumnElement[bool]]
    ) -> tuple[list[Run], bool]:
        """The next runs, and whether there may be more. Rows that cannot be read stay in the table.

        The start of a run is by the coordinator's clock, because its node's clock may have been wrong.
        """
        query = select(RUNS.c.started_at, RUNS.c.id, RUNS.c.body).where(*wanted)
        rows = (await connection.execute(query.order_by(RUNS.c.started_at, RUNS.c.id).limit(BATCH))).all()
        bodies = [(key, body) for _, key, body in rows]
        readable = {run.id: run for run in self._database.unread.leave_out("runs", bodies, Run.model_validate_json)}
        runs = [readable[key].model_copy(update={"started_at": at}) for at, key, _ in rows if key in readable]
        return runs, len(rows) == BATCH and bool(runs)

    async def _last(self, connection: AsyncConnection, node: str, checks: set[str]) -> set[str]:
        """The last runs of these checks, and those that quiet runs are like, or may be."""
        last = await connection.scalars(last_runs(RUNS.c.node == node, RUNS.c.check.in_(checks)))
        used = await connection.scalars(select(QUIET_RUNS.c.base).where(QUIET_RUNS.c.node == node).distinct())
        usable = await connection.scalars(select(RUN_BASES.c.run).where(RUN_BASES.c.node == node))
        return {*last, *used, *usable}

    async def _replace(self, connection: AsyncConnection, runs: Sequence[Run], summaries: Sequence[Summary]) -> None:
        if not runs:
            return
        await connection.execute(insert(SERIES), hourly_blocks(summaries))
        await connection.execute(delete(RUNS).where(RUNS.c.id.in_([run.id for run in runs])))


def _nodes_with_runs() -> Select[tuple[str]]:
    """The nodes with runs, one after the other, because a list of all would read every run."""
    nodes = select(func.min(RUNS.c.node).label("node")).cte(recursive=True)
    following = select(func.min(RUNS.c.node)).where(RUNS.c.node > nodes.c.node).scalar_subquery()
    nodes = nodes.union_all(select(following).where(nodes.c.node.is_not(None)))
    return select(nodes.c.node).where(nodes.c.node.is_not(None))


def _whole_hours(runs: list[Run]) -> tuple[list[Run], float]:
    """The runs before the last hour, which may be incomplete, and the start of that hour; all if there is only one."""
    last = hour_of(runs[-1].started_at)
    whole = [run for run in runs if hour_of(run.started_at) < last]
    return (whole, float(last * HOUR_S)) if whole else (runs, runs[-1].started_at)
