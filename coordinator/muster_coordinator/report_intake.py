"""What is taken of the reports of nodes: what is new, as much as a node may have stored, under ids that are its own."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from muster.wire.messages import Report
from muster_coordinator.events import EraseStream
from muster_coordinator.intake import Intake, take
from muster_coordinator.quotas import BYTES_OF_A_CHANGE, Quotas
from muster_coordinator.run_ids import RunIds

MOST_STREAMS = 16
"""Of one node. An agent begins a new one when its outbox is lost; of a node that does nothing else, the first go."""


class Streams:
    """Through which number each stream of each node has been taken."""

    def __init__(self) -> None:
        self._through: dict[str, dict[str, int]] = {}

    def restore(self, stored: Mapping[tuple[str, str], int]) -> None:
        """Takes over what is stored, by node and stream."""
        for (node, stream), through in stored.items():
            self._through.setdefault(node, {})[stream] = through

    def through(self, node: str, stream: str) -> int:
        """The number; 0 for a stream that is new."""
        return self._through.get(node, {}).get(stream, 0)

    def advance(self, node: str, stream: str, through: int) -> list[EraseStream]:
        """Notes what was taken; answers with what is remembered no longer in its place."""
        streams = self._through.setdefault(node, {})
        streams.pop(stream, None)
        streams[stream] = through
        if len(streams) <= MOST_STREAMS:
            return []
        oldest = next(iter(streams))
        del streams[oldest]
        return [EraseStream(node, oldest)]

    def forget(self, node: str) -> None:
        """Remembers nothing of a node that has left."""
        self._through.pop(node, None)


class ReportIntake:
    """How far the streams of all nodes are taken, what each node may still have stored, and which runs were ordered."""

    def __init__(self, bytes_a_day: float) -> None:
        self.streams = Streams()
        self._quotas = Quotas(bytes_a_day)
        self._run_ids = RunIds()

    def note_ordered(self, run: str, node: str) -> None:
        """Notes that a run was ordered from a node."""
        self._run_ids.note_ordered(run, node)

    def has_room(self, node: str, now: float) -> bool:
        """Whether more may be taken of a node now."""
        return self._quotas.has_room(node, now)

    def take(self, report: Report, size: int, awaits: Callable[[str, str], bool]) -> tuple[Intake, list[EraseStream]]:
        """What is new in a report of `size` bytes; `awaits` tells whether a node owes us a run of this id.

        To be called after `has_room`, and followed by `charge` for what comes of the runs.
        """
        node = report.node
        intake = take(report, self.streams.through(node, report.stream))
        if not intake.fresh:
            return intake, []
        self._quotas.charge(node, runs=len(intake.fresh), stored_bytes=size * len(intake.fresh) / len(report.runs))
        runs = tuple(self._run_ids.named(run, is_awaited=awaits(node, run.id)) for run in intake.fresh)
        return replace(intake, fresh=runs), self.streams.advance(node, report.stream, intake.through)

    def charge(self, node: str, changes: int) -> None:
        """Counts what is stored because a run has changed what is known of its node."""
        self._quotas.charge(node, stored_bytes=changes * BYTES_OF_A_CHANGE)

    def forget(self, node: str) -> None:
        """Remembers nothing of a node that has left."""
        self.streams.forget(node)
        self._quotas.forget(node)
