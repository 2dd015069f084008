"""Takes the reports of nodes: only new runs, within the quota of the node, and under ids that it may use.

A run that travelled as a repeat is made whole first. If its base is not known, the runs before it are taken, and the
acknowledgement says that there is a gap: the node then sends it whole.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.model import Run, Verdict
from muster.wire.messages import MOST_RUNS, Ack, Repeat, Report
from muster.wire.report_head import ReportHead
from muster.wire.scheduled_runs import is_uneventful
from muster_coordinator.evidence.deduplication import Streams, take
from muster_coordinator.evidence.node_clock import behind_s, dated
from muster_coordinator.evidence.pacing import hold_s, spread
from muster_coordinator.evidence.quiet_runs import QuietRuns, SortedRun
from muster_coordinator.evidence.quotas import BYTES_OF_A_RUN, Quotas
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.evidence.repeat_bases import RepeatBases
from muster_coordinator.evidence.run_ids import RunIds
from muster_coordinator.model.counts import Counts
from muster_coordinator.model.events import Announce, FleetCommand, ReportRepeated, ReportSeen, SendAck, StoreRuns
from muster_coordinator.model.finding_size import size_of
from muster_coordinator.model.load import ReportInvited
from muster_coordinator.model.nodes import Misconduct
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.quarantine_events import TestEnded
from muster_coordinator.model.quiet_runs import QuietRun, RunBase
from muster_coordinator.model.run_shape import RunShape, shape_of

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
        self._bases = RepeatBases()
        self._registry = registry
        self._awaits = awaits
        self._orders = orders
        self._counts = counts
        self._quotas = quotas
        self._run_ids = RunIds()
        self._acks = 0
        self.lag_s = 0.0

    def note_ordered(self, run: str, node: str) -> None:
        """Notes that the coordinator has requested a run from a node."""
        self._run_ids.note_ordered(run, node)

    def forget(self, node: str) -> None:
        """Forgets a node that has left."""
        self.streams.forget(node)
        self.quiet_runs.forget(node)
        self._bases.forget(node)

    def take(self, event: ReportSeen, now: float) -> list[FleetCommand]:
        """Takes the new runs of a report, and acknowledges them.

        A run beyond the quota of its node is neither taken nor acknowledged; the agent keeps it.
        """
        report = event.message
        node = report.node
        self._counts.reports += 1
        if not self._quotas.has_room(node, now):
            self._counts.over_quota += 1
            return self._registry.note_misconduct(node, Misconduct.OVER_QUOTA, "", report.id, now)
        commands = self._registry.note_clock(report, now)
        self._quotas.charge_changes(self._registry.nodes[node], len(commands))
        before = self.streams.through(node, report.stream)
        intake = take(report, before)
        self._counts.gaps += intake.gap
        self._counts.duplicates += intake.duplicates
        if not intake.fresh:
            return [*commands, self._ack(node, report.stream, intake.through, now, gap=intake.gap)]
        stored, taken = self._take_runs(event, intake.fresh, now)
        if not stored.through:
            return [*commands, self._ack(node, report.stream, before, now, gap=True)]
        return [*commands, *taken, self._ack(node, report.stream, stored.through, now, gap=stored.lacks_base)]

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

    def invite(self, invited: ReportInvited, now: float) -> list[FleetCommand]:
        """Asks a node for a report that was deferred."""
        through = self.streams.through(invited.node, invited.stream)
        return [self._ack(invited.node, invited.stream, through, now, again=True)]

    def _ack(
        self, node: str, stream: str, through: int, now: float, *, gap: bool = False, again: bool = False
    ) -> SendAck:
        self._acks += 1
        ack = Ack(
            id=self._orders.new_id(),
            sent_at=now,
            stream=stream,
            stored_through=through,
            gap=gap,
            again=again,
            hold_s=spread(hold_s(len(self._registry.nodes), self.lag_s, self._cadence_s(node)), self._acks),
        )
        return SendAck(node, ack)

    def _cadence_s(self, node: str) -> float:
        known = self._registry.nodes.get(node)
        return math.inf if known is None else known.announced.shortest_cadence_s

    def _take_runs(
        self, event: ReportSeen, fresh: tuple[Run | Repeat, ...], now: float
    ) -> tuple["_StoredRuns", list[FleetCommand]]:
        """The taken runs, the commands that store them, and those that follow from them.

        The first run is taken unless its base is not known. The others are taken while their cost stays within
        MOST_COST.
        """
        report = event.message
        node, late_s = report.node, behind_s(report.sent_at, now)
        share = event.size // len(fresh)  # what was stored before must not make a large run look small
        stored = _StoredRuns()
        consequences: list[FleetCommand] = []
        cost = 0.0
        for each in fresh:
            if stored.through and (cost >= MOST_COST or not self._quotas.has_room(node, now)):
                break
            received = self._received(each, report, share)
            if received is None:
                stored.lacks_base = True
                self._quotas.charge(node, runs=1.0)
                break
            commands, run_cost = self._take_run(received, report.stream, late_s, now, stored)
            consequences += commands
            cost += run_cost
            stored.through = each.seq
            self._counts.repeats += isinstance(each, Repeat)
        if not stored.through:
            return stored, []
        self._counts.runs += len(stored.whole) + len(stored.quiet)
        command = stored.command(report, late_s, now)
        return stored, [command, *self.streams.advance(node, report.stream, stored.through), *consequences]

    def _received(self, each: Run | Repeat, report: Report, share: int) -> "_ReceivedRun | None":
        """A run with its shape and size, under the id that it may use; None for a repeat without a known base."""
        if isinstance(each, Repeat):
            expanded = self._bases.expand(report.node, report.stream, each, report.sent_at)
            return None if expanded is None else _ReceivedRun(expanded.run, expanded.shape, share, expanded.size)
        run = self._run_ids.named(each, report.stream, is_awaited=self._awaits(each.node, each.id))
        if not is_uneventful(run.cause, run.group, run.verdict, run.facts):
            return _ReceivedRun(run, None, share)
        shape = shape_of(run)
        self._bases.keep(run, shape, report.stream)
        return _ReceivedRun(run, shape, share)

    def _take_run(
        self, received: "_ReceivedRun", stream: str, late_s: float, now: float, stored: "_StoredRuns"
    ) -> tuple[list[FleetCommand], float]:
        """The commands that follow from a run as evidence, and the cost for its node, in runs. It goes to `stored`."""
        run, shape, size, brought = received
        node = self._registry.nodes[run.node]
        if self._awaits(run.node, run.id):
            self._registry.news.note_test_ended(TestEnded(node=run.node, test=run.id, verdict=run.verdict))
        changed: list[FleetCommand] = []
        cost = max(1.0, (size + brought) / BYTES_OF_A_RUN)
        before = node.evidence.checks.get(run.check)
        if not node.has_announced(run.check):
            self._counts.not_announced += 1
            if node.checks:  # a node without checks has not sent its inventory yet
                changed = self._registry.note_misconduct(run.node, Misconduct.NOT_ANNOUNCED, run.check, run.id, now)
        elif changed := self._registry.add_run(dated(run, late_s, now), now):
            size += size_of(node.evidence.findings)
        if self._registry.due.stored_checks.admit(run):
            after = node.evidence.checks.get(run.check)
            moved = after is not before or (after is None and run.verdict is not Verdict.SKIPPED)
            announced = node.checks.get(run.check)
            compared = announced is None or bool(announced.compared)
            sorted_run = self.quiet_runs.sort(run, shape, stream, moved=moved, compared=compared)
            size += 0 if sorted_run.quiet else brought
            run = stored.add(run, sorted_run)
        self._quotas.charge(run.node, runs=cost, stored_bytes=size)
        return [Announce("run", run), *changed], cost + self._quotas.charge_changes(node, len(changed))


class _ReceivedRun(NamedTuple):
    """A run, its shape if it is uneventful, its size in the report, and the bytes that the base of a repeat brings."""

    run: Run
    shape: RunShape | None
    size: int
    brought: int = 0


@dataclass(slots=True)
class _StoredRuns:
    """The runs of a report that are stored, whole or only their numbers, and the number of the last one.

    `lacks_base` means that the next one is a repeat whose base is not known.
    """

    through: int = 0
    lacks_base: bool = False
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

    def command(self, report: Report, late_s: float, now: float) -> StoreRuns:
        """The command that stores them."""
        return StoreRuns(
            report.node,
            report.stream,
            self.through,
            tuple(self.whole),
            late_s,
            now,
            tuple(self.quiet),
            tuple(self.bases.values()),
            tuple(self.outdated),
        )
