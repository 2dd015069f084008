"""Between the quarantine and the rest of the fleet: tells it what happens to nodes, and carries out what it decides."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from muster.model import ServiceState
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.model import events as fleet
from muster_coordinator.model.events import Announce, SaveNode
from muster_coordinator.model.quarantine import OUT, NodeDecision, NodeEvidence, QuarantineRecord
from muster_coordinator.model.quarantine_events import (
    Command,
    Event,
    Note,
    Restored,
    SaveRecord,
    SaveTransition,
    StartTest,
    TimePassed,
)
from muster_coordinator.model.quarantine_views import CaseView, QuarantineView
from muster_coordinator.model.saved import Saved
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine.reconciler import Reconciler

Commanded = fleet.Command | StartTest


class ServiceStates:
    """Lets `reconciler` decide about the nodes of `registry`, and shows them as decided.

    `changes` counts by service state how often a node came to it since the start.
    """

    def __init__(self, reconciler: Reconciler, registry: NodeRegistry) -> None:
        self.changes: Counter[ServiceState] = Counter()
        self._reconciler = reconciler
        self._registry = registry

    @property
    def records(self) -> Mapping[str, QuarantineRecord]:
        """The record of every node, by name."""
        return self._reconciler.records

    def listed(self) -> dict[str, set[str]]:
        """By actor, the nodes of which it said how its scheduler has them."""
        listed: defaultdict[str, set[str]] = defaultdict(set)
        for record in self.records.values():
            for actor in record.actors.observed:
                listed[actor].add(record.node)
        return listed

    def has_left(self, node: str) -> bool:
        """Whether a node left the fleet while it was not out of service, and nobody came under its name yet."""
        record = self.records.get(node)
        return record is not None and record.evidence.has_left and record.state not in OUT

    def latest_transition(self, node: str) -> TransitionRecord | None:
        """A node's last transition, with what came of it; None when there was none, or it counts no more."""
        return self._reconciler.latest_transition(node)

    def case_view(self, node: str) -> CaseView:
        """A node's case as people see it; KeyError when there is none."""
        return self._reconciler.case_view(node)

    def view(self) -> QuarantineView:
        """What is decided about the fleet as a whole."""
        return self._reconciler.fleet_view()

    def long_gone(self, event: fleet.RetentionEnded) -> set[str]:
        """The nodes past retention."""
        return {it.node for it in self.records.values() if it.is_long_gone(event.before, event.left_before)}

    def restore(self, saved: Saved, now: float) -> list[Commanded]:
        """Takes over what is stored; of nodes that have no record yet, the service state is all that is known."""
        known = {record.node: record for record in saved.quarantine}
        for name, node in self._registry.nodes.items():
            decision = NodeDecision(state=node.service, since=node.first_seen)
            record = known.setdefault(name, QuarantineRecord(node=name, evidence=NodeEvidence(), decision=decision))
            node.dry_run, node.left = record.decision.dry_run, record.evidence.has_left
            node.evidence.date_as(record.evidence.findings)
        restored = Restored(records=tuple(known.values()), transitions=saved.transitions, fleet=saved.fleet_state)
        commands = self.handle(restored, now)
        self._registry.report_all(without={name for name in self._registry.nodes if self.has_left(name)})
        return [*commands, *self.settle(now)]

    def awaits(self, node: str, run: str) -> bool:
        """Whether the run is the test that the coordinator asked the node for."""
        record = self.records.get(node)
        return record is not None and record.awaits(run)

    def tick(self, now: float) -> list[Commanded]:
        """Lets time pass."""
        return self.handle(TimePassed(), now)

    def settle(self, now: float) -> list[Commanded]:
        """Lets the quarantine know what happened since it was told last."""
        return [command for event in self._registry.take_news() for command in self.handle(event, now)]

    def handle(self, event: Event, now: float) -> list[Commanded]:
        """What is to be done about `event`; Refused when a request is not valid, and then nothing has changed."""
        return self._carry_out(self._reconciler.handle(event, now), now)

    def _carry_out(self, decided: Iterable[Command], now: float) -> list[Commanded]:
        commands: list[Commanded] = []
        changed: dict[str, None] = {}
        for command in decided:
            match command:
                case SaveRecord(record=record):
                    changed[record.node] = None
                    commands += [command, *self._follow(record, now)]
                case SaveTransition(record=record):
                    changed[record.transition.node] = None
                    commands.append(command)
                case Note(node=node, about=about, text=text, cause=cause, data=data):
                    commands.append(self._registry.story.tell(node, about, text, cause, now, data=data))
                case _:
                    commands.append(command)
        views = (self._reconciler.case_view(node) for node in changed if node in self.records)
        return [*commands, *(Announce("case", view) for view in views)]

    def _follow(self, record: QuarantineRecord, now: float) -> list[fleet.Command]:
        """Shows a node as was decided; of one that was forgotten there is nothing to show."""
        node = self._registry.nodes.get(record.node)
        decided = (record.state, record.decision.dry_run, record.evidence.has_left)
        if node is None or (node.service, node.dry_run, node.left) == decided:
            return []
        if node.service is not record.state:
            self.changes[record.state] += 1
        node.service, node.dry_run, node.left = decided
        return [SaveNode(node.record()), Announce("node", self._registry.view(node, now))]
