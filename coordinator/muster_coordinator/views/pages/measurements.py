"""The measurements of a node: a chart for each metric that its checks measure, those with a finding first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.model import Run, Verdict
from muster.references import Reference, applicable
from muster_coordinator.model.baselines import BaselineView
from muster_coordinator.model.history import MetricFigures
from muster_coordinator.model.nodes import NodeView
from muster_coordinator.views.pages.ages import age_text
from muster_coordinator.views.pages.bounded import Bounded, bounded
from muster_coordinator.views.pages.chart_range import ChartRange
from muster_coordinator.views.pages.metric_chart import MetricChart, metric_chart

MOST_CHARTS = 200
"""Of one node; four checks that run all the time have 75 metrics."""

NodeFigures = Mapping[tuple[str, str], Mapping[str, MetricFigures]]
"""What was measured, by check and metric, and below that by device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMeasurements:
    """What was read of a node: the latest runs of each check, the last one first, and the figures of the range.

    `refused` says why there are no figures.
    """

    range: ChartRange
    at: float
    runs: Mapping[str, Sequence[Run]]
    figures: NodeFigures
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """The section of the page. `unmeasured` are checks without a number, each with the reason."""

    range: ChartRange
    since: float
    at: float
    charts: Bounded[MetricChart]
    unmeasured: tuple[tuple[str, str], ...]
    refused: str

    @property
    def ranges(self) -> tuple[ChartRange, ...]:
        """The times to choose from."""
        return tuple(ChartRange)


def measurements(
    view: NodeView, measured: NodeMeasurements, references: Iterable[Reference], baselines: Iterable[BaselineView]
) -> Measurements:
    """The charts of a node that has this view."""
    rows = [*references]
    compared = {(baseline.check, baseline.metric): baseline for baseline in baselines}
    charts = [chart for run in _measuring(measured) for chart in _charts(run, view, measured, rows, compared)]
    found = {finding.check for finding in view.findings}
    charts.sort(key=lambda chart: (not chart.is_found, chart.check not in found, chart.check))
    drawn = {chart.check for chart in charts}
    return Measurements(
        range=measured.range,
        since=measured.at - measured.range.seconds,
        at=measured.at,
        charts=bounded(charts, MOST_CHARTS),
        unmeasured=tuple(
            (check, _why_unmeasured(measured.runs.get(check, ()), measured.at))
            for check in sorted(view.checks)
            if check not in drawn
        ),
        refused=measured.refused,
    )


def _measuring(measured: NodeMeasurements) -> Iterator[Run]:
    """The last run of each check that measured anything."""
    for runs in measured.runs.values():
        run = next((run for run in runs if run.metrics), None)
        if run is not None:
            yield run


def _charts(
    run: Run,
    view: NodeView,
    measured: NodeMeasurements,
    references: Sequence[Reference],
    baselines: Mapping[tuple[str, str], BaselineView],
) -> Iterator[MetricChart]:
    expected = applicable(references, run.check, run.facts)
    devices = {device.index: device for device in view.devices}
    past = [metric for check, metric in measured.figures if check == run.check]
    for metric in dict.fromkeys([*run.metrics, *past]):
        yield metric_chart(
            run,
            metric,
            figures=None if measured.refused else measured.figures.get((run.check, metric), {}),
            devices=devices,
            findings=view.findings,
            reference=expected.get(metric),
            baseline=baselines.get((run.check, metric)),
            at=measured.at,
        )


def _why_unmeasured(runs: Sequence[Run], at: float) -> str:
    if not runs:
        return "has not run on this node"
    last, ago = runs[0], age_text(at - runs[0].started_at)
    if last.verdict is Verdict.SKIPPED:
        why = next((finding.summary for finding in last.findings), "")
        return f"was skipped {ago} ago{f': {why}' if why else ''}"
    return f"ran {ago} ago and measured no number"
