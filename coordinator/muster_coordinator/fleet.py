"""The whole fleet as one state machine: the nodes, the sweeps that run over them, and the requests of people.

`Fleet.handle` routes an event to the part that decides about it and joins the answers of the parts. Nothing here takes
longer in a larger fleet, except work that concerns all nodes of a sweep.
"""

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from muster.errors import Refused, unknown
from muster.model import ServiceState, Topology
from muster.quarantine_settings import QuarantineSettings
from muster.topology_labels import TopologyLabels
from muster.wire.report_head import ReportHead
from muster_coordinator.evidence.decided_states import DecidedStates
from muster_coordinator.evidence.fleet_view import fleet_view
from muster_coordinator.evidence.inventory_intake import InventoryIntake
from muster_coordinator.evidence.name_owners import NameOwners
from muster_coordinator.evidence.node_tally import Tally
from muster_coordinator.evidence.places import Places
from muster_coordinator.evidence.quotas import Quotas
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.evidence.report_intake import ReportIntake
from muster_coordinator.model import events
from muster_coordinator.model import quarantine_events as quarantine
from muster_coordinator.model.baselines import BaselineView
from muster_coordinator.model.counts import Counts
from muster_coordinator.model.events import FleetCommand, FleetEvent, FleetRequest
from muster_coordinator.model.load import CoordinatorLoad, LoadSeen, LogLoad, ReportInvited
from muster_coordinator.model.nodes import FleetView, NodeView
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.quarantine import QuarantineRecord
from muster_coordinator.model.quarantine_views import CaseView, QuarantineView
from muster_coordinator.model.references import ReferenceRecord
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.model.sweep_records import SweepRecord, SweepRequest
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.normal.baselines import DEVICES_AT_ONCE
from muster_coordinator.quarantine.membership import has_left_in_service, listed_by_actor, past_retention
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.reconciler import Reconciler
from muster_coordinator.references.book import ReferenceBook, require_use
from muster_coordinator.sweeps.forecast import Forecast
from muster_coordinator.sweeps.liveness import Liveness
from muster_coordinator.sweeps.node_tests import NodeTests
from muster_coordinator.sweeps.recovery import AfterRestart
from muster_coordinator.sweeps.registry import SweepRegistry
from muster_coordinator.sweeps.requests import order_run
from muster_coordinator.sweeps.timetable import Timetable
from muster_coordinator.topology.selection_term import Candidate


