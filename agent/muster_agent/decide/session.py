"""A node's part in one group, from the invitation to the end: a state machine with the table `TRANSITIONS`.

| State | What the node does | Next |
|---|---|---|
| INVITED | opens a port, because it may get rank 0 | ACCEPTED, and replies Accepted with the port |
| ACCEPTED | waits for Prepare with its ranks and the address of rank 0 | CLAIMING; ENDED if that is impossible |
| CLAIMING | claims the lease | REACHING; ENDED if the lease is denied |
| REACHING | connects to rank 0, also if rank 0 is its own | SPAWNING; ENDED if rank 0 is unreachable |
| SPAWNING | starts its ranks, which wait at the rendezvous | READY, leaves the port to rank 0 and replies Ready |
| READY | waits for Start | RUNNING |
| RUNNING | lets the ranks pass the rendezvous and reports progress | ENDED, and replies Finished |
| LEAVING | has ended early and waits until its ranks are dead | ENDED |
| ENDED | closes the port and releases the lease | |

Every state has a deadline. An abort, a stop of the agent, a new leader or a missed deadline end the session from any
state: through LEAVING if ranks were spawned, else at once. The node tells the coordinator why, unless the coordinator
asked for it.

Example: nodes a and b are invited. Both accept, a with port 41234. Prepare gives a the ranks 0 to 7 and b the ranks 8
to 15, with rank 0 at a:41234. b cannot connect within 5 s, declines as `unreachable`, and its ranks never start; the
coordinator aborts a, whose ranks wait at the rendezvous, and a is free again within a second.

An event that is not in the table is late or repeated, and changes nothing. A check of scope NODE has no rendezvous: the
node is READY as soon as it has reached rank 0, and Start starts the run.
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
    AgentCommand,
    ClaimLease,
    ClosePort,
    ConnectToRankZero,
    LeaderChanged,
    ReleaseLease,
    ReportRun,
    SendReply,
    StartRun,
    StateTimedOut,
    StopRequested,
    StopRun,
)
from muster_agent.decide.lease import PATIENCE_S, RESERVING_PATIENCE_S, LeaseDenied, LeaseGranted, LeasePreempted
from muster_agent.decide.orders import Order, RankPlace, RanksReady, RunEnded, RunProgressed
from muster_agent.decide.placement import require_possible
from muster_agent.decide.plan import CannotRun


class SessionState(StrEnum):
    """The states of a session; see the table above."""

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
    (events.PortOpened | events.PortRefused | Prepare | events.PlacementRefused)
    | (LeaseGranted | LeaseDenied | LeasePreempted | events.RankZeroReached | events.RankZeroUnreachable)
    | (RanksReady | Start | RunProgressed | RunEnded)
    | (Abort | StopRequested | LeaderChanged | StateTimedOut)
)
SessionCommand = AgentCommand | ClaimLease | ReleaseLease

REACH_WITHIN_S = 5.0
PROGRESS_INTERVAL_S = 1.0

DEADLINES_S = {
    SessionState.INVITED: 5.0,
    SessionState.ACCEPTED: 30.0,
    SessionState.CLAIMING: RESERVING_PATIENCE_S + PATIENCE_S + 3.0,
    SessionState.REACHING: REACH_WITHIN_S + 3.0,
    SessionState.SPAWNING: 90.0,
    SessionState.READY: 90.0,
    SessionState.LEAVING: 10.0,
}
"""Seconds that a session may stay in a state. The invitation gives the limit for RUNNING."""

RUNNING_GRACE_S = 10.0
"""Time after the run's own timeout. The runner ends its ranks at the timeout; the session only acts if that fails."""

