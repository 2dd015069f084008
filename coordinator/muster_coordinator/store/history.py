"""Measurements of a node over time: its runs, and the summaries of older runs."""

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Table, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from muster.errors import Refused, unknown
from muster.model import Run
from muster_coordinator.model.history import HistoryPoint
from muster_coordinator.normal.readings import by_device
from muster_coordinator.store.database import Database
from muster_coordinator.store.last_runs import last_runs
from muster_coordinator.store.merging import Latest, Window, add_from_blocks, quiet_runs, whole_runs
from muster_coordinator.store.paging import Page, make_cursor
from muster_coordinator.store.quiet_rows import whole_bases
from muster_coordinator.store.runs_view import Item, page_of, position
from muster_coordinator.store.steps import StepFilter, read_steps
from muster_coordinator.store.summaries import device_name
from muster_coordinator.store.tables import QUIET_RUNS, RUNS, SERIES

MOST_STEPS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFilter:
    """The search conditions; None leaves one out. Times are in seconds since the epoch, `until` is not included."""

    node: str
    metric: str
    check: str | None = None
    device: int | None = None
    since: float | None = None
    until: float | None = None

    def conditions(self, table: Table) -> list[ColumnElement[bool]]:
        """Conditions on rows of `table`, without those on the time and the metric."""
        found = [table.c.node == self.node]
        return found if self.check is None else [*found, table.c.check == self.check]


async def history(database: Database, wanted: HistoryFilter, limit: int, cursor: str | None) -> Page[HistoryPoint]:
    """The points that fit, the latest first. Raises Refused if the cursor is not valid."""
    window = Window(count=limit + 1, since=wanted.since, until=wanted.until, before=position(cursor))
    latest = Latest(window.count)
    async with database.reading() as connection:
        latest.add(await whole_runs(connection, _runs_that_measured(wanted), window))
        if bases := await _bases_that_measured(database, connection, wanted):
            like_these = [*wanted.conditions(QUIET_RUNS), QUIET_RUNS.c.base.in_(bases)]
            latest.add(await quiet_runs(connection, like_these, window))
        if measured := await _block_metrics(connection, wanted):
            with_metric = [*wanted.conditions(SERIES), SERIES.c.metrics.in_(measured)]
            await add_from_blocks(connection, database.unread, latest, with_metric, window)
        return await page_of(connection, database.unread, latest.in_order(), limit, lambda item: _point(wanted, item))


async def stepped_history(
    database: Database, wanted: HistoryFilter, step_s: int, limit: int, cursor: str | None
) -> Page[HistoryPoint]:
    """The points of each `step_s` seconds and check, the latest first.

    Raises Refused if the cursor is not valid, if begin or end is missing, or if there would be too many steps.
    """
    since, until, before = wanted.since, wanted.until, position(cursor)
    if since is None or until is None:
        raise Refused("step_s needs since: give the time from which on it counts")
    if (until - since) / step_s > MOST_STEPS:
        raise Refused(f"step_s={step_s} makes more than {MOST_STEPS:,} steps of this time; use a longer step_s")
    in_time = StepFilter(node=wanted.node, check=wanted.check, metric=wanted.metric, since=since, until=until)
    summaries = await read_steps(database, in_time, step_s)
    points = [(each, point) for each in reversed(summaries) if (point := _point(wanted, each)) is not None]
    following = [(each, point) for each, point in points if before is None or (each.started_at, each.check) < before]
    shown = following[:limit]
    last = shown[-1][0] if len(following) > limit else None
    return Page(
        items=tuple(point for _, point in shown),
        next_cursor=None if last is None else make_cursor(last.started_at, last.check),
    )


