"""Takes the reports of nodes: only new runs, within the quota of the node, and under ids that it may use."""

from collections.abc import Callable
from dataclasses import dataclass, field

from muster.model import Run, Verdict
from muster.wire.messages import MOST_RUNS, Ack, Report
from muster.wire.report_head import ReportHead
from muster_coordinator.evidence.deduplication import Streams, take
from muster_coordinator.evidence.node_clock import behind_s, dated
from muster_coordinator.evidence.pacing import hold_s
from muster_coordinator.evidence.quiet_runs import QuietRuns, SortedRun
from muster_coordinator.evidence.quotas import BYTES_OF_A_RUN, Quotas
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.evidence.run_ids import RunIds
from muster_coordinator.model.counts import Counts
from muster_coordinator.model.events import Announce, FleetCommand, ReportRepeated, SendAck, StoreRuns
from muster_coordinator.model.finding_size import size_of
from muster_coordinator.model.nodes import Misconduct
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.quarantine_events import TestEnded
from muster_coordinator.model.quiet_runs import QuietRun, RunBase

MOST_COST = float(MOST_RUNS)
"""Maximum number of runs that the coordinator takes of one report while other nodes wait. The agent sends the rest
again.
"""


class ReportIntake:
    """Takes reports. Knows the streams of all nodes, and the runs that the coordinator has requested.

    A run that is taken is evidence about its node. `awaits(node, run)` says whether the quarantine waits for that run
    as a test. `lag_s` is how long reports wait for the coordinator at present.
    """

    def __init__(
        self, registry: NodeRegistry, awaits: Callable[[str, str], bool], orders: Orders, counts: Counts, quotas: Quotas
    ) -> None:
        self.streams = Streams()
        self.quiet_runs = QuietRuns()
        self._registry = registry
        self._awaits = awaits
        self._orders = orders
        self._counts = counts
        self._quotas = quotas
        self._run_ids = RunIds()
        self.lag_s = 0.0

    def note_ordered(self, run: str, node: str) -> None:
        """Notes that the coordinator has requested a run from a node."""
        self._run_ids.note_ordered(run, node)

    def forget(self, node: str) -> None:
        """Forgets a node that has left."""
        self.streams.forget(node)
        self.quiet_runs.forget(node)

    def take(self, report: Report, now: float) -> list[FleetCommand]:
        """Takes the new runs of a report, and acknowledges them.

        A run beyond the quota of its node is neither taken nor acknowledged; the agent keeps it.
        """
        node = report.node
        self._counts.reports += 1
        if not self._quotas.has_room(node, now):
            self._counts.over_quota += 1
            return self._registry.note_misconduct(node, Misconduct.OVER_QUOTA, "", report.id, now)
        commands = self._registry.note_clock(report, now)
        self._quotas.charge_changes(self._registry.nodes[node], len(commands))
        intake = take(report, self.streams.through(node, report.stream))
        self._counts.gaps += intake.gap
        self._counts.duplicates += intake.duplicates
        through = intake.through
        if intake.fresh:
            through, taken = self._take_runs(report, intake.fresh, now)
            commands += taken
        return [*commands, self._ack(node, report.stream, through, now, gap=intake.gap)]

    def is_known(self, node: str, head: ReportHead) -> bool:
        """Whether all runs of the report with this head were taken already."""
        return head.through <= self.streams.through(node, head.stream)

    def repeat(self, repeated: ReportRepeated, now: float) -> list[FleetCommand]:
        """Acknowledges a report that is known: the acknowledgement may be lost, or wait for the runs to be stored.

        The pipeline sends the new one only after it has stored all that was taken before.
        """
        self._counts.reports += 1
        self._counts.repeated_reports += 1
        through = self.streams.through(repeated.node, repeated.stream)
        return [self._ack(repeated.node, repeated.stream, through, now)]

    def _ack(self, node: str, stream: str, through: int, now: float, *, gap: bool = False) -> SendAck:
        ack = Ack(
            id=self._orders.new_id(),
            sent_at=now,
            stream=stream,
            stored_through=through,
            gap=gap,
            hold_s=hold_s(len(self._registry.nodes), self.lag_s),
        )
        return SendAck(node, ack)

    def _take_runs(self, report: Report, fresh: tuple[Run, ...], now: float) -> tuple[int, list[FleetCommand]]:
        """The number of the last taken run, the commands that store the runs, and those that follow from them.

        The first run is always taken. The others are taken while their cost stays within MOST_COST.
        """
        node, late_s, through = report.node, behind_s(report.sent_at, now), 0
        stored = _StoredRuns()
        consequences: list[FleetCommand] = []
        cost = 0.0
        for run in map(self._named, fresh):
            if through and (cost >= MOST_COST or not self._quotas.has_room(node, now)):
                break
            commands, run_cost = self._take_run(run, report.stream, late_s, now, stored)
            consequences += commands
            cost += run_cost
            through = run.seq
        self._counts.runs += len(stored.whole) + len(stored.quiet)
        command = stored.command(report, through, late_s, now)
        return through, [command, *self.streams.advance(node, report.stream, through), *consequences]

    def _take_run(
        self, run: Run, stream: str, late_s: float, now: float, stored: "_StoredRuns"
    ) -> tuple[list[FleetCommand], float]:
        """The commands that follow from a run as evidence, and the cost for its node, in runs. It goes to `stored`."""
        node, size = self._registry.nodes[run.node], len(run.model_dump_json())
        if self._awaits(run.node, run.id):
            self._registry.news.note_test_ended(TestEnded(node=run.node, test=run.id, verdict=run.verdict))
        changed: list[FleetCommand] = []
        cost = max(1.0, size / BYTES_OF_A_RUN)
        before = node.evidence.checks.get(run.check)
        if not node.has_announced(run.check):
            self._counts.not_announced += 1
            if node.checks:  # a node without checks has not sent its inventory yet
                changed = self._registry.note_misconduct(run.node, Misconduct.NOT_ANNOUNCED, run.check, run.id, now)
        elif changed := self._registry.add_run(dated(run, late_s, now), now):
            size += size_of(node.evidence.findings)
        self._quotas.charge(run.node, runs=cost, stored_bytes=size)
        if self._registry.due.stored_checks.admit(run):
            after = node.evidence.checks.get(run.check)
            moved = after is not before or (after is None and run.verdict is not Verdict.SKIPPED)
            announced = node.checks.get(run.check)
            compared = announced is None or bool(announced.compared)
            run = stored.add(run, self.quiet_runs.sort(run, stream, moved=moved, compared=compared))
        return [Announce("run", run), *changed], cost + self._quotas.charge_changes(node, len(changed))

    def _named(self, run: Run) -> Run:
        return self._run_ids.named(run, is_awaited=self._awaits(run.node, run.id))


@dataclass(slots=True)
class _StoredRuns:
    """The runs of a report that are stored, whole or only their numbers."""

    whole: list[Run] = field(default_factory=list)
    quiet: list[QuietRun] = field(default_factory=list)
    bases: dict[str, RunBase] = field(default_factory=dict)
    outdated: list[str] = field(default_factory=list)

    def add(self, run: Run, sorted_run: SortedRun) -> Run:
        """Adds a run, and returns it under the id that it is stored with."""
        if sorted_run.quiet is not None:
            self.quiet.append(sorted_run.quiet)
            return sorted_run.quiet.run
        self.whole.append(run)
        for outdated in sorted_run.outdated:
            self.bases.pop(outdated, None)
            self.outdated.append(outdated)
        if sorted_run.base is not None:
            self.bases[run.id] = sorted_run.base
        return run

    def command(self, report: Report, through: int, late_s: float, now: float) -> StoreRuns:
        """The command that stores them."""
        return StoreRuns(
            report.node,
            report.stream,
            through,
            tuple(self.whole),
            late_s,
            now,
            tuple(self.quiet),
            tuple(self.bases.values()),
            tuple(self.outdated),
        )
