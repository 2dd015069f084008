"""Summaries of runs: the metrics and verdicts of some minutes or of an hour. Pure."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from muster.model import Data, Instant, Json, Name, Run, Verdict
from muster_coordinator.model.history import MetricFigures
from muster_coordinator.normal.readings import DeviceIndex, by_device

HOUR_S = 3_600


class Summary(Data):
    """The runs of a check on a node with the same parameters that started in the same hour, or in the same minutes.

    The first started at `started_at`. `metrics` holds the measured figures by metric, and below that by device index,
    or under "" for the node.
    """

    node: Name
    check: Name
    params: Json
    started_at: Instant
    verdicts: dict[Verdict, int]
    metrics: dict[str, dict[str, MetricFigures]]


def hour_of(at: float) -> int:
    """The number of the hour that a time is in."""
    return int(at // HOUR_S)


def summarised(runs: Iterable[Run]) -> list[Summary]:
    """The summaries of these runs, one for each hour. The runs are in the order of their start."""
    alike: dict[tuple[str, str, str, int], list[Run]] = defaultdict(list)
    for run in runs:
        alike[run.node, run.check, params_key(run.params), hour_of(run.started_at)].append(run)
    return [_summary(same_hour) for same_hour in alike.values()]


def joined(summaries: Sequence[Summary], resolution_s: int) -> list[Summary]:
    """The summaries of longer times. The medians are medians of the medians, each counted by its values.

    All are of one check with the same parameters on one node.
    """
    alike: dict[int, list[Summary]] = defaultdict(list)
    for summary in sorted(summaries, key=lambda summary: summary.started_at):
        alike[int(summary.started_at // resolution_s)].append(summary)
    return [merged(same_time) for same_time in alike.values()]


def params_key(params: Json) -> str:
    """The parameters as a text, the same for equal ones."""
    return json.dumps(params, sort_keys=True)


def device_name(device: DeviceIndex) -> str:
    """The name of a device as a key in JSON."""
    return "" if device is None else str(device)


def figures_of(values: Sequence[float]) -> MetricFigures:
    """The figures of these values, of which there is at least one."""
    ranked = sorted(values)
    half, is_odd = divmod(len(ranked), 2)
    middle = ranked[half] if is_odd else (ranked[half - 1] + ranked[half]) / 2
    return MetricFigures(count=len(ranked), least=ranked[0], median=middle, most=ranked[-1])


def _summary(runs: Sequence[Run]) -> Summary:
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        for metric, measured in run.metrics.items():
            for device, value in by_device(measured, run.facts):
                if value is not None:
                    values[metric][device_name(device)].append(value)
    first = runs[0]
    return Summary(
        node=first.node,
        check=first.check,
        params=first.params,
        started_at=first.started_at,
        verdicts=Counter(run.verdict for run in runs),
        metrics={
            metric: {device: figures_of(each) for device, each in devices.items()} for metric, devices in values.items()
        },
    )


def merged(summaries: Sequence[Summary]) -> Summary:
    """The summary of all these together, with the start and the parameters of the first."""
    if len(summaries) == 1:
        return summaries[0]
    figures: dict[str, dict[str, list[MetricFigures]]] = defaultdict(lambda: defaultdict(list))
    verdicts: Counter[Verdict] = Counter()
    for summary in summaries:
        verdicts.update(summary.verdicts)
        for metric, devices in summary.metrics.items():
            for device, each in devices.items():
                figures[metric][device].append(each)
    metrics = {
        metric: {device: _joined_figures(each) for device, each in devices.items()}
        for metric, devices in figures.items()
    }
    return summaries[0].model_copy(update={"verdicts": dict(verdicts), "metrics": metrics})


def _joined_figures(figures: Sequence[MetricFigures]) -> MetricFigures:
    if len(figures) == 1:
        return figures[0]
    return MetricFigures(
        count=sum(each.count for each in figures),
        least=min(each.least for each in figures),
        median=weighted_median((each.median, each.count) for each in figures),
        most=max(each.most for each in figures),
    )


def weighted_median(medians: Iterable[tuple[float, float]]) -> float:
    """The median at which half of the values are reached; each comes with the number of its values."""
    ranked = sorted(medians)
    half, reached = sum(count for _, count in ranked) / 2, 0.0
    for place, (median, count) in enumerate(ranked):
        reached += count
        if reached == half:
            return (median + ranked[place + 1][0]) / 2
        if reached > half:
            return median
    raise AssertionError("counts are positive")
