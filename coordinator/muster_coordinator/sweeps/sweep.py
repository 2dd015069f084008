"""One sweep: rounds of groups until every node and link is cleared or convicted, or nothing more can be learned.

The strategy plans the groups of a round. A group waits until its nodes are free and the limits of the sweep allow it. A
round is over when all its groups have ended. Then the sweep makes a diagnosis of their results, and plans the next
round.

A group that could not be formed is formed again, see `formation`. A node that vanished, declined or stayed silent is
absent from then on. It is inconclusive unless it was cleared before.
"""

from collections.abc import Mapping
from functools import partial

from muster_coordinator.model.events import Announce, FleetCommand, SaveGroup, SaveSweep, Ticked
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.sweep_records import Ending, GroupState, RoundRecord, SweepRecord, SweepState
from muster_coordinator.sweeps.conclusion import changes_between, notes, verdict_of_sweep
from muster_coordinator.sweeps.cost import SweepCost
from muster_coordinator.sweeps.formation import Formation, form_again, nearest_spare, without
from muster_coordinator.sweeps.group import ABORT_GRACE_S, Group
from muster_coordinator.sweeps.group_events import CalledOff, GroupEvent, MemberDoubted, MemberLost
from muster_coordinator.sweeps.member import LOST
from muster_coordinator.sweeps.occupancy import Occupancy
from muster_coordinator.sweeps.plan import SweepPlan
from muster_coordinator.sweeps.rounds import Round, RoundLog
from muster_coordinator.sweeps.sweep_evidence import SweepEvidence
from muster_coordinator.topology.learned import MeasuredPair

MOST_INVITED = 400
"""Maximum number of nodes that are invited at the same time. Broker and coordinator carry their answers well within
FORMING_S.
"""

SAVE_EVERY_S = 1.0
"""How often changes within a round are saved and announced."""


