"""Thins what is stored: old runs become summaries of an hour each, and very old summaries go.

Runs that found something are kept for longer, and the last runs of each check, from which health is folded after a
restart, for ever; logs of decisions as long as findings. A batch is summarised and removed in one transaction, so that
a run is never both and never lost.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import ColumnElement, delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from muster.config import StoreSettings
from muster.model import Run, Verdict
from muster.wire.messages import new_id
from muster_coordinator.database import Database
from muster_coordinator.store import last_runs
from muster_coordinator.stored_cases import remove_old_logs
from muster_coordinator.summaries import HOUR_S, Summary, hour_of, summarised
from muster_coordinator.tables import NODES, RUNS, SUMMARIES

EVERY_S = 3_600.0
BATCH = 1_000
"""Runs in one transaction: about as many as a node has in an hour, and about 50 ms that the pipeline may wait."""

DAY_S = 86_400.0

FOUND_NOTHING = (Verdict.PASS, Verdict.SKIPPED)
FOUND_SOMETHING = (Verdict.WARN, Verdict.FAIL, Verdict.UNKNOWN)

log = structlog.get_logger()


@dataclass(slots=True)
class Thinned:
    """What was thinned since the start, for metrics."""

    runs: int = 0
    summaries: int = 0


class Thinning:
    """Thins the tables of one database as the settings say."""

    def __init__(self, database: Database, keep: StoreSettings, clock: Callable[[], float]) -> None:
        self.counts = Thinned()
        self._database = database
        self._keep = keep
        self._clock = clock
        self._through: dict[tuple[str, tuple[Verdict, ...]], float] = {}  # what lies before was gone through

    async def run(self) -> None:
        """Thins again and again, for ever; raises WriteFailed when the database cannot be written."""
        while True:
            await self.thin()
            await asyncio.sleep(EVERY_S)

    async def thin(self) -> None:
        """Thins all that is old enough now."""
        now, before = self._clock(), Thinned(self.counts.runs, self.counts.summaries)
        async with self._database.engine.connect() as connection:
            nodes = (await connection.scalars(select(NODES.c.name))).all()
        for node in nodes:
            for verdicts, days in (
                (FOUND_NOTHING, self._keep.keep_days),
                (FOUND_SOMETHING, self._keep.keep_findings_days),
            ):
                while await self._thin_runs(node, verdicts, now - days * DAY_S):
                    pass
        while await self._remove_summaries(now - self._keep.keep_summaries_days * DAY_S):
            pass
        async with self._database.writing() as connection:
            await remove_old_logs(connection, now - self._keep.keep_findings_days * DAY_S)
        if self.counts != before:
            runs, summaries = self.counts.runs - before.runs, self.counts.summaries - before.summaries
            log.info("thinned", runs_summarised=runs, summaries_removed=summaries)

    async def _thin_runs(self, node: str, verdicts: tuple[Verdict, ...], until: float) -> bool:
        """Summarises the next whole hours of a node that are over at `until`; whether there may be more."""
        begin, end = self._through.get((node, verdicts), 0.0), float(hour_of(until) * HOUR_S)
        wanted = [RUNS.c.node == node, RUNS.c.verdict.in_(verdicts), RUNS.c.started_at >= begin]
        async with self._database.writing() as connection:
            old = await self._oldest(connection, [*wanted, RUNS.c.started_at < end])
            more = len(old) == BATCH
            if more:
                old, end = _whole_hours(old)
            last = await self._last(connection, node, {run.check for run in old})
            gone = [run for run in old if run.id not in last]
            await self._replace(connection, gone, summarised(gone))
        self.counts.runs += len(gone)
        self._through[node, verdicts] = end
        return more and (bool(gone) or end > begin)

    async def _oldest(self, connection: AsyncConnection, wanted: Sequence[ColumnElement[bool]]) -> list[Run]:
        query = select(RUNS.c.body).where(*wanted).order_by(RUNS.c.started_at, RUNS.c.id).limit(BATCH)
        return [Run.model_validate_json(body) for body in await connection.scalars(query)]

    async def _last(self, connection: AsyncConnection, node: str, checks: set[str]) -> set[str]:
        """The runs that the fleet gets back after a restart."""
        return set(await connection.scalars(last_runs(RUNS.c.node == node, RUNS.c.check.in_(checks))))

    async def _replace(self, connection: AsyncConnection, runs: Sequence[Run], summaries: Sequence[Summary]) -> None:
        if not runs:
            return
        rows = [
            {
                "id": new_id(),  # not that of a run: a node may use one again when the run is gone
                "node": summary.node,
                "check": summary.check,
                "started_at": summary.started_at,
                "body": summary.model_dump_json(),
            }
            for summary in summaries
        ]
        await connection.execute(insert(SUMMARIES), rows)
        await connection.execute(delete(RUNS).where(RUNS.c.id.in_([run.id for run in runs])))

    async def _remove_summaries(self, until: float) -> bool:
        """Removes some that are older; whether there may be more."""
        old = select(SUMMARIES.c.id).where(SUMMARIES.c.started_at < until).limit(BATCH).scalar_subquery()
        async with self._database.writing() as connection:
            gone = (await connection.execute(delete(SUMMARIES).where(SUMMARIES.c.id.in_(old)))).rowcount
        self.counts.summaries += gone
        return gone == BATCH


def _whole_hours(runs: list[Run]) -> tuple[list[Run], float]:
    """The runs before the last hour, which may go on, and when that hour begins; all if there is no other hour."""
    last = hour_of(runs[-1].started_at)
    whole = [run for run in runs if hour_of(run.started_at) < last]
    return (whole, float(last * HOUR_S)) if whole else (runs, runs[-1].started_at)
