"""One group's life, from invitation to release.

    FORMING   every member is invited (Join) and answers with its number of ranks and its address
    ELECTED   ranks are given in the order of the members, which is topology order; the first member has rank 0 and
              the others connect to it; every member takes its lease and spawns its ranks (Prepare)
    READY     every member has reported that it is ready and was told to start (Start)
    RUNNING   a member has shown a sign of life since; each member reports for itself
    ENDED     nothing changes any more; members that have not reported were told to leave (Abort)

A message of a member is first noted as a fact about that member. When the facts of all members mean something for the
group, they make a step, and TRANSITIONS says where it leads. A state ignores every other message: late, repeated,
reordered, or from a stranger. A member that repeats an answer gets the order again that followed it. Handling an event
takes O(members).

Rank election. The members are in topology order, so neighbours get neighbouring ranks and rings cross few switches.
Each member gets consecutive ranks, as many as it accepted with. Example: a and b accept with 8 ranks each, c with 4. a
gets the ranks 0 to 7, b 8 to 15, c 16 to 19, the world size is 20, and all connect to the address of a.

No message of one member may cost the others more than this group. A member has at most as many ranks as it has
announced devices, because every rank allocates memory for each rank of the group: two billion ranks would exhaust the
memory of every node. When rank 0 reports a loopback address and not all members do, the group ends before any member
connects.

Before the ranks run, a fault ends the group at once and frees the others. Once they run, a member whose ranks ended
without a result starts a short grace period, in which the others may still report their results.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.model import Verdict
from muster.wire.messages import (
    Abort,
    Accepted,
    Declined,
    Finished,
    Join,
    Prepare,
    Progress,
    Ready,
    Start,
)
from muster_coordinator.model.events import FleetCommand, SendCommand, Ticked
from muster_coordinator.model.orders import Orders, OrderT
from muster_coordinator.model.sweep_records import Blame, Ending, GroupRecord, GroupState
from muster_coordinator.sweeps.formation import GroupTask
from muster_coordinator.sweeps.group_events import CalledOff, GroupEvent, MemberDoubted, MemberLost
from muster_coordinator.sweeps.group_table import TRANSITIONS, GroupStep
from muster_coordinator.sweeps.member import (
    DECLINED_OTHERWISE,
    LOST,
    SILENT,
    TOO_MANY_RANKS,
    UNREACHABLE,
    GroupMember,
    gravest,
    is_own_host,
    verdict_of,
)

FORMING_S = 10.0
"""How long members may take to answer an invitation. Agents answer at once, and brokers rarely pause for longer.

The time to store the groups and to send hundreds of invitations is included. When the coordinator is late with that,
it postpones the deadline.
"""

MOST_POSTPONED_S = 60.0
"""How long a group waits for a coordinator that is late itself. A busy disk takes up to a minute."""

PREPARING_S = 60.0
"""Importing torch from a cold network disk takes most of a minute."""

RUN_GRACE_S = 5.0
"""Time after the check's timeout, at which the agent kills its ranks, until its report must have arrived."""

ABORT_GRACE_S = 2.0
"""How long others may still report after the first fault, and how long a member needs to kill its ranks."""

RELEASE_TTL_S = 300.0
"""How long an Abort is valid. A member that was cut off may hold the group for that long."""