# Not a table in text: a step is the type of an event, which has no name that a text could parse.
_ON_THE_WAY: dict[tuple[SessionState, type[SessionEvent]], SessionState] = {
    (SessionState.INVITED, events.PortOpened): SessionState.ACCEPTED,
    (SessionState.INVITED, events.PortRefused): SessionState.ENDED,
    (SessionState.ACCEPTED, Prepare): SessionState.CLAIMING,
    (SessionState.ACCEPTED, events.PlacementRefused): SessionState.ENDED,
    (SessionState.CLAIMING, LeaseGranted): SessionState.REACHING,
    (SessionState.CLAIMING, LeaseDenied): SessionState.ENDED,
    (SessionState.REACHING, events.RankZeroReached): SessionState.SPAWNING,
    (SessionState.REACHING, events.RankZeroUnreachable): SessionState.ENDED,
    (SessionState.REACHING, LeasePreempted): SessionState.ENDED,
    (SessionState.SPAWNING, RanksReady): SessionState.READY,
    (SessionState.SPAWNING, RunEnded): SessionState.ENDED,
    (SessionState.SPAWNING, LeasePreempted): SessionState.LEAVING,
    (SessionState.READY, Start): SessionState.RUNNING,
    (SessionState.READY, RunEnded): SessionState.ENDED,
    (SessionState.READY, LeasePreempted): SessionState.LEAVING,
    (SessionState.RUNNING, RunProgressed): SessionState.RUNNING,
    (SessionState.RUNNING, RunEnded): SessionState.ENDED,
    (SessionState.RUNNING, LeasePreempted): SessionState.LEAVING,
    (SessionState.LEAVING, RunEnded): SessionState.ENDED,
    (SessionState.LEAVING, StateTimedOut): SessionState.ENDED,
}

_WITH_RANKS = (SessionState.SPAWNING, SessionState.READY, SessionState.RUNNING)
_WITHOUT_RANKS = (SessionState.INVITED, SessionState.ACCEPTED, SessionState.CLAIMING, SessionState.REACHING)
_INTERRUPTIONS: tuple[type[SessionEvent], ...] = (Abort, StopRequested, LeaderChanged, StateTimedOut)

TRANSITIONS: dict[tuple[SessionState, type[SessionEvent]], SessionState] = {
    **_ON_THE_WAY,
    **{(state, event): SessionState.ENDED for state in _WITHOUT_RANKS for event in _INTERRUPTIONS},
    **{(state, event): SessionState.LEAVING for state in _WITH_RANKS for event in _INTERRUPTIONS},
}
"""The next state, by present state and event."""


