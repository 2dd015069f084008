"""What a node measured over time, as the API serves it."""

from muster.model import Data, Instant, Name, Verdict


class HistoryPoint(Data):
    """What one run measured, or several in the same hour: `run` names the only one.

    `values`, of several runs their medians, are by device index, or under "" for the node; `least` and `most` are what
    several runs measured.
    """

    at: Instant
    check: Name
    verdicts: dict[Verdict, int]
    run: Name | None = None
    values: dict[str, float]
    least: dict[str, float] | None = None
    most: dict[str, float] | None = None
