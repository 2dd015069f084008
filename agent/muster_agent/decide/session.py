"""A node's part in one group, from the invitation to the end.

The rules of the machine:

- A session begins INVITED: it opens a port, for the case that it gets rank 0, and accepts with it (ACCEPTED).
- Prepare names its ranks and rank 0. It claims the lease (CLAIMING), proves that it can connect to rank 0, be it its
  own (REACHING), and spawns its ranks up to the rendezvous (SPAWNING). When all of them wait there it says so (READY).
  An impossible Prepare is declined instead (ENDED).
- Start lets them go (RUNNING). When all of them have ended, it reports what each says (ENDED).
- Every state has a deadline. Whatever ends a session early kills what it has spawned and waits for that (LEAVING);
  then its port is closed and its lease released. The coordinator is told why, unless it asked for it.
- An event that stands not in the table is late or repeated and changes nothing.

A check of scope NODE has no rendezvous: it is ready as soon as it has reached rank 0, and spawned by Start.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from muster.check import AnyCheck, Params, Scope
from muster.wire.messages import (
    Abort,
    Accepted,
    AnyGroupReply,
    Declined,
    Finished,
    Join,
    Prepare,
    Progress,
    Ready,
    Start,
)
from muster_agent.decide import events
from muster_agent.decide.events import (
    ClaimLease,
    ClosePort,
    Command,
    Overdue,
    Reach,
    ReleaseLease,
    Reply,
    ReportRun,
    StartRun,
    StopRequested,
    StopRun,
    Superseded,
)
from muster_agent.decide.lease import PATIENCE_S, RESERVING_PATIENCE_S, Denied, Granted, Preempted
from muster_agent.decide.orders import Order, Place, RanksReady, RunEnded, RunProgressed
from muster_agent.decide.placement import require_possible
from muster_agent.decide.plan import Unfit


class State(StrEnum):
    """How far a session has come."""

    INVITED = "INVITED"
    ACCEPTED = "ACCEPTED"
    CLAIMING = "CLAIMING"
    REACHING = "REACHING"
    SPAWNING = "SPAWNING"
    READY = "READY"
    RUNNING = "RUNNING"
    LEAVING = "LEAVING"
    ENDED = "ENDED"


SessionEvent = (
    (events.PortOpened | events.PortRefused | Prepare | events.Misplaced | Granted | Denied | Preempted)
    | (events.Reached | events.Unreachable | RanksReady | Start | RunProgressed | RunEnded)
    | (Abort | StopRequested | Superseded | Overdue)
)
SessionCommand = Command | ClaimLease | ReleaseLease

REACH_WITHIN_S = 5.0
PROGRESS_INTERVAL_S = 1.0

DEADLINES_S = {
    State.INVITED: 5.0,
    State.ACCEPTED: 30.0,
    State.CLAIMING: RESERVING_PATIENCE_S + PATIENCE_S + 3.0,
    State.REACHING: REACH_WITHIN_S + 3.0,
    State.SPAWNING: 90.0,
    State.READY: 90.0,
    State.LEAVING: 10.0,
}
"""Seconds that a session may stay in a state. RUNNING takes its own from the invitation."""

RUNNING_GRACE_S = 10.0
"""Beyond the run's timeout: first the runner ends its ranks and says so, and only if it does not, the session."""

_ON_THE_WAY: dict[tuple[State, type[SessionEvent]], State] = {
    (State.INVITED, events.PortOpened): State.ACCEPTED,
    (State.INVITED, events.PortRefused): State.ENDED,
    (State.ACCEPTED, Prepare): State.CLAIMING,
    (State.ACCEPTED, events.Misplaced): State.ENDED,
    (State.CLAIMING, Granted): State.REACHING,
    (State.CLAIMING, Denied): State.ENDED,
    (State.REACHING, events.Reached): State.SPAWNING,
    (State.REACHING, events.Unreachable): State.ENDED,
    (State.REACHING, Preempted): State.ENDED,
    (State.SPAWNING, RanksReady): State.READY,
    (State.SPAWNING, RunEnded): State.ENDED,
    (State.SPAWNING, Preempted): State.LEAVING,
    (State.READY, Start): State.RUNNING,
    (State.READY, RunEnded): State.ENDED,
    (State.READY, Preempted): State.LEAVING,
    (State.RUNNING, RunProgressed): State.RUNNING,
    (State.RUNNING, RunEnded): State.ENDED,
    (State.RUNNING, Preempted): State.LEAVING,
    (State.LEAVING, RunEnded): State.ENDED,
    (State.LEAVING, Overdue): State.ENDED,
}

