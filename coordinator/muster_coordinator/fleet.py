"""The whole fleet as one machine: the nodes, the sweeps that run over them, and what people ask for.

`Fleet.handle` routes an event to the part that decides about it and joins what the parts answer. Nothing here takes
longer in a larger fleet, apart from what concerns all nodes of a sweep.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from muster.errors import Refused, unknown
from muster.model import Topology
from muster.wire.messages import Ack, AnyGroupReply, InventoryReport, Presence, Report, RunCheck
from muster_coordinator.counts import Counts
from muster_coordinator.events import (
    Announce,
    BaselineReset,
    Command,
    Event,
    GroupReplySeen,
    InventorySeen,
    LogNotBegun,
    PresenceSeen,
    ReferenceRemoved,
    ReferenceSet,
    ReportSeen,
    Request,
    RunRequested,
    SendAck,
    StoreRuns,
    SweepAbortRequested,
    SweepRequested,
    Ticked,
)
from muster_coordinator.intake import take
from muster_coordinator.orders import Orders
from muster_coordinator.records import BaselineView, FleetFinding, FleetView, NodeView, ReferenceRecord, Saved
from muster_coordinator.reference_book import ReferenceBook, require_use
from muster_coordinator.roster import Roster
from muster_coordinator.sweep_records import SweepRecord, SweepRequest
from muster_coordinator.sweeps.forecast import Forecast, forecast
from muster_coordinator.sweeps.group import CalledOff, GroupEvent, MemberLost
from muster_coordinator.sweeps.occupancy import Occupancy
from muster_coordinator.sweeps.planning import plan_again, plan_sweep
from muster_coordinator.sweeps.recovery import RESTARTED, AfterRestart, aborted, interrupted, release, saving
from muster_coordinator.sweeps.requests import check_run
from muster_coordinator.sweeps.sweep import Sweep
from muster_coordinator.sweeps.timetable import Due, PassedOver, Timetable

RUN_ORDER_TTL_S = 30.0
"""Who asks for a run now waits for it; an agent that was cut off for longer shall not start it unasked."""

ENDED_SWEEPS_KEPT = 100
"""Sweeps that have just ended are still answered from memory; older ones only by the store."""


class Fleet:
    """All nodes and all sweeps of the fleet `name`, under the leadership that `epoch` numbers."""

    def __init__(
        self,
        *,
        name: str,
        epoch: int,
        heartbeat_s: float = 10.0,
        declared: Mapping[str, Topology] = MappingProxyType({}),
        after_restart: AfterRestart = AfterRestart.RESUME,
        timetable: Timetable | None = None,
    ) -> None:
        self.name = name
        self.epoch = epoch
        self.counts = Counts()
        self._orders = Orders(epoch)
        self._roster = Roster(self._orders, heartbeat_s, declared)
        self._declared = declared
        self._after_restart = after_restart
        self._timetable = timetable or Timetable()
        self._references = ReferenceBook(self._orders)
        self._streams: dict[tuple[str, str], int] = {}
        self._sweeps: dict[str, Sweep] = {}
        self._ended: OrderedDict[str, SweepRecord] = OrderedDict()
        self._occupancy = Occupancy()
        self._unheard: set[str] = set()  # nodes of interrupted sweeps that have not been heard of since the start

    def restore(self, saved: Saved, now: float, past: Iterable[SweepRecord] = ()) -> list[Command]:
        """Takes over what is stored, and goes on after the `past` sweeps; to be called once, before anything else."""
        self._roster.baselines.restore(saved.baselines, saved.levels)
        commands = self._roster.restore(saved.nodes, saved.runs, now)
        self._streams = dict(saved.streams)
        commands += self._references.restore(saved.references, now)
        for record in saved.sweeps:
            commands += release(record, self._orders, now)
            commands += self._take_up(interrupted(record, now), now)
        self._timetable.resume(past, self._roster.nodes, now)
        return commands

    def handle(self, event: Event, now: float) -> list[Command]:
        """What is to be done about `event`; Refused when a request is not valid, and then nothing has changed."""
        match event:
            case ReportSeen(message):
                commands = self._take_report(message, now)
            case PresenceSeen(message):
                commands = self._note_presence(message, now)
            case GroupReplySeen(message):
                commands = self._take_reply(message, now)
            case InventorySeen(message):
                commands = self._note_inventory(message, now)
            case Ticked():
                commands = self._tick(event, now)
            case _:
                commands = self._grant(event, now)
        return [*commands, *self._form_groups(event, now)]

    def nodes(self, now: float) -> list[NodeView]:
        """Every node that was ever heard of, by name."""
        return [self._roster.view(node, now) for _, node in sorted(self._roster.nodes.items())]

    def node(self, name: str, now: float) -> NodeView | None:
        """One node; None when it was never heard of."""
        node = self._roster.nodes.get(name)
        return None if node is None else self._roster.view(node, now)

    def places(self, names: Iterable[str]) -> dict[str, Topology]:
        """Where these nodes stand, as far as they are known."""
        return {name: node.topology for name in names if (node := self._roster.nodes.get(name)) is not None}

    @property
    def running(self) -> int:
        """How many sweeps go on."""
        return len(self._sweeps)

    def sweeps(self) -> list[SweepRecord]:
        """The sweeps that run, as they stand."""
        return [sweep.record() for sweep in self._sweeps.values()]

    def sweep(self, id: str) -> SweepRecord | None:
        """A sweep that runs, with all its groups, or one that has ended lately, without them."""
        running = self._sweeps.get(id)
        return self._ended.get(id) if running is None else running.record()

    def forecast(self, request: SweepRequest) -> Forecast:
        """What a sweep would do and cost; Refused as the sweep would be."""
        return forecast(plan_sweep(SweepRequested("forecast", request), self._roster.nodes, self._declared))

    def references(self) -> tuple[ReferenceRecord, ...]:
        """The operator's references, by number."""
        return self._references.records

    def baselines(self) -> list[BaselineView]:
        """What the fleet is compared by, by id."""
        return self._roster.baselines.views()

    @property
    def comparisons(self) -> int:
        """How many baselines and fingerprints there are."""
        return len(self._roster.baselines)

    @property
    def findings(self) -> tuple[FleetFinding, ...]:
        """What is wrong with many nodes at once."""
        return self._roster.baselines.findings()

    def view(self, now: float) -> FleetView:
        """The fleet as a whole."""
        views = self.nodes(now)
        return FleetView(
            name=self.name,
            nodes=len(views),
            health=Counter(view.health for view in views),
            service=Counter(view.service for view in views),
            lost=tuple(view.name for view in views if view.lost),
            findings=self.findings,
        )

    def _take_report(self, message: Report, now: float) -> list[Command]:
        commands = self._hear(message.node, message.id, now)
        stream = (message.node, message.stream)
        intake = take(message, self._streams.get(stream, 0))
        self.counts.reports += 1
        self.counts.gaps += intake.gap
        self.counts.duplicates += intake.duplicates
        if intake.fresh:
            self.counts.runs += len(intake.fresh)
            self._streams[stream] = intake.through
            commands.append(StoreRuns(message.node, message.stream, intake.through, intake.fresh))
            for run in intake.fresh:
                commands += [Announce("run", run), *self._roster.add_run(run, now)]
        ack = Ack(
            id=self._orders.new_id(),
            sent_at=now,
            stream=message.stream,
            stored_through=intake.through,
            gap=intake.gap,
        )
        commands.append(SendAck(message.node, ack))
        return commands

    def _note_presence(self, message: Presence, now: float) -> list[Command]:
        if message.online:
            commands = self._hear(message.node, message.id, now)
            self._roster.nodes[message.node].note_presence(message)
            return commands
        node = self._roster.nodes.get(message.node)
        gone = node is None or not node.online
        return [] if gone else self._lose(message.node, "its agent has gone", message.id, now)

    def _note_inventory(self, message: InventoryReport, now: float) -> list[Command]:
        return [*self._hear(message.node, message.id, now), *self._roster.equip(message, now)]

    def _take_reply(self, message: AnyGroupReply, now: float) -> list[Command]:
        commands = self._hear(message.node, message.id, now)
        sweep = self._sweeps.get(message.group.rpartition("-")[0])  # a group's id is its sweep's with a number
        return commands if sweep is None else [*commands, *self._drive(sweep, message, now)]

    def _hear(self, name: str, cause: str, now: float) -> list[Command]:
        self._admit_again(name, now)
        if name not in self._roster.nodes:
            self._timetable.note_joined(name)
        return self._roster.hear(name, cause, now)

    def _admit_again(self, name: str, now: float) -> None:
        """Lets groups have a node again that had not been heard of since the start."""
        if name in self._unheard:
            self._unheard.discard(name)
            self._occupancy.release((name,), now)

    def _tick(self, event: Ticked, now: float) -> list[Command]:
        commands: list[Command] = []
        for name in self._roster.overdue(now):
            commands += self._lose(name, "its heartbeat has stopped", None, now)
        for sweep in list(self._sweeps.values()):
            commands += self._drive(sweep, event, now)
        return [*commands, *self._begin_due(now)]

    def _begin_due(self, now: float) -> list[Command]:
        """Begins the sweeps whose time has come, or says why they do not begin."""
        running = {sweep.plan.origin for sweep in self._sweeps.values()}
        due = self._timetable.tick(self._roster.nodes, running, now)
        return [command for it in due for command in self._begin_by_itself(it, now)]

    def _begin_by_itself(self, due: Due | PassedOver, now: float) -> list[Command]:
        if isinstance(due, Due):
            try:
                return self._begin_sweep(SweepRequested(self._orders.new_id(), due.request, due.origin), now)
            except Refused as refused:
                due = PassedOver(due.origin, str(refused))
        self.counts.sweeps_not_begun += 1
        return [LogNotBegun(due.origin, due.reason)]

    def _lose(self, name: str, text: str, cause: str | None, now: float) -> list[Command]:
        self._admit_again(name, now)
        commands = self._roster.lose(name, text, cause, now)
        for sweep in [sweep for sweep in self._sweeps.values() if sweep.concerns(name)]:
            commands += self._drive(sweep, MemberLost(name), now)
        return commands

    def _grant(self, request: Request, now: float) -> list[Command]:
        """Does what somebody asks for."""
        match request:
            case RunRequested():
                return self._request_run(request, now)
            case SweepRequested():
                return self._begin_sweep(request, now)
            case SweepAbortRequested(sweep, reason):
                return self._abort_sweep(sweep, reason, now)
            case ReferenceSet() | ReferenceRemoved():
                return self._change_references(request, now)
            case BaselineReset(baseline):
                return self._roster.reset_baseline(baseline, self._orders.new_id(), now)

    def _request_run(self, event: RunRequested, now: float) -> list[Command]:
        check_run(event, self._roster.nodes)
        content = {"run": event.run, "check": event.check, "params": event.params}
        order = self._orders.send(event.node, RunCheck, now, ttl_s=RUN_ORDER_TTL_S, cause=event.run, **content)
        return [self._roster.tell(event.node, "run_requested", f"asked to run {event.check}", event.run, now), order]

    def _begin_sweep(self, event: SweepRequested, now: float) -> list[Command]:
        if event.sweep in self._sweeps or event.sweep in self._ended:
            raise Refused(f"there is a sweep {event.sweep!r} already")
        plan = plan_sweep(event, self._roster.nodes, self._declared)
        sweep = self._sweeps[plan.id] = Sweep(plan, self._orders, self._occupancy, now)
        self._timetable.note_swept(plan.nodes)
        self.counts.sweeps += 1
        text = f"takes part in a sweep of {len(plan.nodes)} nodes with {plan.task.check}, strategy {plan.strategy}"
        told = [self._roster.tell(node, "sweep_begun", text, plan.id, now) for node in plan.nodes]
        return [*told, *sweep.begin(now), *self._settle(sweep, now)]

    def _take_up(self, record: SweepRecord, now: float) -> list[Command]:
        """Goes on with a sweep that the coordinator before this one had begun, or ends it."""
        try:
            plan = plan_again(record, self._roster.nodes)
        except Refused as refused:
            return self._close(aborted(record, now, f"{RESTARTED}: {refused}"), now)
        sweep = self._sweeps[plan.id] = Sweep(plan, self._orders, self._occupancy, now)
        sweep.take_up(record)
        resumes = self._after_restart is AfterRestart.RESUME
        commands = self._resume(sweep, now) if resumes else sweep.give_up(RESTARTED, now)
        return [*commands, *self._settle(sweep, now)]

    def _resume(self, sweep: Sweep, now: float) -> list[Command]:
        """Plans the next round, to be formed of nodes that have been heard of, and goes without those that are lost."""
        commands = sweep.begin(now)
        for node in sweep.plan.nodes:
            if self._roster.nodes[node].online:
                self._unheard.add(node)
                self._occupancy.take((node,), now)
            else:
                commands += sweep.handle(MemberLost(node), now)
        return commands

    def _form_groups(self, event: Event, now: float) -> list[Command]:
        """Lets the sweeps form what waits, the more urgent ones first, when nodes may have become free."""
        if not (self._occupancy.has_released or isinstance(event, Ticked | SweepRequested)):
            return []
        self._occupancy.new_turn()
        waiting = [sweep for sweep in self._sweeps.values() if sweep.is_waiting]
        waiting.sort(key=lambda sweep: -sweep.plan.priority)
        return [command for sweep in waiting for command in sweep.form(now)]

    def _abort_sweep(self, id: str, reason: str, now: float) -> list[Command]:
        if id in self._ended:
            return []
        if id not in self._sweeps:
            raise Refused(unknown("sweep", id, self._sweeps))
        return self._drive(self._sweeps[id], CalledOff(reason), now)

    def _change_references(self, event: ReferenceSet | ReferenceRemoved, now: float) -> list[Command]:
        if isinstance(event, ReferenceRemoved):
            return self._references.remove(event.key, now)
        require_use(event.reference, self._roster.nodes)
        return self._references.set(event.reference, now)

    def _drive(self, sweep: Sweep, event: GroupEvent, now: float) -> list[Command]:
        return [*sweep.handle(event, now), *self._settle(sweep, now)]

    def _settle(self, sweep: Sweep, now: float) -> list[Command]:
        """Draws the conclusions from a sweep that has ended."""
        if not sweep.is_over:
            return []
        del self._sweeps[sweep.plan.id]
        self.counts.groups += sweep.groups
        learned = self._roster.learn_leaves(sweep.pairs(), sweep.plan.id, now)
        return [*learned, *self._conclude(sweep.summary(), now)]

    def _close(self, record: SweepRecord, now: float) -> list[Command]:
        """Ends a sweep that cannot go on."""
        return [*saving(record), *self._conclude(record, now)]

    def _conclude(self, record: SweepRecord, now: float) -> list[Command]:
        self._ended[record.id] = record
        if len(self._ended) > ENDED_SWEEPS_KEPT:
            self._ended.popitem(last=False)
        return self._roster.take_findings(record, now)
