"""Which runs of a report are new.

A node numbers its runs per stream and sends each until it hears that it is stored, so the same runs may come again,
late or out of order. What has been taken is one number per stream: everything up to it. A report is taken only when
nothing is missing between that number and its first run; `after` tells, because it names the run before that the node
still keeps. Runs up to the number are duplicates. Otherwise there is a gap, and the node is to send again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.model import Run
from muster.wire.messages import Report
from muster_coordinator.model.events import EraseStream

MOST_STREAMS = 16
"""Streams remembered for one node. An agent begins a new one when it loses its outbox. The oldest are forgotten."""


@dataclass(frozen=True, slots=True)
class Intake:
    """What came of a report: the runs to store, and up to where the stream is taken now."""

    fresh: tuple[Run, ...]
    through: int
    duplicates: int = 0
    gap: bool = False


def take(report: Report, through: int) -> Intake:
    """The part of `report` that is new when its stream has been taken up to and including `through`."""
    if report.after > through:
        return Intake((), through, gap=True)
    if report.runs[0].seq > through:
        return Intake(report.runs, report.runs[-1].seq)
    fresh = tuple(run for run in report.runs if run.seq > through)
    return Intake(fresh, max(through, report.runs[-1].seq), duplicates=len(report.runs) - len(fresh))


class Streams:
    """By node and stream, the sequence number up to which runs were taken."""

    def __init__(self) -> None:
        self._through: dict[str, dict[str, int]] = {}

    def restore(self, stored: Mapping[tuple[str, str], int]) -> None:
        """Takes over what is stored, by node and stream."""
        for (node, stream), through in stored.items():
            self._through.setdefault(node, {})[stream] = through

    def through(self, node: str, stream: str) -> int:
        """The sequence number up to which runs of the stream were taken; 0 for a new stream."""
        return self._through.get(node, {}).get(stream, 0)

    def advance(self, node: str, stream: str, through: int) -> list[EraseStream]:
        """Notes what was taken. Returns the command to erase the oldest stream when the node has too many."""
        streams = self._through.setdefault(node, {})
        streams.pop(stream, None)
        streams[stream] = through
        if len(streams) <= MOST_STREAMS:
            return []
        oldest = next(iter(streams))
        del streams[oldest]
        return [EraseStream(node, oldest)]

    def forget(self, node: str) -> None:
        """Forgets a node that has left."""
        self._through.pop(node, None)