_WITH_RANKS = (State.SPAWNING, State.READY, State.RUNNING)
_WITHOUT_RANKS = (State.INVITED, State.ACCEPTED, State.CLAIMING, State.REACHING)
_INTERRUPTIONS: tuple[type[SessionEvent], ...] = (Abort, StopRequested, Superseded, Overdue)

TRANSITIONS: dict[tuple[State, type[SessionEvent]], State] = {
    **_ON_THE_WAY,
    **{(state, event): State.ENDED for state in _WITHOUT_RANKS for event in _INTERRUPTIONS},
    **{(state, event): State.LEAVING for state in _WITH_RANKS for event in _INTERRUPTIONS},
}
"""From a state, by an event, to a state."""


class Session:
    """One node's part in one group. `run` is the id of its run there, `ranks` how many ranks it brings."""

    def __init__(
        self, node: str, join: Join, check: AnyCheck, params: Params, *, run: str, ranks: int, new_id: Callable[[], str]
    ) -> None:
        self.node = node
        self.group = join.group
        self.epoch = join.epoch
        self.check = check
        self.run = run
        self.state = State.INVITED
        self.deadline = 0.0
        self._params = params
        self._timeout_s = join.timeout_s
        self._ranks = ranks
        self._new_id = new_id
        self._address = ""
        self._prepare: Prepare | None = None
        self._progress_due = 0.0
        self.spawned = False
        self._let_go = False

    def begin(self, now: float) -> list[SessionCommand]:
        """What an invited member does first."""
        self._enter(State.INVITED, now)
        return [events.OpenPort(self.group)]

    def concerns(self, event: SessionEvent) -> bool:
        """Whether `event` is about this session and not about another group or another run."""
        match event:
            case Overdue() | Superseded() | StopRequested():
                return True
            case RunEnded(run):
                return run.id == self.run
            case Granted() | Denied() | Preempted() | RanksReady() | RunProgressed():
                return event.run == self.run
            case _:
                return event.group == self.group

    def handle(self, event: SessionEvent, now: float) -> list[SessionCommand]:
        """What follows from `event`, which must concern this session; nothing when its state does not expect it."""
        if isinstance(event, Prepare):
            event = self._checked(event)
        target = TRANSITIONS.get((self.state, type(event)))
        if target is None:
            return []
        if target is State.LEAVING and not self.spawned:
            target = State.ENDED
        before = self.state
        if target is not before:
            self._enter(target, now)
        return [*self._answer(event, before, now), *self._clear()]

    def _checked(self, prepare: Prepare) -> Prepare | events.Misplaced:
        """The Prepare itself, or the event that it is impossible."""
        try:
            require_possible(prepare, self._ranks, self._address)
        except Unfit as unfit:
            return events.Misplaced(self.group, unfit.reason, str(unfit))
        return prepare

    def _enter(self, state: State, now: float) -> None:
        self.state = state
        limit_s = DEADLINES_S.get(state, self._timeout_s + RUNNING_GRACE_S)
        self.deadline = now + limit_s

    def _clear(self) -> list[SessionCommand]:
        """What is left to do on the way out."""
        if self.state is State.LEAVING:
            return [StopRun(self.run, f"the node leaves group {self.group}")]
        if self.state is State.ENDED:
            return [ClosePort(self.group), ReleaseLease(self.run)]
        return []

    def _answer(self, event: SessionEvent, before: State, now: float) -> list[SessionCommand]:
        answer: list[SessionCommand]
        match event:
            case events.PortOpened(_, address, port):
                self._address = address
                answer = [self._reply(Accepted, now, address=address, port=port, ranks=self._ranks)]
            case Prepare():
                answer = self._claim(event)
            case Granted():
                answer = [self._reach()]
            case events.Reached():
                answer = self._gather(now)
            case RanksReady():
                answer = [self._reply(Ready, now)]
            case Start():
                answer = self._go()
            case RunProgressed(_, text):
                answer = self._progress(text, now)
            case RunEnded():
                answer = self._close(event, before, now)
            case _:
                answer = self._decline(event, before, now)
        return answer

    def _claim(self, prepare: Prepare) -> list[SessionCommand]:
        self._prepare = prepare
        not_needed: list[SessionCommand] = [ClosePort(self.group)] if prepare.first_rank else []
        return [*not_needed, ClaimLease(self.run, self.check.needs, f"{self.check.name} in group {self.group}")]

    def _progress(self, text: str, now: float) -> list[SessionCommand]:
        """Passes a sign of life on, though not every one of a check that gives many."""
        if now < self._progress_due:
            return []
        self._progress_due = now + PROGRESS_INTERVAL_S
        return [self._reply(Progress, now, text=text)]

    def _reach(self) -> Reach:
        assert self._prepare is not None
        return Reach(self.group, self._prepare.master_addr, self._prepare.master_port, REACH_WITHIN_S)

    def _gather(self, now: float) -> list[SessionCommand]:
        """Spawns the ranks up to their rendezvous, or goes past it where there is none."""
        if self.check.scope is Scope.GROUP:
            return [self._start()]
        self._enter(State.READY, now)
        return [self._reply(Ready, now)]

    def _go(self) -> list[SessionCommand]:
        self._let_go = True
        return [events.LetGo(self.run) if self.check.scope is Scope.GROUP else self._start()]

    def _start(self) -> StartRun:
        self.spawned = True
        order = Order(
            run=self.run,
            check=self.check,
            params=self._params,
            timeout_s=self._timeout_s,
            cause=self.group,
            group=self.group,
            places=self._places() if self.check.scope is Scope.GROUP else (),
        )
        return StartRun(order)

    def _places(self) -> tuple[Place, ...]:
        prepare = self._prepare
        assert prepare is not None
        return tuple(
            Place(
                rank=prepare.first_rank + local_rank,
                local_rank=local_rank,
                local_world_size=self._ranks,
                world_size=prepare.world_size,
                master_addr=prepare.master_addr,
                master_port=prepare.master_port,
            )
            for local_rank in range(self._ranks)
        )

    def _close(self, ended: RunEnded, before: State, now: float) -> list[SessionCommand]:
        """The run is over: because the session leaves, as it should be, or before it was let go."""
        if before is State.LEAVING:
            return [ReportRun(ended.run)] if self._let_go else []
        if before is State.RUNNING:
            return [ReportRun(ended.run), self._reply(Finished, now, ranks=ended.ranks)]
        detail = "; ".join(finding.summary for finding in ended.run.findings) or "its ranks ended before the start"
        return [ReportRun(ended.run), self._reply(Declined, now, reason="failed_to_start", detail=detail)]

    def _decline(self, event: SessionEvent, before: State, now: float) -> list[SessionCommand]:
        """Tells why the session ends early, unless the coordinator asked for that or is not in charge any more."""
        match event:
            case events.PortRefused(_, detail):
                reason = "failed_to_start"
            case events.Misplaced(_, reason, detail):
                pass
            case Denied(_, detail):
                reason = "not_idle"
            case events.Unreachable(_, detail):
                reason = "unreachable"
            case Preempted(_, detail):
                reason = "preempted"
            case StopRequested():
                reason, detail = "stopping", "the agent stops"
            case Overdue() if before is not State.LEAVING:
                reason, detail = "expired", f"it was {before} for longer than it may be"
            case _:
                return []
        return [self._reply(Declined, now, reason=reason, detail=detail)]

    def _reply(self, kind: type[AnyGroupReply], now: float, **said: Any) -> Reply:
        return Reply(kind(id=self._new_id(), sent_at=now, node=self.node, group=self.group, **said))
