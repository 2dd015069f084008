"""Keeps the database within `store.max_gb`: the oldest detail goes first, decisions and findings never.

The idea: the size is measured every hour. Near the limit, the oldest fifth of one kind goes, again and again, until
there is room: first every run becomes summaries of five minutes, then these become hourly ones, then whole runs without
findings become hourly summaries as well, then the oldest hourly summaries go, then the oldest acceptance reports. What
is younger than STAYS_S stays. Runs with findings, stories and decisions are not touched: they end with their own
retention.

The coordinator warns before it removes anything: it logs the days left at the growth of the last day, and has a metric.

Example: 20 GB with a limit of 16 GB. Of the 30 hours of which every run is stored, the oldest 5 go, then 4 more, and so
on, until the database has 14.4 GB.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog
from sqlalchemy import Select, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from muster_coordinator.store.compactor import Compactor
from muster_coordinator.store.database import Database
from muster_coordinator.store.packing import TO_HOURS, TO_MINUTES
from muster_coordinator.store.summaries import HOUR_S
from muster_coordinator.store.tables import ACCEPTANCE_REPORTS, QUIET_RUNS, RUNS, SERIES

GB = 1e9
DAY_S = 86_400.0

NEAR = 0.95
"""The share of the limit from which detail goes."""

ENOUGH = 0.9
"""The share of the limit at which no more goes."""

EARLY_DAYS = 3.0
"""The coordinator warns when the database will reach the limit within this number of days."""

EARLY_SHARE = 0.8
"""Or when it has so large a share of the limit."""

SHORTEST_S = HOUR_S / 2
"""The least time between the two measurements from which growth is known."""

STEP = 0.8
"""The time from which a kind is left is cut to this share at once."""

STAYS_S = 6 * HOUR_S
"""Nothing younger than this goes."""

_ROW_BYTES = {RUNS: 500, QUIET_RUNS: 250, SERIES: 200, ACCEPTANCE_REPORTS: 1_000}
"""What a row takes in PostgreSQL besides its body, with its indexes."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Detail:
    """A kind of detail: the time of the oldest, how much is removed together, and how all from before a time goes."""

    oldest: Select[Any]
    span_s: float
    remove: Callable[[float], Awaitable[object]]


@dataclass(slots=True)
class DiskUse:
    """The bytes that the database uses and may use, and the days until it has reached the limit at this rate.

    `days_left` is infinite if it does not grow, or is not known to.
    """

    most_bytes: float
    used_bytes: float = 0.0
    days_left: float = float("inf")


