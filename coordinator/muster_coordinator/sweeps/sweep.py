"""One sweep: rounds of groups until every node and link is settled, or nothing more can be learned.

`single` tries each node alone, `whole` all nodes in one group, `pairs` every node with another one and then whoever
has not been cleared with one that has, round by round, and `adaptive` what separates what is still possible. A round
ends when all its groups have; members that had to be told to leave get the time to kill what they spawned before they
are invited again.

A group that could not be formed is formed again in the same round: once with another member as rank 0 if nobody
could reach the first, and, in a whole sweep, without the members that were to blame. What its groups showed becomes
the sweep's evidence, which `localize` judges; a member that vanished, declined or stayed silent is absent from then
on, and inconclusive unless it was cleared before.
"""

from collections.abc import Iterable

from muster.model import Verdict
from muster_coordinator.events import Announce, Command, SaveSweep, Ticked
from muster_coordinator.localize.adaptive import MAX_ROUNDS as MAX_ADAPTIVE_ROUNDS
from muster_coordinator.localize.case import Case
from muster_coordinator.localize.ruling import Ruling, ruling_by_case, ruling_by_judgement
from muster_coordinator.localize.trial import Outcome, Trial
from muster_coordinator.orders import Orders
from muster_coordinator.sweep_records import Ending, GroupRecord, GroupState, RoundRecord, SweepRecord, SweepState
from muster_coordinator.sweeps.formation import Formation, Plan, Strategy, adaptive, first_round, form_again, formations
from muster_coordinator.sweeps.group import ABORT_GRACE_S, CalledOff, Group, GroupEvent, MemberLost
from muster_coordinator.sweeps.member import may_be_echo
from muster_coordinator.sweeps.showing import trial_of

MAX_ROUNDS = 6
"""Two rounds settle almost everything; the others are for suspects that outnumber partners and for links."""

SAVE_EVERY_S = 1.0
"""Rounds are saved when they begin and end; in between, whoever watches sees what is at most this old."""


