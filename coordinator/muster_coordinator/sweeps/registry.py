"""All sweeps of the fleet: when they begin, how they share the nodes, and what follows when they end.

The groups of all sweeps take their nodes from one occupancy, the more urgent sweep first. After a restart, a node can
join a group once it has been heard.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from muster.errors import Refused, unknown
from muster.model import Topology
from muster.nouns import count
from muster.wire.messages import AnyGroupReply
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.evidence.sweep_results import SweepResults
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.counts import Counts
from muster_coordinator.model.events import FleetCommand, LogNotBegun, SweepRequested, Ticked
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.model.sweep_id import sweep_id
from muster_coordinator.model.sweep_records import BY_REQUEST, SweepRecord, SweepRequest
from muster_coordinator.sweeps.forecast import Forecast, forecast
from muster_coordinator.sweeps.group_events import CalledOff, GroupEvent, MemberDoubted, MemberLost
from muster_coordinator.sweeps.occupancy import Occupancy
from muster_coordinator.sweeps.plan import SweepPlan
from muster_coordinator.sweeps.planning import offered_checks, plan_again, plan_sweep
from muster_coordinator.sweeps.recovery import (
    RESTARTED,
    AfterRestart,
    aborted,
    interrupted,
    release_members,
    save_commands,
)
from muster_coordinator.sweeps.sweep import Sweep
from muster_coordinator.sweeps.sweep_history import SweepHistory
from muster_coordinator.sweeps.timetable import Due, SkippedSweep, Timetable

ENDED_SWEEPS_KEPT = 100
"""Number of ended sweeps that are kept in memory; the store has the older ones."""

MOST_REQUESTED = 100
"""Maximum number of requested sweeps that run or wait for nodes. Each takes memory, and time when nodes become free.