class DiskBudget:
    """Measures one database and keeps it within `max_gb`. `thin_whole_runs` summarises those from before a time."""

    def __init__(
        self,
        database: Database,
        compactor: Compactor,
        max_gb: float,
        clock: Callable[[], float],
        *,
        thin_whole_runs: Callable[[float], Awaitable[object]],
        remove_summaries: Callable[[float], Awaitable[object]],
        remove_acceptance_reports: Callable[[float], Awaitable[object]],
    ) -> None:
        self.use = DiskUse(max_gb * GB)
        self._database = database
        self._compactor = compactor
        self._clock = clock
        self._thin_whole_runs = thin_whole_runs
        self._remove_summaries = remove_summaries
        self._remove_acceptance_reports = remove_acceptance_reports
        self._measured: deque[tuple[float, float]] = deque()
        self._told_at = float("-inf")

    async def keep(self) -> None:
        """Measures the database, says if it is nearly full, and removes detail if it is."""
        await self._measure()
        self._tell()
        if self.use.used_bytes < NEAR * self.use.most_bytes:
            return
        before = self.use.used_bytes
        for kind in self._kinds():
            await self._remove(kind)
        self._measured.clear()  # the growth from here on counts
        log.warning(
            "detail_removed_early",
            freed_gb=round((before - self.use.used_bytes) / GB, 3),
            used_gb=round(self.use.used_bytes / GB, 3),
            max_gb=self.use.most_bytes / GB,
            hint="set store.max_gb higher, or run checks less often",
        )

    async def _measure(self) -> None:
        now, used = self._clock(), await self._used()
        self._measured.append((now, used))
        while now - self._measured[0][0] > DAY_S:
            self._measured.popleft()
        since, before = self._measured[0]
        growth = (used - before) / (now - since) if now - since >= SHORTEST_S else 0.0
        room = max(0.0, NEAR * self.use.most_bytes - used)
        self.use.used_bytes = used
        self.use.days_left = room / growth / DAY_S if growth > 0 else float("inf")

    def _tell(self) -> None:
        now, use = self._clock(), self.use
        is_early = use.used_bytes > EARLY_SHARE * use.most_bytes or use.days_left < EARLY_DAYS
        if not is_early or now < self._told_at + DAY_S:
            return
        self._told_at = now
        log.warning(
            "database_nearly_full",
            used_gb=round(use.used_bytes / GB, 3),
            max_gb=use.most_bytes / GB,
            days_left=None if use.days_left == float("inf") else round(use.days_left, 1),
            hint="then the oldest detail goes; set store.max_gb higher, or run checks less often",
        )

    def _kinds(self) -> list["_Detail"]:
        """What may go, in the order in which it goes."""
        compact, in_resolution = self._compactor.downsample, SERIES.c.resolution_s
        every_run = select(func.min(SERIES.c.since)).where(in_resolution == TO_MINUTES.source_s)
        minutes = select(func.min(SERIES.c.since)).where(in_resolution == TO_HOURS.source_s)
        hours = select(func.min(SERIES.c.since)).where(in_resolution == TO_HOURS.target_s)
        whole = select(func.min(RUNS.c.started_at)).where(RUNS.c.verdict.in_(["PASS", "SKIPPED"]))
        reports = select(func.min(ACCEPTANCE_REPORTS.c.received_at))
        return [
            _Detail(every_run, TO_MINUTES.span_s, lambda before: compact(TO_MINUTES, before)),
            _Detail(minutes, TO_HOURS.span_s, lambda before: compact(TO_HOURS, before)),
            _Detail(whole, HOUR_S, self._thin_whole_runs),
            _Detail(hours, TO_HOURS.span_s, self._remove_summaries),
            _Detail(reports, HOUR_S, self._remove_acceptance_reports),
        ]

    async def _remove(self, kind: "_Detail") -> None:
        """Removes the oldest of a kind until there is enough room, or nothing is left that may go."""
        end = self._clock() - STAYS_S
        async with self._database.reading() as connection:
            oldest = await connection.scalar(kind.oldest)
        age_s = 0.0 if oldest is None else end - oldest
        while age_s > kind.span_s and self.use.used_bytes > ENOUGH * self.use.most_bytes:
            age_s *= STEP
            await kind.remove(end - age_s)
            self.use.used_bytes = await self._used()

    async def _used(self) -> float:
        async with self._database.reading() as connection:
            return await used_bytes(connection)


async def used_bytes(connection: AsyncConnection) -> float:
    """The bytes that the database uses, without free space in its files, which it will use again."""
    if connection.dialect.name != "postgresql":
        pages, free, size = [
            int(await connection.scalar(text(f"PRAGMA {name}")) or 0)
            for name in ("page_count", "freelist_count", "page_size")
        ]
        return float((pages - free) * size)
    total = float(await connection.scalar(text("SELECT pg_database_size(current_database())")) or 0)
    for table, row_bytes in _ROW_BYTES.items():
        # PostgreSQL keeps the space of deleted rows in its files, and does not say how much it is.
        bodies = func.coalesce(func.sum(func.pg_column_size(table.c.body) + row_bytes), 0)
        total -= float(await connection.scalar(select(func.pg_total_relation_size(table.name))) or 0)
        total += float(await connection.scalar(select(bodies)) or 0)
    return max(0.0, total)