class Sweep:
    """A sweep from its first round to its verdict."""

    def __init__(self, plan: Plan, orders: Orders, now: float) -> None:
        self.plan = plan
        self.state = SweepState.RUNNING
        self._orders = orders
        self._created_at = self._resume_at = self._saved_at = now
        self._ended_at: float | None = None
        self._reason: str | None = None
        self._rounds: list[list[Group]] = []
        self._formations: dict[str, Formation] = {}
        self._live: dict[str, Group] = {}
        self._again: list[Formation] = []
        self._trials: dict[str, Trial] = {}
        self._absent: dict[str, str] = {}
        self._changed = False

    def begin(self, now: float) -> list[Command]:
        """The first round."""
        return [*self._next_round(first_round(self.plan), now), *self._save(now)]

    def handle(self, event: GroupEvent, now: float) -> list[Command]:
        """What is to be done about `event`."""
        if self.state is not SweepState.RUNNING:
            return []
        commands: list[Command] = []
        for group in self._concerned(event):
            commands += group.handle(event, now)
            self._changed |= not isinstance(event, Ticked) or bool(commands)
            if group.state is GroupState.ENDED:
                self._conclude(group, now)
        match event:
            case MemberLost(node):
                self._absent.setdefault(node, "lost: its agent has vanished")
            case CalledOff(reason):
                self._end(SweepState.ABORTED, reason, now)
        following = self._advance(now)
        at_boundary = following or self.state is not SweepState.RUNNING or now >= self._saved_at + SAVE_EVERY_S
        return [*commands, *following, *(self._save(now) if self._changed and at_boundary else ())]

    @property
    def groups(self) -> int:
        """How many groups it has formed."""
        return len(self._formations)

    def record(self) -> SweepRecord:
        """The sweep as it stands."""
        ruling = self._rule()
        failed = {found.node for found in ruling.failed_nodes}
        unsettled = [node for node in ruling.open if node in self._absent or self.state is not SweepState.RUNNING]
        return SweepRecord(
            id=self.plan.id,
            state=self.state,
            strategy=self.plan.strategy,
            check=self.plan.task.check,
            params=self.plan.task.params,
            nodes=self.plan.nodes,
            verdict=self._verdict(ruling, unsettled),
            rounds=tuple(self._round_record(number, ruling) for number in range(1, len(self._rounds) + 1)),
            suspects=ruling.suspects,
            failed_nodes=ruling.failed_nodes,
            failed_links=ruling.failed_links,
            failed_fabric=ruling.failed_fabric,
            cleared_nodes=tuple(node for node in self.plan.nodes if node in ruling.cleared and node not in failed),
            inconclusive=tuple(unsettled),
            created_at=self._created_at,
            ended_at=self._ended_at,
            reason=self._reason,
            notes=self._notes(ruling, unsettled),
        )

    def _concerned(self, event: GroupEvent) -> list[Group]:
        match event:
            case Ticked() | CalledOff():
                return list(self._live.values())
            case MemberLost(node):
                return [group for group in self._live.values() if node in group.facts]
        group = self._live.get(event.group)
        return [] if group is None else [group]

    def _advance(self, now: float) -> list[Command]:
        """Goes on once every group of the round has ended and its members have had the time to let go."""
        if self._live or now < self._resume_at or self.state is not SweepState.RUNNING:
            return []
        if self._again:
            formations, self._again = self._again, []
            return self._form(formations, now)
        if following := self._following_round():
            return self._next_round(following, now)
        self._end(SweepState.FINISHED, None, now)
        return []

    def _following_round(self) -> list[Formation]:
        match self.plan.strategy:
            case Strategy.PAIRS if len(self._rounds) < MAX_ROUNDS:
                pairings = self._case().next_pairs(self._absent.keys())
                return [Formation(pairing.members, pairing.reason) for pairing in pairings]
            case Strategy.ADAPTIVE if len(self._rounds) < MAX_ADAPTIVE_ROUNDS:
                strategy = adaptive(self.plan)
                return formations(strategy.next_groups(tuple(self._trials.values()), frozenset(self._absent)))
        return []

    def _next_round(self, formations: Iterable[Formation], now: float) -> list[Command]:
        self._rounds.append([])
        return self._form(formations, now)

    def _form(self, formations: Iterable[Formation], now: float) -> list[Command]:
        commands: list[Command] = []
        for formation in formations:
            name = f"{self.plan.id}-{len(self._formations) + 1}"
            group = Group(name, self.plan.task, formation.members, (formation.reason,), self._orders, now)
            self._formations[name] = formation
            self._live[name] = group
            self._rounds[-1].append(group)
            commands += group.begin()
        self._changed = True
        return commands

    def _conclude(self, group: Group, now: float) -> None:
        """Takes what an ended group showed as evidence, or plans to form it again."""
        del self._live[group.id]
        if group.ending is not Ending.FINISHED:
            self._resume_at = max(self._resume_at, now + ABORT_GRACE_S)
        again = form_again(group, self._formations[group.id], self.plan.strategy)
        trial = trial_of(group)
        if again is None:
            self._trials[group.id] = trial
        else:
            self._again.append(again)
        for blame in group.blamed:
            left_out = again is not None and blame.node not in again.members
            # Whoever may only have seen its peers fail is still there for another try.
            gone = again is None and trial.outcome is Outcome.VOID and not may_be_echo(blame.reason)
            if left_out or gone:
                self._absent.setdefault(blame.node, f"{blame.reason}: {blame.detail}".removesuffix(": "))

    def _end(self, state: SweepState, reason: str | None, now: float) -> None:
        self.state, self._reason, self._ended_at = state, reason, now
        self._changed = True

    def _rule(self) -> Ruling:
        """What the trials so far come to."""
        check, metric = self.plan.task.check, self.plan.task.objective
        if self.plan.strategy is Strategy.ADAPTIVE:
            return ruling_by_judgement(adaptive(self.plan).judge(tuple(self._trials.values())), check, metric)
        return ruling_by_case(self._case(), check)

    def _case(self) -> Case:
        return Case(self.plan.nodes, tuple(self._trials.values()), self.plan.task.objective)

    def _save(self, now: float) -> list[Command]:
        self._changed, self._saved_at = False, now
        record = self.record()
        return [SaveSweep(record), Announce("sweep", record)]

    def _verdict(self, ruling: Ruling, unsettled: list[str]) -> Verdict | None:
        if self.state is SweepState.RUNNING:
            return None
        if ruling.anything_failed:
            return Verdict.FAIL
        return Verdict.UNKNOWN if unsettled or self.state is SweepState.ABORTED else Verdict.PASS

    def _notes(self, ruling: Ruling, unsettled: list[str]) -> tuple[str, ...]:
        seen_last = {node: trial.detail for trial in self._trials.values() for node in trial.members if trial.detail}
        reasons = {**seen_last, **self._absent}
        why = [f"{node}: {reasons.get(node, 'no partner could tell')}" for node in unsettled]
        return (*why, *ruling.seen)

    def _round_record(self, number: int, ruling: Ruling) -> RoundRecord:
        groups = self._rounds[number - 1]
        return RoundRecord(number=number, groups=tuple(self._group_record(group, ruling) for group in groups))

    def _group_record(self, group: Group, ruling: Ruling) -> GroupRecord:
        record = group.record()
        if (why := ruling.why_slow.get(group.id)) is None:
            return record
        return record.model_copy(update={"verdict": Verdict.FAIL, "reasons": (*record.reasons, why)})
