"""Which direction of a node is slow: sending, receiving, or both."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from muster_coordinator.localize.evidence.threshold import Threshold, spread_of, threshold_of
from muster_coordinator.model.probes import GroupRun


class Direction(StrEnum):
    """The slow direction of a node whose other direction is healthy."""

    SEND = "send"
    RECEIVE = "receive"


@dataclass(frozen=True, slots=True)
class OneWay:
    """The bandwidth in GB/s that a node could send and receive by itself in each bad run, and its threshold."""

    sends: tuple[float, ...]
    receives: tuple[float, ...]
    threshold: Threshold

    @property
    def slow(self) -> Direction | None:
        """None unless one direction was slow and the other healthy in every run."""
        if max(self.sends) < self.threshold.slow_below <= min(self.receives):
            return Direction.SEND
        return Direction.RECEIVE if max(self.receives) < self.threshold.slow_below <= min(self.sends) else None


def one_way_threshold(runs: Iterable[GroupRun]) -> Threshold | None:
    """The threshold for the bandwidth at which one node sends to another while no other node sends."""
    values = [gbps for run in runs for gbps in run.sent.values()]
    return threshold_of(values, spread_of(values))


def one_way(node: str, bad: Sequence[GroupRun], threshold: Threshold | None) -> OneWay | None:
    """From the `bad` runs of a node with one partner; None if no run was measured in both directions."""
    both = [run for run in bad if len(run.members) == 2 and run.sent.keys() >= {*run.members}]
    if threshold is None or not both:
        return None
    sends = tuple(run.sent[node] for run in both)
    receives = tuple(run.sent[other] for run in both for other in run.others(node))
    return OneWay(sends, receives, threshold)
