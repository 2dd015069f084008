"""Takes the reports of nodes: only new runs, only within the quota of the node, and only under ids that it may use."""

from collections.abc import Mapping

from muster.model import Run
from muster.wire.messages import Ack, Report
from muster_coordinator.conduct import Misconduct
from muster_coordinator.counts import Counts
from muster_coordinator.events import Announce, Command, EraseStream, SendAck, StoreRuns
from muster_coordinator.intake import Intake, take
from muster_coordinator.node_clock import behind_s, dated
from muster_coordinator.orders import Orders
from muster_coordinator.quarantining import Quarantining
from muster_coordinator.quotas import BYTES_OF_A_CHANGE, Quotas
from muster_coordinator.roster import Roster
from muster_coordinator.run_ids import RunIds

MOST_STREAMS = 16
"""Streams remembered for one node. An agent begins a new one when it loses its outbox. The oldest are forgotten."""


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


class ReportIntake:
    """Takes reports: knows the streams and quotas of all nodes, and which runs the coordinator has ordered.

    A run that is taken is evidence about its node in `roster`, and may be the test that `quarantining` waits for.
    """

    def __init__(
        self, roster: Roster, quarantining: Quarantining, orders: Orders, counts: Counts, bytes_a_day: float
    ) -> None:
        self.streams = Streams()
        self._roster = roster
        self._quarantining = quarantining
        self._orders = orders
        self._counts = counts
        self._quotas = Quotas(bytes_a_day)
        self._run_ids = RunIds()

    def note_ordered(self, run: str, node: str) -> None:
        """Notes that the coordinator has ordered a run from a node."""
        self._run_ids.note_ordered(run, node)

    def forget(self, node: str) -> None:
        """Forgets a node that has left."""
        self.streams.forget(node)
        self._quotas.forget(node)

    def take(self, report: Report, size: int, now: float) -> list[Command]:
        """Takes the new runs of a report of `size` bytes, and acknowledges them.

        A report beyond the quota of its node is neither taken nor acknowledged; the agent keeps it.
        """
        commands = self._roster.note_clock(report, now)
        self._counts.reports += 1
        if not self._quotas.has_room(report.node, now):
            self._counts.over_quota += 1
            return [*commands, *self._roster.note_misconduct(report.node, Misconduct.OVER_QUOTA, "", report.id, now)]
        intake = take(report, self.streams.through(report.node, report.stream))
        self._counts.gaps += intake.gap
        self._counts.duplicates += intake.duplicates
        if intake.fresh:
            self._quotas.charge(
                report.node, runs=len(intake.fresh), stored_bytes=size * len(intake.fresh) / len(report.runs)
            )
            commands += self._take_runs(report, intake, now)
        ack = Ack(
            id=self._orders.new_id(),
            sent_at=now,
            stream=report.stream,
            stored_through=intake.through,
            gap=intake.gap,
        )
        return [*commands, SendAck(report.node, ack)]

    def _take_runs(self, report: Report, intake: Intake, now: float) -> list[Command]:
        """The commands that store the new runs of a report, and what follows from them as evidence."""
        node, late_s = report.node, behind_s(report.sent_at, now)
        runs = tuple(map(self._named, intake.fresh))
        self._counts.runs += len(runs)
        commands: list[Command] = [StoreRuns(node, report.stream, intake.through, runs, late_s)]
        commands += self.streams.advance(node, report.stream, intake.through)
        for run in runs:
            commands.append(Announce("run", run))
            self._quarantining.note_run(run)
            if not self._roster.nodes[node].has_announced(run.check):
                self._counts.not_announced += 1
                commands += self._roster.note_misconduct(node, Misconduct.NOT_ANNOUNCED, run.check, run.id, now)
            elif changed := self._roster.add_run(dated(run, late_s, now), now):
                self._quotas.charge(node, stored_bytes=BYTES_OF_A_CHANGE * len(changed))
                commands += changed
        return commands

    def _named(self, run: Run) -> Run:
        return self._run_ids.named(run, is_awaited=self._quarantining.awaits(run.node, run.id))