@dataclass(slots=True)
class Group:
    """One group. `members` are in rank order, `reasons` say why it was formed, and `by_rail` how its ranks exchange.

    `most_ranks` is the highest number of ranks of each member; a member without an entry has one.
    """

    id: str
    task: GroupTask
    members: tuple[str, ...]
    reasons: tuple[str, ...]
    orders: Orders
    started_at: float
    by_rail: bool = False
    most_ranks: Mapping[str, int] = field(default_factory=dict)
    state: GroupState = field(default=GroupState.FORMING, init=False)
    ending: Ending | None = field(default=None, init=False)
    ended_at: float | None = field(default=None, init=False)
    blamed: tuple[Blame, ...] = field(default=(), init=False)
    world_size: int = field(default=0, init=False)
    deadline: float = field(init=False)
    postponed_s: float = field(default=0.0, init=False)
    facts: dict[str, GroupMember] = field(init=False)

    def __post_init__(self) -> None:
        self.facts = {node: GroupMember(node) for node in self.members}
        self.deadline = self.started_at + FORMING_S

    def begin(self) -> list[FleetCommand]:
        """The invitations."""
        params = {**self.task.params, "by_rail": True} if self.by_rail else self.task.params
        content = {"check": self.task.check, "params": params, "timeout_s": self.task.timeout_s}
        ttl_s = FORMING_S + MOST_POSTPONED_S  # the coordinator may be late with sending them
        return [self._order(node, Join, self.started_at, ttl_s, **content) for node in self.members]

    def handle(self, event: GroupEvent, now: float) -> list[FleetCommand]:
        """The commands that follow from `event`."""
        if (order := self._missed_order(event, now)) is not None:
            return [order]
        step = self._note(event, now) if self.state is not GroupState.ENDED else None
        return [] if step is None else self._take(step, now)

    @property
    def verdict(self) -> Verdict | None:
        """None until the group has ended."""
        return verdict_of((member.verdict for member in self.facts.values()), self.ending)

    @property
    def objective(self) -> float | None:
        """The lowest value of the task's metric that any member measured."""
        if (metric := self.task.objective) is None:
            return None
        return min((v for m in self.facts.values() if (v := m.least(metric)) is not None), default=None)

    def record(self) -> GroupRecord:
        return GroupRecord(
            id=self.id,
            members=self.members,
            state=self.state,
            ending=self.ending,
            verdict=self.verdict,
            objective=self.objective,
            by_rail=self.by_rail,
            places=tuple(member.place() for member in self.facts.values()),
            blamed=self.blamed,
            reasons=self.reasons,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )

    def _note(self, event: GroupEvent, now: float) -> GroupStep | None:
        """Notes the event as a fact. Returns the step that all facts together make, if any."""
        match event:
            case Ticked():
                return self._tick(now)
            case CalledOff():
                return GroupStep.CALLED_OFF
        member = self.facts.get(event.node)
        listener = LISTENERS.get((self.state, type(event)))
        return listener(self, member, event, now) if member is not None and listener is not None else None

    def _missed_order(self, event: GroupEvent, now: float) -> SendCommand | None:
        """What followed the answer that a member repeats. A broker that was restarted may have lost the order."""
        match event, self.state:
            case Accepted(node=node), GroupState.ELECTED if node in self.facts and not self.facts[node].ready:
                return self._prepare(self.facts[node], now)
            case Ready(node=node), GroupState.READY | GroupState.RUNNING if node in self.facts:
                return None if self.facts[node].released else self._start(node, now)
        return None

    def _tick(self, now: float) -> GroupStep | None:
        if now < self.deadline or any(member.is_doubted(now, self.deadline) for member in self.facts.values()):
            return None
        step = GroupStep.FAULT if any(member.fault for member in self.facts.values()) else GroupStep.OVERDUE
        for member in self.facts.values():
            if member.fault is None and not member.has_answered(self.state):
                member.fault = Blame(node=member.node, reason=SILENT, detail=f"sent nothing while {self.state}")
        return step

    def _take(self, step: GroupStep, now: float) -> list[FleetCommand]:
        self.state, self.ending = TRANSITIONS[self.state, step]
        match self.state:
            case GroupState.ELECTED:
                return self._elect(now)
            case GroupState.READY:
                self.deadline = now + self.task.timeout_s + RUN_GRACE_S
                return [self._start(node, now) for node in self.members]
            case GroupState.ENDED:
                return self._end(step, now)
        return []

    def _elect(self, now: float) -> list[FleetCommand]:
        self.deadline = now + PREPARING_S
        for member in self.facts.values():
            member.first_rank, self.world_size = self.world_size, self.world_size + member.ranks
        return [self._prepare(member, now) for member in self.facts.values()]

    def _prepare(self, member: GroupMember, now: float) -> SendCommand:
        master = self.facts[self.members[0]].accepted
        assert master is not None, "all members have accepted"
        content = {"world_size": self.world_size, "master_addr": master.address, "master_port": master.port}
        content["secret"] = self.orders.secret_of(self.id) if self._all_know_secrets() else None
        return self._order(member.node, Prepare, now, PREPARING_S, first_rank=member.first_rank, **content)

    def _all_know_secrets(self) -> bool:
        """Whether every member has an agent that keeps strangers out. One older agent could not meet the others."""
        return all(member.accepted and member.accepted.knows_secrets for member in self.facts.values())

    def _start(self, node: str, now: float) -> SendCommand:
        return self._order(node, Start, now, self.task.timeout_s)

    def _end(self, step: GroupStep, now: float) -> list[FleetCommand]:
        self.ended_at = now
        self.blamed = () if step is GroupStep.CALLED_OFF else self._culprits()
        reason = "; ".join(f"{blame.node}: {blame.reason}" for blame in self.blamed) or str(step)
        held = [member.node for member in self.facts.values() if not member.released]
        return [self._order(node, Abort, now, RELEASE_TTL_S, reason=reason) for node in held]

    def _culprits(self) -> tuple[Blame, ...]:
        blamed = gravest(member.fault for member in self.facts.values() if member.fault)
        if self.first_is_unreachable():
            address = self.facts[self.members[0]].address
            detail = f"it listens on {address!r}, a loopback address that other members cannot reach"
            return (Blame(node=self.members[0], reason=UNREACHABLE, detail=detail),)
        if self.nobody_reaches_first():
            return (Blame(node=self.members[0], reason=UNREACHABLE, detail=blamed[0].detail),)
        return blamed

    def nobody_reaches_first(self) -> bool:
        """Whether all other members report that they cannot reach rank 0."""
        others = [self.facts[node].fault for node in self.members[1:]]
        return bool(others) and all(fault is not None and fault.reason == UNREACHABLE for fault in others)

    def first_is_unreachable(self) -> bool:
        """Whether rank 0 reports a loopback address although not all members are on one host."""
        if not all(member.accepted for member in self.facts.values()):
            return False
        first, *others = (self.facts[node].address for node in self.members)
        return is_own_host(first) and not all(map(is_own_host, others))

    def postpone_deadline(self, by_s: float) -> None:
        """Postpones the deadline: the members are not to blame for what the coordinator was late."""
        by_s = min(by_s, MOST_POSTPONED_S - self.postponed_s)
        self.deadline, self.postponed_s = self.deadline + by_s, self.postponed_s + by_s

    def shorten_deadline(self, now: float) -> None:
        """Shortens the deadline: the others have ABORT_GRACE_S left to report."""
        self.deadline = min(self.deadline, now + ABORT_GRACE_S)

    def _order(self, node: str, order: type[OrderT], now: float, ttl_s: float, **content: Any) -> SendCommand:
        return self.orders.send(node, order, now, ttl_s=ttl_s, cause=self.task.cause, group=self.id, **content)


