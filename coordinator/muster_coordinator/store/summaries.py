"""Summaries of old runs: the metrics and verdicts of each hour. Pure."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

from muster.model import Data, Instant, Json, Name, Run, Verdict
from muster_coordinator.normal.readings import DeviceIndex, by_device

HOUR_S = 3_600


class MetricFigures(Data):
    """The figures of `count` values of one device."""

    count: int
    least: float
    median: float
    most: float


class Summary(Data):
    """The runs of a check on a node with the same parameters that started in the same hour.

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
    """The summaries of these runs, which are in the order of their start."""
    alike: dict[tuple[str, str, str, int], list[Run]] = defaultdict(list)
    for run in runs:
        alike[run.node, run.check, json.dumps(run.params, sort_keys=True), hour_of(run.started_at)].append(run)
    return [_summary(same_hour) for same_hour in alike.values()]


def device_name(device: DeviceIndex) -> str:
    """The name of a device as a key in JSON."""
    return "" if device is None else str(device)


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
            metric: {device: _figures(each) for device, each in devices.items()} for metric, devices in values.items()
        },
    )


def _figures(values: Sequence[float]) -> MetricFigures:
    return MetricFigures(count=len(values), least=min(values), median=median(values), most=max(values))