class Fleet:
    """All nodes and all sweeps of the fleet `name`, under the leadership with this `epoch`."""

    def __init__(
        self,
        *,
        name: str,
        epoch: int,
        secret_key: bytes | None = None,
        heartbeat_s: float = 10.0,
        bytes_a_day: float = math.inf,
        declared: Mapping[str, Topology] = MappingProxyType({}),
        topology_labels: TopologyLabels = TopologyLabels(),  # noqa: B008 (it is frozen)
        after_restart: AfterRestart = AfterRestart.RESUME,
        timetable: Timetable | None = None,
        rules: QuarantineSettings = QuarantineSettings(),  # noqa: B008 (it is frozen)
        policy: Policy = Policy(()),  # noqa: B008 (it is frozen)
    ) -> None:
        self.name, self.declared, self.epoch = name, declared, epoch
        self.counts, self.load, self._quotas = Counts(), CoordinatorLoad(), Quotas(bytes_a_day)
        self._orders = Orders(epoch, secret_key)
        self._registry = NodeRegistry(self._orders, heartbeat_s, Places(declared, topology_labels), rules.limits.domain)
        self._references = ReferenceBook(self._orders)
        self._sweeps = SweepRegistry(
            self._registry,
            self._orders,
            self.counts,
            declared=declared,
            after_restart=after_restart,
            timetable=timetable or Timetable(),
        )
        self._quarantine = Reconciler(rules, policy, epoch)
        self._states = DecidedStates(self._registry)
        self._tests = NodeTests(self._registry, self._orders, self._sweeps)
        self.inventories = InventoryIntake(self._registry, self._quotas, self._orders)
        left = self._quarantine.has_left_in_service
        self._liveness = Liveness(
            self._registry, self._sweeps, self._tests, inventories=self.inventories, quotas=self._quotas, has_left=left
        )
        self._reports = ReportIntake(self._registry, self._quarantine.awaits, self._orders, self.counts, self._quotas)
        self._owners = NameOwners(self._registry, self.inventories, self._reports.streams, self._orders, left)

    def restore(self, saved: StoredFleet, now: float, past: Iterable[SweepRecord] = ()) -> list[FleetCommand]:
        """Restores the stored state and continues the `past` sweeps. Call it once, before anything else."""
        commands = self._registry.restore(saved, now)
        self._reports.streams.restore(saved.streams)
        self._reports.quiet_runs.restore(saved.bases)
        commands += self._references.restore(saved.references, now)
        commands += self._sweeps.restore(saved, past, now)
        commands += self._tests.restore(now)
        return [*commands, *self._restore_decisions(saved, now), *self._registry.due.take()]

    def handle(self, event: FleetEvent, now: float) -> list[FleetCommand]:
        """The commands that follow from `event`. Raises Refused, without any change, if a request is not valid."""
        if (commands := self._owners.refused(event, now)) is None:
            commands = self._route(event, now)
        self._tests.note_ended_sweeps()
        commands += self._pass_on_news(now)
        if self._sweeps.has_freed_nodes or isinstance(event, events.Ticked | events.SweepRequested):
            commands += self._sweeps.form_groups(now)
        return [*commands, *self._registry.due.take()]

    def _route(self, event: FleetEvent, now: float) -> list[FleetCommand]:
        match event:
            case events.ReportSeen() | events.ReportRepeated() | ReportInvited():
                commands = self._take_report(event, now)
            case events.PresenceSeen():
                commands = [*self._liveness.take_presence(event, now), *self._owners.bind(event)]
            case events.GroupReplySeen(message):
                commands = [*self._liveness.hear(message.node, message.id, now), *self._sweeps.take_reply(message, now)]
            case _ if isinstance(event, events.LearnedEvent):
                commands = self._learn(event, now)
            case events.Ticked():
                commands = self._tick(event, now)
            case events.RetentionEnded():
                commands = self._erase(event, now)
            case quarantine.NodeForgotten():
                commands = self._forget(event, now)
            case _ if isinstance(event, quarantine.QuarantineEvent):
                commands = self._decide(event, now)
            case _:
                commands = self._grant(event, now)
        return commands

    @property
    def names(self) -> list[str]:
        """Every node that was heard and has not been forgotten, by name."""
        return sorted(self._registry.nodes)

    def candidates(self, names: Iterable[str]) -> list[Candidate]:
        """What a selection such as `rack=r1 health=FAILED` compares, of those of these nodes that are known."""
        return [node.candidate for name in names if (node := self._registry.nodes.get(name)) is not None]

    def is_known(self, node: str, head: ReportHead) -> bool:
        """Whether all runs of the node's report with this head were taken already."""
        return self._reports.is_known(node, head)

    def is_present(self, name: str) -> bool:
        """Whether a node was heard and has not left since."""
        node = self._registry.nodes.get(name)
        return node is not None and not node.left

    def remembers(self, name: str) -> bool:
        """Whether it is a known node, or a node that has left and is still remembered."""
        return name in self._registry.nodes or self._registry.has_left(name)

    def node(self, name: str, now: float) -> NodeView | None:
        """One node; None if it was never heard or has been forgotten."""
        node = self._registry.nodes.get(name)
        return None if node is None else self._registry.view(node, now)

    def places(self, names: Iterable[str]) -> dict[str, Topology]:
        """The positions of these nodes, if known."""
        return {name: node.topology for name in names if (node := self._registry.nodes.get(name)) is not None}

    @property
    def running(self) -> int:
        """The number of running sweeps."""
        return len(self._sweeps.running)

    def sweeps(self) -> list[SweepRecord]:
        """The running sweeps in their present state."""
        return [sweep.record() for sweep in self._sweeps.running.values()]

    @property
    def offered_checks(self) -> set[str]:
        """The checks that a sweep can measure with."""
        return self._sweeps.offered_checks

    def forecast(self, request: SweepRequest) -> Forecast:
        """The plan and cost of a sweep. Raises Refused if the sweep itself would be refused."""
        return self._sweeps.forecast(request)

    def quarantine_view(self) -> QuarantineView:
        """The decisions about the fleet as a whole."""
        return self._quarantine.fleet_view()

    def quarantine_records(self) -> list[QuarantineRecord]:
        """The decisions about every node and their reasons, by node."""
        return [record for node, record in sorted(self._quarantine.records.items()) if node in self._registry.nodes]

    def case(self, node: str) -> CaseView | None:
        """The decisions about one node, for people; None if the node is unknown, as for `node`."""
        return self._quarantine.case_view(node) if node in self._registry.nodes else None

    def listed(self) -> dict[str, set[str]]:
        """The nodes of each scheduler at its last survey, by actor."""
        return listed_by_actor(self._quarantine.records.values())

    @property
    def failing(self) -> dict[str, int]:
        """By actor, the number of nodes whose last transition it has failed to carry out."""
        return {actor: len(nodes & self._registry.nodes.keys()) for actor, nodes in self._quarantine.failed.items()}

    @property
    def pending(self) -> int:
        """The number of nodes whose last transition the actors have not all carried out yet."""
        return len(self._quarantine.pending & self._registry.nodes.keys())

    def latest_transition(self, node: str) -> TransitionRecord | None:
        """The last transition of a node, with its outcome at each actor; None if there was none."""
        return self._quarantine.latest_transition(node)

    @property
    def service_changes(self) -> Mapping[ServiceState, int]:
        """How often a node has come to each service state since the start."""
        return self._states.changes

    def references(self) -> tuple[ReferenceRecord, ...]:
        """The operator's references, by number."""
        return self._references.records

    def baselines(self, node: str | None = None) -> list[BaselineView]:
        """The baselines by id, or those that the metrics of a node were last compared with."""
        return self._registry.baselines.views() if node is None else self._registry.baselines.of_node(node)

    @property
    def comparisons(self) -> int:
        """The numbers of baselines and fingerprints."""
        return len(self._registry.baselines)

    def view(self, now: float) -> FleetView:
        """The fleet as a whole."""
        return fleet_view(self.name, self._registry, self.load, now)

    def tally(self, now: float) -> Tally:
        """The numbers of its nodes."""
        return self._registry.counts.tally(now)

    def _restore_decisions(self, saved: StoredFleet, now: float) -> list[FleetCommand]:
        records = self._states.adopt(saved.quarantine)
        restored = quarantine.Restored(records=records, transitions=saved.transitions, fleet=saved.fleet_state)
        commands = self._decide(restored, now)
        self._registry.news.note_all(without={record.node for record in records if has_left_in_service(record)})
        return commands + self._pass_on_news(now)

    def _pass_on_news(self, now: float) -> list[FleetCommand]:
        """Passes the news about nodes since the last call to the quarantine."""
        return [command for event in self._registry.news.take() for command in self._decide(event, now)]

    def _decide(self, event: quarantine.QuarantineEvent, now: float) -> list[FleetCommand]:
        """Lets the quarantine decide, shows the result on nodes and in stories, and starts the tests it requests."""
        commands: list[FleetCommand] = []
        changed: dict[str, None] = {}
        for command in self._quarantine.handle(event, now):
            match command:
                case quarantine.SaveRecord(record=record):
                    changed[record.node] = None
                    commands += [command, *self._states.show(record, now)]
                case quarantine.SaveTransition(record=transition):
                    changed[transition.transition.node] = None
                    commands.append(command)
                case quarantine.Note():
                    commands.append(self._registry.story.append(command, now))
                case quarantine.SendAlarm(alarm=alarm):
                    commands += [command, events.Announce("alarm", alarm)]
                case quarantine.StartTest():
                    commands += self._tests.start(command, now)
                case _:
                    commands.append(command)
        cases = (self._quarantine.case_view(node) for node in changed if node in self._quarantine.records)
        return [*commands, *(events.Announce("case", case) for case in cases)]

    def _take_report(self, event: events.ReportEvent, now: float) -> list[FleetCommand]:
        if isinstance(event, ReportInvited):
            return self._reports.invite(event, now)
        if isinstance(event, events.ReportRepeated):
            return [*self._liveness.hear(event.node, self._orders.new_id(), now), *self._reports.repeat(event, now)]
        return [*self._liveness.hear(event.message.node, event.message.id, now), *self._reports.take(event, now)]

    def _learn(self, event: events.LearnedEvent, now: float) -> list[FleetCommand]:
        """Takes an event about a node other than a run, about the connection to the broker, or about our own load."""
        match event:
            case events.InventorySeen():
                return self._liveness.take_inventory(event, now)
            case events.LabelsSeen():
                return self._registry.label(event, now)
            case events.AgentMisbehaved(node, kind, detail):
                return self._registry.note_misconduct(node, kind, detail, self._orders.new_id(), now)
            case LoadSeen():
                return self._take_load(event, now)
            case events.LinkLost() | events.LinkCaughtUp() | events.LinkRestored() as link:
                self._liveness.take_link(event, now)
                return self._decide(quarantine.EvidenceOutdated(), now) if isinstance(link, events.LinkRestored) else []

    def _take_load(self, event: LoadSeen, now: float) -> list[FleetCommand]:
        """Takes how much the coordinator can take of what the agents send."""
        was_overloaded, self.load = self.load.is_overloaded, event.load
        self._reports.lag_s = event.load.lag_s
        self._liveness.take_load(event, now)
        return [] if self.load.is_overloaded == was_overloaded else [LogLoad(self.load)]

    def _tick(self, event: events.Ticked, now: float) -> list[FleetCommand]:
        self._registry.baselines.restore_some(DEVICES_AT_ONCE)
        commands = [*self._liveness.lose_silent(now), *self._registry.clear_misconduct(self._orders.new_id(), now)]
        commands += self._sweeps.tick(event, now)
        return [*commands, *self._decide(quarantine.TimePassed(), now)]

    def _forget(self, event: quarantine.NodeForgotten, now: float) -> list[FleetCommand]:
        """Forgets a node that a person removes; its story stays."""
        if event.node not in self._registry.nodes:
            raise Refused(unknown("node", event.node, self.names))
        self._sweeps.require_no_part(event.node)
        commands = self._decide(event, now)
        self._sweeps.forget(event.node)
        return [*commands, *self._registry.forget(event.node, now)]

    def _erase(self, event: events.RetentionEnded, now: float) -> list[FleetCommand]:
        """Deletes the nodes that are past retention."""
        commands: list[FleetCommand] = []
        gone = past_retention(self._quarantine.records.values(), event.before, event.left_before) - self._sweeps.nodes()
        for node in sorted(gone):
            commands += self._decide(quarantine.NodeErased(node=node), now)
            self._sweeps.forget(node)
            commands += self._registry.erase(node)
            self._reports.forget(node)
            self._quotas.forget(node)
        return commands

    def _grant(self, request: FleetRequest, now: float) -> list[FleetCommand]:
        """Carries out the request of a person."""
        match request:
            case events.RunRequested(run, node):
                commands = order_run(request, self._registry, self._orders, now)
                self._reports.note_ordered(run, node)
                return commands
            case events.SweepRequested():
                return self._sweeps.begin(request, now)
            case events.SweepAbortRequested(sweep, reason):
                return self._sweeps.abort(sweep, reason, now)
            case events.ReferenceSet(reference):
                require_use(reference, self._registry.nodes)
                return self._references.set(reference, now)
            case events.ReferenceRemoved(key):
                return self._references.remove(key, now)
            case events.BaselineReset(baseline):
                return self._registry.reset_baseline(baseline, self._orders.new_id(), now)