def _on_accepted(group: Group, member: GroupMember, event: Accepted, now: float) -> GroupStep | None:
    most = group.most_ranks.get(member.node, 1)
    if event.ranks > most:
        detail = f"it accepted with {event.ranks} ranks; its announced devices allow {most}"
        member.fault = Blame(node=member.node, reason=TOO_MANY_RANKS, detail=detail)
        return GroupStep.FAULT
    member.accepted = member.accepted or event
    member.note_clock(event.sent_at, now)
    if not all(other.accepted for other in group.facts.values()):
        return None
    return GroupStep.FAULT if group.first_is_unreachable() else GroupStep.ALL_ACCEPTED


def _on_ready(group: Group, member: GroupMember, event: Ready, now: float) -> GroupStep | None:
    member.ready = member.fault is None
    return GroupStep.ALL_READY if all(other.ready for other in group.facts.values()) else None


def _on_alive(group: Group, member: GroupMember, event: Progress, now: float) -> GroupStep | None:
    return GroupStep.ALIVE


def _on_finished(group: Group, member: GroupMember, event: Finished, now: float) -> GroupStep | None:
    if member.results is None:
        member.finish(event.ranks, group.task.scope)
    if all(other.results is not None for other in group.facts.values()):
        return GroupStep.ALL_FINISHED
    if member.fault is not None:
        if group.state is GroupState.ELECTED:
            return GroupStep.FAULT
        group.shorten_deadline(now)
    return GroupStep.ALIVE if group.state is GroupState.READY else None


def _on_declined(group: Group, member: GroupMember, event: Declined, now: float) -> GroupStep | None:
    if member.results is not None:
        return None
    may_have_tried = group.state is GroupState.ELECTED and not member.ready
    if event.reason == UNREACHABLE and not may_have_tried:  # rank 0 was not known yet, or had already been reached
        member.decline(DECLINED_OTHERWISE, f"it reports {event.reason} while the group is {group.state}")
        return GroupStep.FAULT
    member.decline(event.reason, event.detail)
    if event.reason == UNREACHABLE and not group.nobody_reaches_first():
        group.shorten_deadline(now)  # whether the others reach rank 0 shows which side is at fault
        return None
    return GroupStep.FAULT


def _on_lost(group: Group, member: GroupMember, event: MemberLost, now: float) -> GroupStep | None:
    if member.results is not None:
        return None
    member.fault = Blame(node=member.node, reason=LOST, detail="its agent has vanished")
    return GroupStep.FAULT


def _on_doubted(group: Group, member: GroupMember, event: MemberDoubted, now: float) -> GroupStep | None:
    member.doubted_until = event.until  # if it vanished, that explains why the ranks of others have failed
    return None


GroupListener = Callable[[Group, GroupMember, Any, float], GroupStep | None]

LISTENERS: dict[tuple[GroupState, type[object]], GroupListener] = {
    (GroupState.FORMING, Accepted): _on_accepted,
    (GroupState.ELECTED, Ready): _on_ready,
    (GroupState.READY, Progress): _on_alive,
    **{(state, Finished): _on_finished for state in (GroupState.ELECTED, GroupState.READY, GroupState.RUNNING)},
    **{(state, Declined): _on_declined for state in GroupState if state is not GroupState.ENDED},
    **{(state, MemberDoubted): _on_doubted for state in GroupState if state is not GroupState.ENDED},
    **{(state, MemberLost): _on_lost for state in GroupState if state is not GroupState.ENDED},
}
"""The messages that each state handles, besides time and the end of the sweep, which every state but ENDED handles."""
