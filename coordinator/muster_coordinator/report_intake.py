"""What is taken of the reports of nodes: what is new, as much as a node may have stored, under ids that are its own."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from muster.model import Run
from muster.wire.messages import MOST_RUNS, Ack, Report
from muster_coordinator.conduct import Misconduct
from muster_coordinator.counts import Counts
from muster_coordinator.events import Announce, Command, EraseStream, SendAck, StoreRuns
from muster_coordinator.finding_size import size_of
from muster_coordinator.health import MOST_CHECKS
from muster_coordinator.intake import take
from muster_coordinator.node_clock import behind_s, dated
from muster_coordinator.orders import Orders
from muster_coordinator.quarantining import Quarantining
from muster_coordinator.quotas import BYTES_OF_A_RUN, Quotas
from muster_coordinator.roster import Roster
from muster_coordinator.run_ids import RunIds

MOST_COST = float(MOST_RUNS)
"""Of what is taken of one report, as so many runs: others wait meanwhile. Its agent sends the rest again."""

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


class StoredChecks:
    """Of which checks runs of each node are stored: the last runs of each are kept as long as the node."""

    def __init__(self) -> None:
        self._names: defaultdict[str, set[str]] = defaultdict(set)

    def restore(self, runs: Iterable[Run]) -> None:
        """Takes over what is stored."""
        for run in runs:
            self._names[run.node].add(run.check)

    def admit(self, run: Run) -> bool:
        """Whether a run may be stored: not when its node has made up too many checks before."""
        names = self._names[run.node]
        if run.check not in names and len(names) >= MOST_CHECKS:
            return False
        names.add(run.check)
        return True

    def forget(self, node: str) -> None:
        """Remembers nothing of a node of which nothing is stored any more."""
        self._names.pop(node, None)


class ReportIntake:
    """How far the streams of all nodes are taken, and which runs were ordered; `quotas` say how much is taken.

    What is taken is evidence about the nodes of `roster`, and may be what `quarantining` waits for.
    """

    def __init__(
        self, roster: Roster, quarantining: Quarantining, orders: Orders, counts: Counts, quotas: Quotas
    ) -> None:
        self.streams = Streams()
        self.checks = StoredChecks()
        self._roster = roster
        self._quarantining = quarantining
        self._orders = orders
        self._counts = counts
        self._quotas = quotas
        self._run_ids = RunIds()

    def note_ordered(self, run: str, node: str) -> None:
        """Notes that a run was ordered from a node."""
        self._run_ids.note_ordered(run, node)

    def forget(self, node: str) -> None:
        """Remembers nothing of a node that has left."""
        self.streams.forget(node)
        self.checks.forget(node)

    def take(self, report: Report, now: float) -> list[Command]:
        """Takes what is new in a report, and acknowledges it.

        What is beyond its node's quota is not acknowledged: its agent keeps it.
        """
        node = report.node
        self._counts.reports += 1
        if not self._quotas.has_room(node, now):
            self._counts.over_quota += 1
            return self._roster.accuse(node, Misconduct.OVER_QUOTA, "", report.id, now)
        commands = self._roster.note_clock(report, now)
        self._quotas.charge_changes(self._roster.nodes[node], len(commands))
        intake = take(report, self.streams.through(node, report.stream))
        self._counts.gaps += intake.gap
        self._counts.duplicates += intake.duplicates
        through = intake.through
        if intake.fresh:
            through, taken = self._take_runs(report, intake.fresh, now)
            commands += taken
        ack = Ack(id=self._orders.new_id(), sent_at=now, stream=report.stream, stored_through=through, gap=intake.gap)
        return [*commands, SendAck(node, ack)]

    def _take_runs(self, report: Report, fresh: tuple[Run, ...], now: float) -> tuple[int, list[Command]]:
        """Has the new runs of a report stored, and takes them as evidence; through which number.

        The first is taken, and of the others as many as one report may bring.
        """
        node, late_s, through = report.node, behind_s(report.sent_at, now), 0
        runs: list[Run] = []
        told: list[Command] = []
        cost = 0.0
        for run in map(self._named, fresh):
            if through and (cost >= MOST_COST or not self._quotas.has_room(node, now)):
                break
            commands, its_cost = self._take_run(run, late_s, now)
            told += commands
            cost += its_cost
            through = run.seq
            if self.checks.admit(run):
                runs.append(run)
        self._counts.runs += len(runs)
        stored = StoreRuns(node, report.stream, through, tuple(runs), late_s, now)
        return through, [stored, *self.streams.advance(node, report.stream, through), *told]

    def _take_run(self, run: Run, late_s: float, now: float) -> tuple[list[Command], float]:
        """Takes a run as evidence, and charges its node for it; also what that costs, as so many runs."""
        node, size = self._roster.nodes[run.node], len(run.model_dump_json())
        self._quarantining.note_run(run)
        changed: list[Command] = []
        cost = max(1.0, size / BYTES_OF_A_RUN)
        if not node.has_announced(run.check):
            self._counts.not_announced += 1
            changed = self._roster.accuse(run.node, Misconduct.NOT_ANNOUNCED, run.check, run.id, now)
        elif changed := self._roster.add_run(dated(run, late_s, now), now):
            size += size_of(node.evidence.findings)
        self._quotas.charge(run.node, runs=cost, stored_bytes=size)
        return [Announce("run", run), *changed], cost + self._quotas.charge_changes(node, len(changed))

    def _named(self, run: Run) -> Run:
        return self._run_ids.named(run, is_awaited=self._quarantining.awaits(run.node, run.id))
