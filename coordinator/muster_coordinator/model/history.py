"""What a node measured over time, as the API serves it."""

from muster.model import Data, Instant, Name, Verdict


class MetricFigures(Data):
    """The figures of `count` values of one device."""

    count: int
    least: float
    median: float
    most: float


class HistoryPoint(Data):
    """What one run measured, or several runs of the same hour or step; `run` is the id of a single run.

    `values` are by device index, or under "" for the node; of several runs, they are medians. `least` and `most` are
    the extremes of several runs.
    """

    at: Instant
    check: Name
    verdicts: dict[Verdict, int]
    run: Name | None = None
    values: dict[str, float]
    least: dict[str, float] | None = None
    most: dict[str, float] | None = None


class MetricHistory(Data):
    """What one of several nodes measured, the latest first; no points if it has not measured the metric."""

    node: Name
    points: tuple[HistoryPoint, ...]
