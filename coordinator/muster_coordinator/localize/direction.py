"""Which way a node is slow: to send, to receive, or both."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from muster_coordinator.localize.level import Level, level_of, spread_of
from muster_coordinator.localize.trial import Trial


class Direction(StrEnum):
    """The way that is slow when the other is well."""

    SEND = "send"
    RECEIVE = "receive"


@dataclass(frozen=True, slots=True)
class OneWay:
    """What a node could send and receive by itself in each of its bad runs, in GB/s, and what others can."""

    sends: tuple[float, ...]
    receives: tuple[float, ...]
    level: Level

    @property
    def slow(self) -> Direction | None:
        """None unless one way was slow and the other well in every run."""
        if max(self.sends) < self.level.slow_below <= min(self.receives):
            return Direction.SEND
        return Direction.RECEIVE if max(self.receives) < self.level.slow_below <= min(self.sends) else None


def level_one_way(trials: Iterable[Trial]) -> Level | None:
    """What one node typically sends to another while nobody else sends."""
    values = [gbps for trial in trials for gbps in trial.sent.values()]
    return level_of(values, spread_of(values))


def one_way(node: str, bad: Sequence[Trial], level: Level | None) -> OneWay | None:
    """By the `bad` runs of a node with one other; None when none of them was measured both ways."""
    both = [trial for trial in bad if len(trial.members) == 2 and trial.sent.keys() >= {*trial.members}]
    if level is None or not both:
        return None
    sends = tuple(trial.sent[node] for trial in both)
    receives = tuple(trial.sent[other] for trial in both for other in trial.others(node))
    return OneWay(sends, receives, level)
