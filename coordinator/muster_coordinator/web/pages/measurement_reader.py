"""Reads what a node measured for its page: a quarter of a second for a day of four checks that run all the time.

The figures of a time are kept for KEPT_S, unless there is a new metric, and read for one page at a time. The latest
runs are always read.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.errors import Refused
from muster.model import Run
from muster_coordinator.store.runs_view import RunFilter
from muster_coordinator.store.steps import StepFilter, read_steps
from muster_coordinator.store.store import Store
from muster_coordinator.views.pages.chart_range import ChartRange
from muster_coordinator.views.pages.measurements import NodeFigures, NodeMeasurements

KEPT_S = 30.0
MOST_KEPT = 64

LATEST_RUNS = 5
"""Runs of each check among which one has measured something; runs that were skipped have not."""


@dataclass(frozen=True, slots=True)
class _KeptFigures:
    at: float
    figures: NodeFigures

    def serves(self, runs: Mapping[str, Sequence[Run]], at: float) -> bool:
        """Whether these figures are recent, and of every metric of runs that began since they were read."""
        is_recent = 0 <= at - self.at < KEPT_S
        new = [run for latest in runs.values() for run in latest if run.started_at >= self.at]
        return is_recent and all((run.check, metric) in self.figures for run in new for metric in run.metrics)


class MeasurementReader:
    """Reads from one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[str, ChartRange], _KeptFigures] = OrderedDict()
        self._turn = asyncio.Lock()

    async def read(self, node: str, checks: Sequence[str], range: ChartRange, at: float) -> NodeMeasurements:
        """What a node with these checks measured in this time until `at`."""
        runs = {
            check: (await self._store.runs(RunFilter(node=node, check=check), LATEST_RUNS, None)).items
            for check in checks
        }
        async with self._turn:
            kept = self._kept.get((node, range))
            if kept is None or not kept.serves(runs, at):
                try:
                    kept = _KeptFigures(at, await self._figures(node, range, at))
                except Refused as refused:
                    return NodeMeasurements(range=range, at=at, runs=runs, figures={}, refused=str(refused))
                self._keep((node, range), kept)
        return NodeMeasurements(range=range, at=at, runs=runs, figures=kept.figures)

    async def _figures(self, node: str, range: ChartRange, at: float) -> NodeFigures:
        # A run of this very moment counts, too.
        wanted = StepFilter(node=node, since=at - range.seconds, until=at + 1)
        summaries = await read_steps(self._store.database, wanted, None)
        return {(each.check, metric): devices for each in summaries for metric, devices in each.metrics.items()}

    def _keep(self, key: tuple[str, ChartRange], kept: _KeptFigures) -> None:
        self._kept[key] = kept
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