async def require_measured(database: Database, wanted: HistoryFilter, checks: Collection[str]) -> None:
    """Raises Refused, with the metrics that the node measured lately, if none of its runs names the metric.

    Summaries count like runs. If only one check is wanted, this is about its metrics. It also raises Refused if the
    node neither has nor had that check. `checks` are those that it has.
    """
    async with database.reading() as connection:
        ever = select(RUNS.c.id).where(*_runs_that_measured(wanted)).limit(1)
        if await connection.scalar(ever) is not None or await _block_metrics(connection, wanted):
            return
        lately = select(RUNS.c.body).where(RUNS.c.id.in_(last_runs(RUNS.c.node == wanted.node)))
        runs = [Run.model_validate_json(body) for body in await connection.scalars(lately)]
    if wanted.check is not None:
        had = {run.check for run in runs}
        if wanted.check not in had.union(checks):
            raise Refused(unknown("check", wanted.check, had.union(checks)))
        runs = [run for run in runs if run.check == wanted.check]
    what = "metric" if wanted.check is None else f"metric of {wanted.check}:"
    raise Refused(unknown(what, wanted.metric, {metric for run in runs for metric in run.metrics}))


async def require_measured_by_any(database: Database, wanted: Sequence[HistoryFilter]) -> None:
    """Raises Refused as `require_measured` does for the last of several nodes, if none of them has the metric."""
    refused: Refused | None = None
    for each in wanted:
        try:
            await require_measured(database, each, ())
        except Refused as error:
            refused = error
        else:
            return
    if refused is not None:
        raise refused


def _runs_that_measured(wanted: HistoryFilter) -> list[ColumnElement[bool]]:
    """Conditions on whole runs. A run that names the metric need not have measured it.

    LIKE finds the place between `"metrics":` and `"facts":`, which follow each other. Otherwise every run would name
    the metric `verdict`. For SQLite, LIKE matches `tflops` with `TFLOPS`; `replace` does not, on any database.
    """
    key = f"{json.dumps(wanted.metric)}:"
    escaped = re.sub(r"([%_/])", r"/\1", key)
    is_named = RUNS.c.body.like(f'%"metrics":{{%{escaped}%}},"facts":%', escape="/")
    is_spelled_so = func.replace(RUNS.c.body, key, "") != RUNS.c.body
    return [*wanted.conditions(RUNS), is_named, is_spelled_so]


async def _bases_that_measured(database: Database, connection: AsyncConnection, wanted: HistoryFilter) -> list[str]:
    """The whole runs with the metric that quiet runs are like."""
    used = await connection.scalars(select(QUIET_RUNS.c.base).where(*wanted.conditions(QUIET_RUNS)).distinct())
    bases = await whole_bases(connection, database.unread, used)
    return [run for run, base in bases.items() if wanted.metric in base["metrics"]]


async def _block_metrics(connection: AsyncConnection, wanted: HistoryFilter) -> list[str]:
    """The lists of metrics that blocks have, among those with the metric."""
    lists = await connection.scalars(select(SERIES.c.metrics).where(*wanted.conditions(SERIES)).distinct())
    return [names for names in lists if wanted.metric in names.split(" ")]


def _point(wanted: HistoryFilter, stored: Item) -> HistoryPoint | None:
    is_wanted = _is_device(wanted.device)
    if isinstance(stored, Run):
        return _point_of_run(stored, wanted.metric, is_wanted)
    figures = {name: each for name, each in stored.metrics.get(wanted.metric, {}).items() if is_wanted(name)}
    if not figures:
        return None
    return HistoryPoint(
        at=stored.started_at,
        check=stored.check,
        verdicts=stored.verdicts,
        values={name: each.median for name, each in figures.items()},
        least={name: each.least for name, each in figures.items()},
        most={name: each.most for name, each in figures.items()},
    )


def _point_of_run(run: Run, metric: str, is_wanted: Callable[[str], bool]) -> HistoryPoint | None:
    measured = by_device(run.metrics.get(metric), run.facts)
    values = {device_name(device): value for device, value in measured if value is not None}
    values = {name: value for name, value in values.items() if is_wanted(name)}
    if not values:
        return None
    return HistoryPoint(at=run.started_at, check=run.check, verdicts={run.verdict: 1}, run=run.id, values=values)


def _is_device(device: int | None) -> Callable[[str], bool]:
    return lambda name: device is None or name == device_name(device)