class GroupSession:
    """One node's part in one group. `run` is the id of its run in the group, `ranks` the number of its ranks."""

    def __init__(
        self, node: str, join: Join, check: AnyCheck, params: Params, *, run: str, ranks: int, new_id: Callable[[], str]
    ) -> None:
        self.node = node
        self.group = join.group
        self.epoch = join.epoch
        self.check = check
        self.run = run
        self.state = SessionState.INVITED
        self.deadline = 0.0
        self._params = params
        self._timeout_s = join.timeout_s
        self._ranks = ranks
        self._new_id = new_id
        self._address = ""
        self._prepare: Prepare | None = None
        self._progress_due = 0.0
        self.spawned = False
        self._released = False

    def begin(self, now: float) -> list[SessionCommand]:
        """Enters INVITED and returns the first command."""
        self._enter(SessionState.INVITED, now)
        return [events.OpenPort(self.group)]

    def concerns(self, event: SessionEvent) -> bool:
        """Whether `event` is about this session, and not about another group or run."""
        match event:
            case StateTimedOut() | LeaderChanged() | StopRequested():
                return True
            case RunEnded(run):
                return run.id == self.run
            case LeaseGranted() | LeaseDenied() | LeasePreempted() | RanksReady() | RunProgressed():
                return event.run == self.run
            case _:
                return event.group == self.group

    def handle(self, event: SessionEvent, now: float) -> list[SessionCommand]:
        """Applies an event of this session and returns the commands; none if the state does not expect the event."""
        if isinstance(event, Prepare):
            event = self._checked(event)
        target = TRANSITIONS.get((self.state, type(event)))
        if target is None:
            return []
        if target is SessionState.LEAVING and not self.spawned:
            target = SessionState.ENDED
        before = self.state
        if target is not before:
            self._enter(target, now)
        return [*self._commands_for(event, before, now), *self._clean_up()]

    def _checked(self, prepare: Prepare) -> Prepare | events.PlacementRefused:
        """Returns the Prepare, or PlacementRefused if it is impossible."""
        try:
            require_possible(prepare, self._ranks, self._address)
        except CannotRun as unfit:
            return events.PlacementRefused(self.group, unfit.reason, str(unfit))
        return prepare

    def _enter(self, state: SessionState, now: float) -> None:
        self.state = state
        limit_s = DEADLINES_S.get(state, self._timeout_s + RUNNING_GRACE_S)
        self.deadline = now + limit_s

    def _clean_up(self) -> list[SessionCommand]:
        """The commands that clean up in LEAVING and ENDED."""
        if self.state is SessionState.LEAVING:
            return [StopRun(self.run, f"the node leaves group {self.group}")]
        if self.state is SessionState.ENDED:
            return [ClosePort(self.group), ReleaseLease(self.run)]
        return []

    def _commands_for(self, event: SessionEvent, before: SessionState, now: float) -> list[SessionCommand]:
        answer: list[SessionCommand]
        match event:
            case events.PortOpened(_, address, port):
                self._address = address
                place = {"address": address, "port": port, "ranks": self._ranks}
                answer = [self._reply(Accepted, now, **place, knows_secrets=True)]
            case Prepare():
                answer = self._claim_lease(event)
            case LeaseGranted():
                answer = [self._connect()]
            case events.RankZeroReached():
                answer = self._start_or_skip_rendezvous(now)
            case RanksReady():
                # The port first: once every member is ready, the ranks of the others may connect to rank 0.
                answer = [ClosePort(self.group), self._reply(Ready, now)]
            case Start():
                answer = self._release_ranks()
            case RunProgressed(_, text):
                answer = self._progress(text, now)
            case RunEnded():
                answer = self._report_end(event, before, now)
            case _:
                answer = self._decline(event, before, now)
        return answer

    def _claim_lease(self, prepare: Prepare) -> list[SessionCommand]:
        self._prepare = prepare
        not_needed: list[SessionCommand] = [ClosePort(self.group)] if prepare.first_rank else []
        return [*not_needed, ClaimLease(self.run, self.check.needs, f"{self.check.name} in group {self.group}")]

    def _progress(self, text: str, now: float) -> list[SessionCommand]:
        """Replies with progress, at most once a second."""
        if now < self._progress_due:
            return []
        self._progress_due = now + PROGRESS_INTERVAL_S
        return [self._reply(Progress, now, text=text)]

    def _connect(self) -> ConnectToRankZero:
        assert self._prepare is not None
        return ConnectToRankZero(self.group, self._prepare.master_addr, self._prepare.master_port, REACH_WITHIN_S)

    def _start_or_skip_rendezvous(self, now: float) -> list[SessionCommand]:
        """Starts the ranks, which wait at the rendezvous; a check of scope NODE has none and is ready at once."""
        if self.check.scope is Scope.GROUP:
            return [self._start()]
        self._enter(SessionState.READY, now)
        return [self._reply(Ready, now)]

    def _release_ranks(self) -> list[SessionCommand]:
        self._released = True
        return [events.ReleaseRanks(self.run) if self.check.scope is Scope.GROUP else self._start()]

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

    def _places(self) -> tuple[RankPlace, ...]:
        prepare = self._prepare
        assert prepare is not None
        return tuple(
            RankPlace(
                rank=prepare.first_rank + local_rank,
                local_rank=local_rank,
                local_world_size=self._ranks,
                world_size=prepare.world_size,
                master_addr=prepare.master_addr,
                master_port=prepare.master_port,
                secret=prepare.secret,
            )
            for local_rank in range(self._ranks)
        )

    def _report_end(self, ended: RunEnded, before: SessionState, now: float) -> list[SessionCommand]:
        """Reports a run that ended: after LEAVING, in RUNNING as it should, or before Start."""
        if before is SessionState.LEAVING:
            return [ReportRun(ended.run)] if self._released else []
        if before is SessionState.RUNNING:
            return [ReportRun(ended.run), self._reply(Finished, now, ranks=ended.ranks)]
        detail = "; ".join(finding.summary for finding in ended.run.findings) or "the ranks ended before Start"
        return [ReportRun(ended.run), self._reply(Declined, now, reason="failed_to_start", detail=detail)]

    def _decline(self, event: SessionEvent, before: SessionState, now: float) -> list[SessionCommand]:
        """Declines with the reason, unless the coordinator asked for the end or no longer leads."""
        match event:
            case events.PortRefused(_, detail):
                reason = "failed_to_start"
            case events.PlacementRefused(_, reason, detail):
                pass
            case LeaseDenied(_, detail):
                reason = "not_idle"
            case events.RankZeroUnreachable(_, detail):
                reason = "unreachable"
            case LeasePreempted(_, detail):
                reason = "preempted"
            case StopRequested():
                reason, detail = "stopping", "the agent stops"
            case StateTimedOut() if before is not SessionState.LEAVING:
                reason, detail = "expired", f"the node was {before} for longer than it may be"
            case _:
                return []
        return [self._reply(Declined, now, reason=reason, detail=detail)]

    def _reply(self, kind: type[AnyGroupReply], now: float, **said: Any) -> SendReply:
        return SendReply(kind(id=self._new_id(), sent_at=now, node=self.node, group=self.group, **said))
