"""Measurements of a node over time: its runs, and the summaries of older runs."""

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Table, func, select, union_all

from muster.errors import Refused, unknown
from muster.model import Run
from muster_coordinator.model.history import HistoryPoint
from muster_coordinator.normal.readings import by_device
from muster_coordinator.store.database import Database
from muster_coordinator.store.paging import Page, read_page
from muster_coordinator.store.store import last_runs
from muster_coordinator.store.summaries import Summary, device_name
from muster_coordinator.store.tables import RUNS, SUMMARIES

_STORED: TypeAdapter[Run | Summary] = TypeAdapter(Run | Summary)


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
        """Conditions on rows of `table`. A row that names the metric need not have measured it."""
        found = [table.c.node == self.node, *_names_metric(table, self.metric)]
        if self.check is not None:
            found.append(table.c.check == self.check)
        if self.since is not None:
            found.append(table.c.started_at >= self.since)
        if self.until is not None:
            found.append(table.c.started_at < self.until)
        return found


async def history(database: Database, wanted: HistoryFilter, limit: int, cursor: str | None) -> Page[HistoryPoint]:
    """The points that fit, the latest first. Raises Refused if the cursor is not valid."""
    found = union_all(
        *(
            select(table.c.started_at, table.c.id, table.c.body).where(*wanted.conditions(table))
            for table in (RUNS, SUMMARIES)
        )
    ).subquery()
    query = select(found.c.started_at, found.c.id, found.c.body)
    return await read_page(database, query, partial(_point, wanted), table="runs", limit=limit, cursor=cursor)


async def require_measured(database: Database, wanted: HistoryFilter, checks: Collection[str]) -> None:
    """Raises Refused, with the metrics that the node measured lately, if none of its runs names the metric.

    Summaries count like runs. If only one check is wanted, this is about its metrics. It also raises Refused if the
    node neither has nor had that check. `checks` are those that it has.
    """
    ever = replace(wanted, since=None, until=None)
    async with database.reading() as connection:
        for table in (RUNS, SUMMARIES):
            if await connection.scalar(select(table.c.id).where(*ever.conditions(table)).limit(1)) is not None:
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


def _names_metric(table: Table, metric: str) -> list[ColumnElement[bool]]:
    """The condition that the metrics in `body`, and no other part of it, name the metric.

    LIKE finds the place: in a run between `"metrics":` and `"facts":`, which follow each other, and in a summary after
    `"metrics":`, its last field, where the metric has a table. Otherwise every run would name the metric `verdict`. For
    SQLite, LIKE matches `tflops` with `TFLOPS`; `replace` does not, on any database.
    """
    key = f"{json.dumps(metric)}:"
    escaped = re.sub(r"([%_/])", r"/\1", key)
    inside = f'%"metrics":{{%{escaped}{{%' if table is SUMMARIES else f'%"metrics":{{%{escaped}%}},"facts":%'
    is_spelled_so = func.replace(table.c.body, key, "") != table.c.body
    return [table.c.body.like(inside, escape="/"), is_spelled_so]


def _point(wanted: HistoryFilter, body: str) -> HistoryPoint | None:
    stored = _STORED.validate_json(body)
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
