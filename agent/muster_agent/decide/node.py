"""All decisions of an agent: what runs when, for whom, and what this node does in a group.

It composes the schedule (what is due), the lease (who may hold the node) and the session (the node's part in a group;
one at a time). Its own rules:

- An order is carried out once, not after it has expired, and not for a coordinator with an older epoch than one seen.
- A newer epoch ends the group that an older one formed.
- Background runs yield to groups and requests; a requested run that holds the node makes it decline a group as busy.
- A run that does not get the node is reported as SKIPPED, so that nobody takes silence for health.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muster.check import AnyCheck, Needs, Params
from muster.model import Inventory, Run
from muster.wire.messages import Abort, AnyCommand, Declined, Join, Prepare, RunCheck, Start
from muster_agent.decide import events
from muster_agent.decide.admission import Admission
from muster_agent.decide.events import ClosePort, Command, Event, LetGo, Refuse, Reply, ReportRun, StartRun, StopRun
from muster_agent.decide.lease import (
    Claimed,
    Denied,
    Granted,
    Lease,
    LeaseCommand,
    Outcome,
    Precedence,
    Preempted,
    Released,
)
from muster_agent.decide.orders import Order, RanksReady, RunEnded
from muster_agent.decide.plan import Planned, Unfit, count_ranks, find
from muster_agent.decide.schedule import Schedule
from muster_agent.decide.session import Session, SessionCommand, SessionEvent, State
from muster_agent.decide.unmeasured import not_idle, refused

MOST_TASKS = 200
"""Runs that may run or wait at the same time: several of each of a few dozen checks. Each run is a process."""

SCHEDULED = "schedule"
"""The cause of background runs."""


@dataclass(slots=True)
class _Task:
    """A run on this node alone, from its claim to its end."""

    order: Order
    precedence: Precedence
    started: bool = False


class Node:
    """The agent's decisions. `new_id` gives ids that nothing else has; `now` is in seconds since the epoch.

    First background runs are spread over `spread_s` seconds. `expected_gpus` is how many devices there have to be, if
    that was said; `reserves` says whether there are reservations to be made here.
    """

    def __init__(
        self,
        name: str,
        plan: Mapping[str, Planned],
        new_id: Callable[[], str],
        now: float,
        *,
        spread_s: float,
        expected_gpus: int | None = None,
        reserves: bool = False,
    ) -> None:
        self.name = name
        self._plan = plan
        self._new_id = new_id
        self._schedule = Schedule(name, plan, now, spread_s=spread_s)
        self._expected_gpus = expected_gpus
        self._lease = Lease(reserves=reserves)
        self._admission = Admission()
        self._tasks: dict[str, _Task] = {}
        self._session: Session | None = None
        self._invitation: Join | None = None
        self._inventory: Inventory | None = None
        self._stopping = False

    @property
    def holder(self) -> str | None:
        """The run that holds the lease, if any."""
        return self._lease.holder

    @property
    def running(self) -> tuple[str, ...]:
        """The runs that go on, a group's included."""
        of_group = (self._session.run,) if self._session and self._session.spawned else ()
        return (*(run for run, task in self._tasks.items() if task.started), *of_group)

    def next_due(self) -> float:
        """When the next Ticked is needed."""
        session = self._session.deadline if self._session else math.inf
        schedule = self._schedule.next_due() if self._schedules else math.inf
        return min(schedule, session, self._lease.next_due())

    def handle(self, event: Event, now: float) -> list[Command]:
        """What follows from `event`."""
        commands: list[Command] = []
        match event:
            case events.Ticked():
                commands = self._tick(event, now)
            case events.CommandReceived(command):
                commands = self._obey(command, now)
            case events.CoordinatorSeen(message):
                self._admission.heard(message.sent_at, message.epoch, now)
                commands = self._leave_old_group(now)
            case events.InventoryFound(inventory):
                self._inventory = inventory
            case events.Alerted(check):
                self._schedule.hasten(check, now)
            case events.IdlenessSeen() | events.Reserved() | events.NotReserved() | events.GivenBack():
                commands = self._settle(self._lease.handle(event, now), now)
            case events.StopRequested():
                commands = self._stop(event, now)
            case RunEnded(run) if run.id in self._tasks:
                commands = self._end(run, now)
            case RanksReady(run) if run in self._tasks:
                commands = [LetGo(run)]  # a group of this node alone waits for nobody
            case _:
                commands = self._tell_session(event, now)
        return commands

    # Time

    @property
    def _schedules(self) -> bool:
        """Checks are told the devices, so none runs in the background before these are known."""
        return self._inventory is not None and not self._stopping

    def _tick(self, tick: events.Ticked, now: float) -> list[Command]:
        commands = self._settle(self._lease.handle(tick, now), now)
        if self._session and now >= self._session.deadline:
            commands += self._tell_session(events.Overdue(), now)
        for name in self._schedule.tick(now) if self._schedules else ():
            planned = self._plan[name]
            assert planned.params is not None, "what has an interval has parameters"
            order = self._order(self._new_id(), planned.check, planned.params, SCHEDULED)
            commands += self._claim(order, Precedence.BACKGROUND, now)
        return commands

    def _stop(self, stop: events.StopRequested, now: float) -> list[Command]:
        self._stopping = True
        self._lease = Lease(reserves=False)  # who waited for the node gets it no more; the daemon gives it back
        self._tasks = {run: task for run, task in self._tasks.items() if task.started}
        commands: list[Command] = [StopRun(run, "the agent stops") for run in self._tasks]
        return commands + self._tell_session(stop, now)

    # Orders

    def _leave_old_group(self, now: float) -> list[Command]:
        if self._session and self._session.epoch < self._admission.epoch:
            return self._tell_session(events.Superseded(), now)
        return []

    def _obey(self, command: AnyCommand, now: float) -> list[Command]:
        refusal = self._admission.refuse(command, now)
        commands = self._leave_old_group(now)
        if refusal is None:
            return commands + self._carry_out(command, now)
        commands.append(refusal)
        if refusal.kind == "expired" and isinstance(command, Join | Prepare):
            commands.append(self._declined(command.group, "expired", refusal.detail, now))
        return commands

    def _carry_out(self, command: AnyCommand, now: float) -> list[Command]:
        match command:
            case RunCheck():
                return self._run_check(command, now)
            case Join():
                return self._join(command, now)
            case Prepare() | Start() | Abort():
                if self._session and self._session.group == command.group:
                    return self._tell_session(command, now)
                return self._disown(command, now)

    def _disown(self, command: Prepare | Start | Abort, now: float) -> list[Command]:
        """An order for a group that this node is not in: not yet, or no longer."""
        if self._invitation and self._invitation.group == command.group:
            self._invitation = None
        detail = f"{command.kind} for group {command.group}, which this node is not in"
        commands: list[Command] = [Refuse("unknown_group", detail)]
        if isinstance(command, Prepare):
            commands.append(self._declined(command.group, "expired", detail, now))
        return commands

    # Runs on this node alone

    def _run_check(self, command: RunCheck, now: float) -> list[Command]:
        if self._stopping:
            return [Refuse("stopping", f"run {command.run} of {command.check} was asked for while the agent stops")]
        if command.run in self._tasks:
            return [Refuse("duplicate", f"run {command.run} goes on already")]
        try:
            self._require_room()
            check, params = find(self._plan, command.check, command.params)
        except Unfit as unfit:
            return [ReportRun(refused(self.name, command, str(unfit), now))]
        return self._claim(self._order(command.run, check, params, command.cause), Precedence.REQUEST, now)

    def _require_room(self) -> None:
        if len(self._tasks) >= MOST_TASKS:
            raise Unfit("busy", f"{MOST_TASKS} runs are running or waiting already, which is the maximum; retry later")

    def _order(self, run: str, check: AnyCheck, params: Params, cause: str | None) -> Order:
        timeout_s = self._plan[check.name].timeout_s
        return Order(run=run, check=check, params=params, timeout_s=timeout_s, cause=cause)

    def _claim(self, order: Order, precedence: Precedence, now: float) -> list[Command]:
        self._tasks[order.run] = _Task(order, precedence)
        claimed = Claimed(order.run, order.check.needs, precedence, f"run {order.run} of {order.check.name}")
        return self._settle(self._lease.handle(claimed, now), now)

    def _settle(self, outcomes: list[Outcome], now: float) -> list[Command]:
        """Turns what the lease decided into what happens to the runs."""
        commands: list[Command] = []
        for outcome in outcomes:
            if isinstance(outcome, LeaseCommand):
                commands.append(outcome)
            elif outcome.run in self._tasks:
                commands.append(self._settle_task(outcome, self._tasks[outcome.run], now))
            else:
                commands += self._tell_session(outcome, now)
        return commands

    def _settle_task(self, outcome: Granted | Denied | Preempted, task: _Task, now: float) -> Command:
        match outcome:
            case Granted():
                task.started = True
                return StartRun(task.order)
            case Preempted(run, detail):
                return StopRun(run, detail)
            case Denied(run, detail):
                self._forget(run, now)
                return ReportRun(not_idle(self.name, task.order, detail, now))

    def _end(self, run: Run, now: float) -> list[Command]:
        self._forget(run.id, now)
        return [ReportRun(run), *self._settle(self._lease.handle(Released(run.id), now), now)]

    def _forget(self, run: str, now: float) -> None:
        task = self._tasks.pop(run)
        if task.precedence is Precedence.BACKGROUND:
            self._schedule.ended(task.order.check.name, now)

    # The node's part in a group

    def _join(self, join: Join, now: float) -> list[Command]:
        if self._session and self._session.group == join.group:
            return []
        if self._session and self._session.state is State.LEAVING:
            self._invitation = join
            return []
        try:
            check, params = find(self._plan, join.check, join.params)
            ranks = count_ranks(check, join.devices, self._inventory, self._expected_gpus)
            self._must_be_free(check)
        except Unfit as unfit:
            return [self._declined(join.group, unfit.reason, str(unfit), now)]
        run = self._new_id()
        self._session = Session(self.name, join, check, params, run=run, ranks=ranks, new_id=self._new_id)
        return self._route(self._session.begin(now), now)

    def _must_be_free(self, check: AnyCheck) -> None:
        if self._stopping:
            raise Unfit("stopping", "the agent stops")
        if self._session:
            raise Unfit("busy", f"the node is in group {self._session.group}")
        for run, task in self._tasks.items():
            requested = task.precedence is Precedence.REQUEST
            if requested and Needs.NOTHING not in (task.order.check.needs, check.needs):
                raise Unfit("busy", f"run {run} of {task.order.check.name} was asked for and holds the node")

    def _tell_session(self, event: SessionEvent, now: float) -> list[Command]:
        session = self._session
        if session is None or not session.concerns(event):
            return [ClosePort(event.group)] if isinstance(event, events.PortOpened) else []
        commands = session.handle(event, now)
        routed = self._route(commands, now)
        if session.state is State.ENDED and session is self._session:
            self._session = None
            routed += self._open_invitation(now)
        return routed

    def _open_invitation(self, now: float) -> list[Command]:
        """Answers the group that has waited until the one before was left."""
        invitation, self._invitation = self._invitation, None
        return self._join(invitation, now) if invitation else []

    def _route(self, commands: list[SessionCommand], now: float) -> list[Command]:
        """Hands a session's claims to the lease and everything else on."""
        routed: list[Command] = []
        for command in commands:
            match command:
                case events.ClaimLease(run, needs, purpose):
                    claimed = Claimed(run, needs, Precedence.GROUP, purpose)
                    routed += self._settle(self._lease.handle(claimed, now), now)
                case events.ReleaseLease(run):
                    routed += self._settle(self._lease.handle(Released(run), now), now)
                case _:
                    routed.append(command)
        return routed

    def _declined(self, group: str, reason: str, detail: str, now: float) -> Reply:
        return Reply(
            Declined(id=self._new_id(), sent_at=now, node=self.name, group=group, reason=reason, detail=detail)
        )
