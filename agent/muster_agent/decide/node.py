"""All decisions of an agent: what runs when, for whom, and what this node does in a group.

`NodeAgent` composes the schedule (which background run is due), the lease (which run holds the node), the session (the
node's part in a group, one at a time) and the admission of commands. Its own rules:

- A newer epoch ends the group that an older coordinator formed.
- Background runs yield to groups and requests. If a requested run holds the node, the node declines a group as busy.
- A run that does not get the node is reported as SKIPPED. Without that report, silence would look like health.
- At most `MOST_RUNS` runs of this node alone run or wait. Above that, a requested run is refused as busy.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muster.check import AnyCheck, Needs, Params
from muster.model import Inventory, Run
from muster.wire.messages import Abort, AnyCommand, CoordinatorPresence, Declined, Join, Prepare, RunCheck, Start
from muster.wire.scheduled_runs import SCHEDULED
from muster_agent.decide import events
from muster_agent.decide.admission import CommandAdmission
from muster_agent.decide.events import (
    AgentCommand,
    AgentEvent,
    ClosePort,
    CountRefusal,
    ReleaseRanks,
    ReportRun,
    SendReply,
    StartRun,
    StopRun,
)
from muster_agent.decide.lease import (
    Lease,
    LeaseClaimed,
    LeaseCommand,
    LeaseDenied,
    LeaseGranted,
    LeaseOutcome,
    LeasePreempted,
    LeaseReleased,
    Precedence,
)
from muster_agent.decide.orders import Order, RanksReady, RunEnded
from muster_agent.decide.plan import CannotRun, PlannedCheck, count_ranks, find
from muster_agent.decide.schedule import CheckSchedule
from muster_agent.decide.session import GroupSession, SessionCommand, SessionEvent, SessionState
from muster_agent.decide.unmeasured import not_idle, refused

MOST_RUNS = 200
"""Runs that may run or wait at the same time. A few dozen checks need several each, and each run is a process."""


@dataclass(slots=True)
class _SingleRun:
    """A run on this node alone, from its claim to its end."""

    order: Order
    precedence: Precedence
    started: bool = False


class NodeAgent:
    """The agent's decisions. `new_id` returns unique ids; `now` is in seconds since the epoch.

    The first background runs are spread over `spread_s` seconds. `expected_gpus` is the number of devices that the
    operator expects, if set. `reserves` is true if a plugin can keep a scheduler off this node.
    """

    def __init__(
        self,
        name: str,
        plan: Mapping[str, PlannedCheck],
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
        self._schedule = CheckSchedule(name, plan, now, spread_s=spread_s)
        self._expected_gpus = expected_gpus
        self._lease = Lease(reserves=reserves)
        self._admission = CommandAdmission()
        self._runs: dict[str, _SingleRun] = {}
        self._session: GroupSession | None = None
        self._invitation: Join | None = None
        self._inventory: Inventory | None = None
        self._stopping = False

    @property
    def holder(self) -> str | None:
        """The run that holds the lease, if any."""
        return self._lease.holder

    @property
    def running(self) -> tuple[str, ...]:
        """The runs that are running, including the run of a group."""
        of_group = (self._session.run,) if self._session and self._session.spawned else ()
        return (*(run for run, single in self._runs.items() if single.started), *of_group)

    def next_due(self) -> float:
        """When the next DueTimeReached is needed."""
        session = self._session.deadline if self._session else math.inf
        schedule = self._schedule.next_due() if self._may_schedule else math.inf
        return min(schedule, session, self._lease.next_due())

    def handle(self, event: AgentEvent, now: float) -> list[AgentCommand]:
        """Applies an event and returns the commands that follow."""
        commands: list[AgentCommand] = []
        match event:
            case events.DueTimeReached():
                commands = self._tick(event, now)
            case events.CommandReceived(command):
                commands = self._obey(command, now)
            case events.CoordinatorSeen(message):
                commands = self._hear(message, now)
            case events.InventoryFound(inventory):
                self._inventory = inventory
            case events.WatchFired(check):
                self._schedule.hasten(check, now)
            case (
                events.IdlenessSeen()
                | events.NodeReserved()
                | events.ReservationFailed()
                | events.ReservationReleased()
            ):
                commands = self._apply_lease_outcomes(self._lease.handle(event, now), now)
            case events.StopRequested():
                commands = self._stop(event, now)
            case RunEnded(run) if run.id in self._runs:
                commands = self._end(run, now)
            case RanksReady(run) if run in self._runs:
                commands = [ReleaseRanks(run)]  # this node is the whole group, so there is no other node to wait for
            case _:
                commands = self._pass_to_session(event, now)
        return commands

    # Time

    @property
    def _may_schedule(self) -> bool:
        """Whether background runs may start. They need the devices, so none starts before the inventory is known."""
        return self._inventory is not None and not self._stopping

    def _tick(self, tick: events.DueTimeReached, now: float) -> list[AgentCommand]:
        commands = self._apply_lease_outcomes(self._lease.handle(tick, now), now)
        if self._session and now >= self._session.deadline:
            commands += self._pass_to_session(events.StateTimedOut(), now)
        for name in self._schedule.tick(now) if self._may_schedule else ():
            planned = self._plan[name]
            assert planned.params is not None, "a check with an interval has parameters"
            order = self._new_order(self._new_id(), planned.check, planned.params, SCHEDULED)
            commands += self._claim(order, Precedence.BACKGROUND, now)
        return commands

    def _stop(self, stop: events.StopRequested, now: float) -> list[AgentCommand]:
        self._stopping = True
        self._lease = Lease(reserves=False)  # no waiting claim gets the node; the daemon releases it
        self._runs = {run: single for run, single in self._runs.items() if single.started}
        commands: list[AgentCommand] = [StopRun(run, "the agent stops") for run in self._runs]
        return commands + self._pass_to_session(stop, now)

    # Presence and commands of the coordinator

    def _hear(self, presence: CoordinatorPresence, now: float) -> list[AgentCommand]:
        self._admission.heard(presence.sent_at, presence.epoch, now)
        if presence.epoch == self._admission.epoch:
            self._schedule.slow_down(presence.slowdown)
        return self._leave_old_group(now)

    def _leave_old_group(self, now: float) -> list[AgentCommand]:
        if self._session and self._session.epoch < self._admission.epoch:
            return self._pass_to_session(events.LeaderChanged(), now)
        return []

    def _obey(self, command: AnyCommand, now: float) -> list[AgentCommand]:
        refusal = self._admission.refusal(command, now)
        commands = self._leave_old_group(now)
        if refusal is None:
            return commands + self._carry_out(command, now)
        commands.append(refusal)
        if refusal.kind == "expired" and isinstance(command, Join | Prepare):
            commands.append(self._declined(command.group, "expired", refusal.detail, now))
        return commands

    def _carry_out(self, command: AnyCommand, now: float) -> list[AgentCommand]:
        match command:
            case RunCheck():
                return self._run_check(command, now)
            case Join():
                return self._join(command, now)
            case Prepare() | Start() | Abort():
                if self._session and self._session.group == command.group:
                    return self._pass_to_session(command, now)
                return self._refuse_unknown_group(command, now)

    def _refuse_unknown_group(self, command: Prepare | Start | Abort, now: float) -> list[AgentCommand]:
        """Refuses a command for a group that this node is not in, or is in no longer."""
        if self._invitation and self._invitation.group == command.group:
            self._invitation = None
        detail = f"{command.kind} for group {command.group}, which this node is not in"
        commands: list[AgentCommand] = [CountRefusal("unknown_group", detail)]
        if isinstance(command, Prepare):
            commands.append(self._declined(command.group, "expired", detail, now))
        return commands

    # Runs on this node alone

    def _run_check(self, command: RunCheck, now: float) -> list[AgentCommand]:
        if self._stopping:
            return [
                CountRefusal("stopping", f"run {command.run} of {command.check} was requested while the agent stops")
            ]
        if command.run in self._runs:
            return [CountRefusal("duplicate", f"run {command.run} is already running")]
        try:
            self._require_free_slot()
            check, params = find(self._plan, command.check, command.params)
        except CannotRun as unfit:
            return [ReportRun(refused(self.name, command, str(unfit), now))]
        return self._claim(self._new_order(command.run, check, params, command.cause), Precedence.REQUEST, now)

    def _require_free_slot(self) -> None:
        if len(self._runs) >= MOST_RUNS:
            raise CannotRun("busy", f"{MOST_RUNS} runs are running or waiting, which is the maximum; retry later")

    def _new_order(self, run: str, check: AnyCheck, params: Params, cause: str | None) -> Order:
        timeout_s = self._plan[check.name].timeout_s
        return Order(run=run, check=check, params=params, timeout_s=timeout_s, cause=cause)

    def _claim(self, order: Order, precedence: Precedence, now: float) -> list[AgentCommand]:
        self._runs[order.run] = _SingleRun(order, precedence)
        claimed = LeaseClaimed(order.run, order.check.needs, precedence, f"run {order.run} of {order.check.name}")
        return self._apply_lease_outcomes(self._lease.handle(claimed, now), now)

    def _apply_lease_outcomes(self, outcomes: list[LeaseOutcome], now: float) -> list[AgentCommand]:
        """Carries the lease's decisions over to the runs: start, stop or report as not run."""
        commands: list[AgentCommand] = []
        for outcome in outcomes:
            if isinstance(outcome, LeaseCommand):
                commands.append(outcome)
            elif outcome.run in self._runs:
                commands.append(self._settle_run(outcome, self._runs[outcome.run], now))
            else:
                commands += self._pass_to_session(outcome, now)
        return commands

    def _settle_run(
        self, outcome: LeaseGranted | LeaseDenied | LeasePreempted, single: _SingleRun, now: float
    ) -> AgentCommand:
        match outcome:
            case LeaseGranted():
                single.started = True
                return StartRun(single.order)
            case LeasePreempted(run, detail):
                return StopRun(run, detail)
            case LeaseDenied(run, detail):
                self._forget(run, now)
                return ReportRun(not_idle(self.name, single.order, detail, now))

    def _end(self, run: Run, now: float) -> list[AgentCommand]:
        self._forget(run.id, now)
        return [ReportRun(run), *self._apply_lease_outcomes(self._lease.handle(LeaseReleased(run.id), now), now)]

    def _forget(self, run: str, now: float) -> None:
        single = self._runs.pop(run)
        if single.precedence is Precedence.BACKGROUND:
            self._schedule.ended(single.order.check.name, now)

    # The node's part in a group

    def _join(self, join: Join, now: float) -> list[AgentCommand]:
        if self._session and self._session.group == join.group:
            return []
        if self._session and self._session.state is SessionState.LEAVING:
            self._invitation = join
            return []
        try:
            check, params = find(self._plan, join.check, join.params)
            ranks = count_ranks(check, join.devices, self._inventory, self._expected_gpus)
            self._must_be_free(check)
        except CannotRun as unfit:
            return [self._declined(join.group, unfit.reason, str(unfit), now)]
        run = self._new_id()
        self._session = GroupSession(self.name, join, check, params, run=run, ranks=ranks, new_id=self._new_id)
        return self._route(self._session.begin(now), now)

    def _must_be_free(self, check: AnyCheck) -> None:
        if self._stopping:
            raise CannotRun("stopping", "the agent stops")
        if self._session:
            raise CannotRun("busy", f"the node is in group {self._session.group}")
        for run, single in self._runs.items():
            requested = single.precedence is Precedence.REQUEST
            if requested and Needs.NOTHING not in (single.order.check.needs, check.needs):
                raise CannotRun("busy", f"requested run {run} of {single.order.check.name} holds the node")

    def _pass_to_session(self, event: SessionEvent, now: float) -> list[AgentCommand]:
        session = self._session
        if session is None or not session.concerns(event):
            return [ClosePort(event.group)] if isinstance(event, events.PortOpened) else []
        commands = session.handle(event, now)
        routed = self._route(commands, now)
        if session.state is SessionState.ENDED and session is self._session:
            self._session = None
            routed += self._open_invitation(now)
        return routed

    def _open_invitation(self, now: float) -> list[AgentCommand]:
        """Answers the invitation that waited until the node had left its last group."""
        invitation, self._invitation = self._invitation, None
        return self._join(invitation, now) if invitation else []

    def _route(self, commands: list[SessionCommand], now: float) -> list[AgentCommand]:
        """Passes a session's claims to the lease and returns all its other commands."""
        routed: list[AgentCommand] = []
        for command in commands:
            match command:
                case events.ClaimLease(run, needs, purpose):
                    claimed = LeaseClaimed(run, needs, Precedence.GROUP, purpose)
                    routed += self._apply_lease_outcomes(self._lease.handle(claimed, now), now)
                case events.ReleaseLease(run):
                    routed += self._apply_lease_outcomes(self._lease.handle(LeaseReleased(run), now), now)
                case _:
                    routed.append(command)
        return routed

    def _declined(self, group: str, reason: str, detail: str, now: float) -> SendReply:
        return SendReply(
            Declined(id=self._new_id(), sent_at=now, node=self.name, group=group, reason=reason, detail=detail)
        )