class Sweep:
    """A sweep from its first round to its verdict."""

    def __init__(self, plan: SweepPlan, orders: Orders, occupancy: Occupancy, now: float) -> None:
        self.plan = plan
        self.state = SweepState.PLANNED
        self.groups = 0
        self._orders = orders
        self._occupancy = occupancy
        self._created_at = self._saved_at = now
        self._waiting_saved = 0
        self._ended_at: float | None = None
        self._reason: str | None = None
        self._evidence = SweepEvidence(plan)
        self._report = self._evidence.report()
        self._cost = SweepCost(plan.task)
        self._log = RoundLog()
        self._rounds = 0  # rounds that ran in full
        self._round: Round | None = None

    @property
    def live(self) -> Mapping[str, Group]:
        """The groups that have not ended."""
        return {} if self._round is None else self._round.live

    @property
    def is_waiting(self) -> bool:
        """Whether groups wait to be formed."""
        return self._waiting > 0

    @property
    def _waiting(self) -> int:
        """The number of groups that wait to be formed."""
        return 0 if self._round is None else len(self._round.waiting)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._ended_at is not None

    def concerns(self, node: str) -> bool:
        """Whether a node takes part."""
        return node in self._evidence.sites

    def restore(self, record: SweepRecord) -> None:
        """Restores the findings of an earlier coordinator. Call it before `begin` or `give_up`."""
        self.state, self._created_at = record.state, record.created_at
        self._evidence.resume(record)
        for stage in record.rounds:
            self._log.resume(stage)
            self._rounds += _was_run_in_full(stage)
            self.groups += len(stage.groups)
            for group in stage.groups:
                self._cost.add(group)
        self._report = self._evidence.report()
        self._log.mark_slow(self._report.why_slow)

    def begin(self, now: float) -> list[FleetCommand]:
        """Plans the first round, or after an interruption the next one."""
        self._plan_round(now)
        return self._save(now)

    def give_up(self, reason: str, now: float) -> list[FleetCommand]:
        """Ends the sweep with its results so far."""
        self._end(SweepState.ABORTED, reason, now)
        return self._save(now)

    def form(self, now: float) -> list[FleetCommand]:
        """Forms the waiting groups whose nodes are free, while the limits allow it.

        Takes constant time while no more nodes may be invited: this is called for each group that ends.
        """
        if self._round is None:
            return []
        commands: list[FleetCommand] = []
        has_begun = self._round.has_begun
        taken, invited = self._round.nodes_in_groups, self._round.nodes_invited
        for formation in [*self._round.waiting]:
            more = len(formation.members)
            if not self._has_room(taken, more):
                break
            if invited and invited + more > MOST_INVITED:
                self._occupancy.keep(self._round.waiting_nodes)
                break
            if self._occupancy.take(formation.members, now):
                commands += self._form(self._round, formation, now)
                taken, invited = taken + more, invited + more
        if not commands:
            return []
        due = not has_begun or not self.is_waiting or self._is_stale(now)
        return [*commands, *(self._save(now) if due else self._save_groups())]

    def handle(self, event: GroupEvent, now: float) -> list[FleetCommand]:
        """The commands that follow from `event`."""
        if self._round is None:
            return []
        if isinstance(event, Ticked) and event.lost_s:
            self._round.postpone_deadlines(event.lost_s)
        commands: list[FleetCommand] = []
        for group in self._concerned(self._round, event, now):
            commands += self._feed(self._round, group, event, now)
        match event:
            case MemberLost(node):
                self._miss(self._round, node, now)
            case CalledOff(reason):
                self._judge()
                self._end(SweepState.ABORTED, reason, now)
        at_boundary = self._advance(now)
        due = self._is_stale(now) and (self._log.has_changed or self._waiting != self._waiting_saved)
        return [*commands, *(self._save(now) if at_boundary or due else ())]

    def record(self) -> SweepRecord:
        """The present record, with all groups."""
        return self._log.complete(self.summary())

    def summary(self) -> SweepRecord:
        """The present record, without groups."""
        report, absent = self._report, self._evidence.absent
        failed = {found.node for found in report.failed_nodes}
        inconclusive = [node for node in report.inconclusive if node in absent or self.is_over]
        return SweepRecord(
            id=self.plan.id,
            state=self.state,
            strategy=self.plan.strategy,
            check=self.plan.task.check,
            params=self.plan.task.params,
            metric=self.plan.task.objective,
            nodes=self.plan.nodes,
            asked=self.plan.asked,
            origin=self.plan.origin,
            requested_by=self.plan.requested_by,
            verdict=verdict_of_sweep(self.state, report, inconclusive),
            rounds=self._log.outline(waiting=self._waiting),
            suspects=report.suspects,
            failed_nodes=report.failed_nodes,
            failed_links=report.failed_links,
            failed_fabric=report.failed_fabric,
            cleared_nodes=tuple(node for node in self.plan.nodes if node in report.cleared and node not in failed),
            inconclusive=tuple(inconclusive),
            suspicions=report.suspicions,
            absent=dict(absent),
            hardware=dict(report.hardware),
            spent_node_s=self._cost.spent_node_s,
            created_at=self._created_at,
            ended_at=self._ended_at,
            reason=self._reason,
            smallest_loss=report.smallest_loss,
            notes=notes(inconclusive, self._evidence, report, self._log, ended_early=self._reason is not None),
        )

    def pairs(self) -> list[MeasuredPair]:
        """The bandwidth that pairs of nodes have reached."""
        return self._evidence.measured_pairs()

    # Rounds

    def _advance(self, now: float) -> bool:
        """Diagnoses a round that is over and plans the next. Returns whether a round or the sweep has just ended."""
        if self._round is not None and self._round.is_over:
            self._judge()
            self._plan_round(now)
            return True
        return self.is_over

    def _judge(self) -> None:
        """Closes the round and makes the diagnosis from all groups."""
        self._round = None
        self._rounds += 1
        before, self._report = self._report, self._evidence.report()
        self._log.close_round(changes_between(before, self._report))
        self._log.mark_slow(self._report.why_slow)

    def _plan_round(self, now: float) -> None:
        """Plans the next round, or ends the sweep when nothing more can be learned or a limit is reached."""
        formations = self._evidence.next_groups(self._rounds)
        affordable = self._cost.affordable(formations, self.plan.limits.node_s)
        if not formations:
            self._end(SweepState.FINISHED, None, now)
        elif self._rounds == self.plan.limits.rounds:
            self._end(SweepState.FINISHED, f"max_rounds {self.plan.limits.rounds} is reached", now)
        elif not affordable:
            reason = f"another run would exceed max_node_s {self.plan.limits.node_s:g}"
            self._end(SweepState.FINISHED, reason, now)
        else:
            self._round = Round(affordable, self.plan.nodes)
            self._log.open_round()

    def _end(self, state: SweepState, reason: str | None, now: float) -> None:
        self.state, self._reason, self._ended_at = state, reason, now

    # Groups

    def _has_room(self, taken: int, more: int) -> bool:
        """Whether `more` nodes may join the `taken` ones in groups. A group larger than the limit is formed alone."""
        limit = self.plan.limits.nodes
        return limit is None or not taken or taken + more <= limit

    def _form(self, stage: Round, formation: Formation, now: float) -> list[FleetCommand]:
        self.state = SweepState.RUNNING
        self.groups += 1
        # The id contains the epoch: another coordinator may have formed a group of this number without storing it.
        name = f"{self.plan.id}-{self._orders.epoch}.{self.groups}"
        reasons = (formation.reason,)
        plan, members = self.plan, formation.members
        group = Group(name, plan.task, members, reasons, self._orders, now, formation.by_rail, plan.most_ranks)
        stage.begin(group, formation)
        self._log.begin(group)
        return group.begin()

    def _concerned(self, stage: Round, event: GroupEvent, now: float) -> list[Group]:
        match event:
            case Ticked():  # some times a second, while thousands of groups wait for their members
                return [group for group in stage.live.values() if now >= group.deadline]
            case CalledOff():
                return list(stage.live.values())
            case MemberLost(node) | MemberDoubted(node):
                group = stage.live_with(node)
            case _:
                group = stage.live.get(event.group)
        return [] if group is None else [group]

    def _feed(self, stage: Round, group: Group, event: GroupEvent, now: float) -> list[FleetCommand]:
        commands = group.handle(event, now)
        stage.note_answered(group)
        if group.state is GroupState.ENDED:
            self._conclude(stage, group, now)
        elif commands or not isinstance(event, Ticked):
            self._log.touch(group)
        return commands

    def _conclude(self, stage: Round, group: Group, now: float) -> None:
        """Takes the result of an ended group as evidence, or forms the group again."""
        record, formation = group.record(), stage.end(group)
        self._occupancy.release(group.members, now if record.ending is Ending.FINISHED else now + ABORT_GRACE_S)
        self._cost.add(record)
        spares = partial(self._spare, stage, now)
        again = form_again(formation, record.blamed, spares) if record.ending is Ending.NOT_FORMED else None
        self._evidence.add(record, again, live_together=stage.live_together)
        self._log.end(record.model_copy(update={"formed_again": again is not None}))
        if again is not None:
            stage.wait(again)

    def _miss(self, stage: Round, node: str, now: float) -> None:
        """Removes a lost node from the sweep, and from the groups that wait."""
        self._evidence.mark_absent(node, "lost: its agent has vanished")
        if (formation := stage.waiting_with(node)) is not None:
            stage.drop(formation)
            again = without(formation, {node: LOST}, partial(self._spare, stage, now))
            if again is not None:
                stage.wait(again)

    def _spare(self, stage: Round, now: float, node: str) -> str | None:
        """A free node of this sweep near `node` that is not used in this round; None if there is none."""
        gone = self._evidence.absent, {found.node for found in self._report.failed_nodes}
        idle = (other for other in stage.unused if not any(other in each for each in gone))
        free = (other for other in idle if self._occupancy.is_free(other, now))
        spare = nearest_spare(node, free, self._evidence.sites)
        if spare is not None:
            del stage.unused[spare]
        return spare

    # Saving

    def _save(self, now: float) -> list[FleetCommand]:
        """The commands that store and announce the sweep and its changed groups."""
        self._saved_at, self._waiting_saved = now, self._waiting
        summary = self.summary()
        return [SaveSweep(summary), Announce("sweep", summary), *self._save_groups()]

    def _save_groups(self) -> list[FleetCommand]:
        """The commands that store and announce the changed groups. They come before the invitations are sent."""
        commands: list[FleetCommand] = []
        for number, group in self._log.changed():
            commands += [SaveGroup(self.plan.id, number, group), Announce("group", group)]
        return commands

    def _is_stale(self, now: float) -> bool:
        return now >= self._saved_at + SAVE_EVERY_S


def _was_run_in_full(stage: RoundRecord) -> bool:
    """Whether an earlier coordinator had run all groups of a round when it ended."""
    endings = {group.ending for group in stage.groups}
    return bool(endings) and Ending.INTERRUPTED not in endings and not stage.waiting