Others do not count: at most one sweep for each schedule and each tested node is unfinished.
"""


class SweepRegistry:
    """The sweeps over the nodes of `registry`; `declared` has the positions of nodes from the topology file."""

    def __init__(
        self,
        registry: NodeRegistry,
        orders: Orders,
        counts: Counts,
        *,
        declared: Mapping[str, Topology],
        after_restart: AfterRestart,
        timetable: Timetable,
    ) -> None:
        self.running: dict[str, Sweep] = {}
        self._registry = registry
        self._results = SweepResults(registry)
        self._orders = orders
        self._counts = counts
        self._declared = declared
        self._after_restart = after_restart
        self._timetable = timetable
        self._ended: OrderedDict[str, SweepRecord] = OrderedDict()
        self._history = SweepHistory()
        self._occupancy = Occupancy()
        self._unheard: set[str] = set()  # nodes that were online and have not been heard since the start

    def restore(self, saved: StoredFleet, past: Iterable[SweepRecord], now: float) -> list[FleetCommand]:
        """Resumes or ends the stored sweeps that are unfinished, and resumes the timetable after the `past` sweeps."""
        for record in saved.swept:
            self._history.note(record)
        self._unheard.update(name for name, node in self._registry.nodes.items() if node.online)
        self._occupancy.take(self._unheard, now)
        commands: list[FleetCommand] = []
        for record in saved.sweeps:
            commands += release_members(record, self._orders, now)
            commands += self._resume_or_end(interrupted(record, now), now)
        self._timetable.resume(past, self._registry.nodes, now)
        return commands

    def record(self, id: str) -> SweepRecord | None:
        """The record of a running sweep, with its groups, or of one that has ended lately, without them."""
        running = self.running.get(id)
        return self._ended.get(id) if running is None else running.record()

    @property
    def offered_checks(self) -> set[str]:
        """The checks that a sweep can measure with."""
        return offered_checks(self._registry.nodes.values())

    def forecast(self, request: SweepRequest) -> Forecast:
        """The forecast of a sweep. Raises Refused if the sweep would be refused."""
        return forecast(plan_sweep(SweepRequested("forecast", request), self._registry.nodes, self._declared))

    # Events

    def hear(self, node: str, now: float) -> None:
        """Notes a sign of life of a node, before the registry does."""
        self._admit_again(node, now)
        if node not in self._registry.nodes:
            self.note_joined(node)

    def note_joined(self, node: str) -> None:
        """Notes a node that is new."""
        self._timetable.note_joined(node)

    def lose(self, node: str, now: float) -> list[FleetCommand]:
        """Continues the sweeps without a lost node."""
        self._admit_again(node, now)
        concerned = [sweep for sweep in self.running.values() if sweep.concerns(node)]
        return [command for sweep in concerned for command in self._drive(sweep, MemberLost(node), now)]

    def doubt(self, node: str, until: float, now: float) -> list[FleetCommand]:
        """Notes that a node may be lost, and that this is known at `until`."""
        concerned = [sweep for sweep in self.running.values() if sweep.concerns(node)]
        return [command for sweep in concerned for command in self._drive(sweep, MemberDoubted(node, until), now)]

    def nodes(self) -> set[str]:
        """The nodes of all running sweeps."""
        return {node for sweep in self.running.values() for node in sweep.plan.nodes}

    def require_no_part(self, node: str) -> None:
        """Raises Refused while the node is part of a running sweep."""
        for sweep in self.running.values():
            if node in sweep.plan.nodes:
                raise Refused(f"{node} is part of sweep {sweep.plan.id}: wait until that has ended, or abort it")

    def forget(self, node: str) -> None:
        """Forgets a node that has left."""
        self._timetable.note_swept((node,))

    def take_reply(self, message: AnyGroupReply, now: float) -> list[FleetCommand]:
        """Takes what a member reports about its group."""
        # The id of a group is the id of its sweep plus a number.
        sweep = self.running.get(message.group.rpartition("-")[0])
        return [] if sweep is None else self._drive(sweep, message, now)

    def tick(self, event: Ticked, now: float) -> list[FleetCommand]:
        """Checks the deadlines of every sweep, and begins sweeps that are due."""
        commands = [command for sweep in [*self.running.values()] for command in self._drive(sweep, event, now)]
        return [*commands, *self._begin_due(now)]

    @property
    def has_freed_nodes(self) -> bool:
        """Whether nodes have become free since `form_groups` was called last."""
        return self._occupancy.has_released

    def form_groups(self, now: float) -> list[FleetCommand]:
        """Forms the waiting groups whose nodes are free, the more urgent sweeps first."""
        self._occupancy.new_turn()
        waiting = [sweep for sweep in self.running.values() if sweep.is_waiting]
        waiting.sort(key=lambda sweep: -sweep.plan.priority)
        return [command for sweep in waiting for command in sweep.form(now)]

    # Requests

    def begin(self, event: SweepRequested, now: float) -> list[FleetCommand]:
        """Begins a sweep. Raises Refused if the request is not valid."""
        if event.sweep in self.running or event.sweep in self._ended:
            raise Refused(f"there is a sweep {event.sweep!r} already")
        requested = sum(sweep.plan.origin == BY_REQUEST for sweep in self.running.values())
        if event.origin == BY_REQUEST and requested >= MOST_REQUESTED:
            raise Refused(f"{requested} sweeps have not ended yet: wait until one ends, or abort one")
        plan = self._after_history(plan_sweep(event, self._registry.nodes, self._declared), now)
        sweep = self.running[plan.id] = Sweep(plan, self._orders, self._occupancy, now)
        self._timetable.note_swept(plan.nodes)
        self._counts.sweeps += 1
        nodes = count(len(plan.nodes), "node")
        text = f"takes part in a sweep of {nodes} with {plan.task.check}, strategy {plan.strategy}"
        entries = [self._registry.story.tell(node, "sweep_begun", text, plan.id, now) for node in plan.nodes]
        return [*entries, *sweep.begin(now), *self._settle(sweep, now)]

    def abort(self, id: str, reason: str, now: float) -> list[FleetCommand]:
        """Ends a sweep. Nothing happens if it has ended. Raises Refused if there is no such sweep."""
        if id in self._ended:
            return []
        if id not in self.running:
            raise Refused(unknown("sweep", id, self.running))
        return self._drive(self.running[id], CalledOff(reason), now)

    # Sweeps without a request

    def _begin_due(self, now: float) -> list[FleetCommand]:
        """Begins the sweeps that are due, or logs why they do not begin."""
        running = {sweep.plan.origin for sweep in self.running.values()}
        due = self._timetable.tick(self._registry.nodes, running, now)
        return [command for entry in due for command in self._begin_by_itself(entry, now)]

    def _begin_by_itself(self, due: Due | SkippedSweep, now: float) -> list[FleetCommand]:
        if isinstance(due, Due):
            try:
                return self.begin(SweepRequested(sweep_id(self._orders.new_id()), due.request, due.origin), now)
            except Refused as refused:
                due = SkippedSweep(due.origin, str(refused))
        self._counts.sweeps_not_begun += 1
        return [LogNotBegun(due.origin, due.reason)]

    def _resume_or_end(self, record: SweepRecord, now: float) -> list[FleetCommand]:
        """Resumes a sweep of an earlier coordinator, or ends it."""
        try:
            plan = self._after_history(plan_again(record, self._registry.nodes), now)
        except Refused as refused:
            ended = aborted(record, now, f"{RESTARTED}: {refused}")
            return [*save_commands(ended), *self._conclude(ended, now)]
        sweep = self.running[plan.id] = Sweep(plan, self._orders, self._occupancy, now)
        sweep.restore(record)
        resumes = self._after_restart is AfterRestart.RESUME
        commands = self._resume(sweep, now) if resumes else sweep.give_up(RESTARTED, now)
        return [*commands, *self._settle(sweep, now)]

    def _after_history(self, plan: SweepPlan, now: float) -> SweepPlan:
        """The plan with what ended sweeps and background checks know about its nodes, for the strategy that uses it."""
        if plan.strategy is not Strategy.ADAPTIVE:
            return plan
        nodes = (self._registry.nodes[name] for name in plan.nodes)
        return replace(plan, prior=self._history.prior(plan.task.check, nodes, now))

    def _resume(self, sweep: Sweep, now: float) -> list[FleetCommand]:
        """Plans the next round without the nodes that are lost."""
        commands = sweep.begin(now)
        for node in sweep.plan.nodes:
            if not self._registry.nodes[node].online:
                commands += sweep.handle(MemberLost(node), now)
        return commands

    def _admit_again(self, node: str, now: float) -> None:
        """Frees a node for groups when it is heard for the first time since the start."""
        if node in self._unheard:
            self._unheard.discard(node)
            self._occupancy.release((node,), now)

    def _drive(self, sweep: Sweep, event: GroupEvent, now: float) -> list[FleetCommand]:
        return [*sweep.handle(event, now), *self._settle(sweep, now)]

    def _settle(self, sweep: Sweep, now: float) -> list[FleetCommand]:
        """Removes a sweep that has ended, and passes on its findings."""
        if not sweep.is_over:
            return []
        del self.running[sweep.plan.id]
        self._counts.groups += sweep.groups
        learned = self._results.learn_leaves(sweep.pairs(), sweep.plan.id, now)
        return [*learned, *self._conclude(sweep.summary(), now)]

    def _conclude(self, record: SweepRecord, now: float) -> list[FleetCommand]:
        self._ended[record.id] = record
        self._history.note(record)
        if len(self._ended) > ENDED_SWEEPS_KEPT:
            self._ended.popitem(last=False)
        for name in record.tested_nodes:
            self._registry.counts.note_tested(self._registry.nodes[name], now)
        return self._results.take(record, now)
