"""Finds the new runs of a report.

The idea: a node numbers its runs in a stream and sends each run until the coordinator acknowledges it. So the same runs
may come again, late, or out of order. The coordinator keeps one number for each stream: all runs up to it were taken.
Runs up to this number are duplicates. `after` is the number of the run before the first one that the node still keeps.
If it is above the coordinator's number, runs are missing in between: a gap. The coordinator then takes nothing, and the
acknowledgement tells the node to send again from there.

Example: runs up to 7 were taken. A report of the runs 6 to 9 with after = 5: 6 and 7 are duplicates, 8 and 9 are new. A
report of the runs 12 to 14 with after = 11: 8 to 11 are missing, a gap.

Time is proportional to the runs of the report, memory to the streams of all nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.model import Run
from muster.wire.messages import Repeat, Report
from muster_coordinator.model.events import EraseStream

MOST_STREAMS = 16
"""Streams remembered for one node. An agent begins a new one when it loses its outbox. The oldest are forgotten."""


@dataclass(frozen=True, slots=True)
class Intake:
    """The result of a report: the new runs, and the number up to which the stream is taken now."""

    fresh: tuple[Run | Repeat, ...]
    through: int
    duplicates: int = 0
    gap: bool = False


def take(report: Report, through: int) -> Intake:
    """The new runs of `report`. Its stream was taken up to and including the number `through`."""
    if report.after > through:
        return Intake((), through, gap=True)
    runs = report.in_order
    if runs[0].seq > through:
        return Intake(runs, runs[-1].seq)
    fresh = tuple(run for run in runs if run.seq > through)
    return Intake(fresh, max(through, runs[-1].seq), duplicates=len(runs) - len(fresh))


class Streams:
    """The sequence number up to which runs were taken, by node and stream."""

    def __init__(self) -> None:
        self._through: dict[str, dict[str, int]] = {}

    def restore(self, stored: Mapping[tuple[str, str], int]) -> None:
        """Restores the stored numbers, by node and stream."""
        for (node, stream), through in stored.items():
            self._through.setdefault(node, {})[stream] = through

    def is_known(self, node: str, stream: str) -> bool:
        """Whether runs of the stream were taken."""
        return stream in self._through.get(node, ())

    def through(self, node: str, stream: str) -> int:
        """The sequence number up to which runs of the stream were taken; 0 for a new stream."""
        return self._through.get(node, {}).get(stream, 0)

    def advance(self, node: str, stream: str, through: int) -> list[EraseStream]:
        """Notes the number up to which runs are taken. Returns the command to erase the oldest stream of too many."""
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
