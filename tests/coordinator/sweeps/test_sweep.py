"""A sweep's rounds, and how groups that could not be formed are formed again."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from muster.model import Finding, RankResult, Severity, Verdict
from muster.wire.messages import Accepted, AnyGroupReply, Declined, Finished, Join, Ready
from muster_coordinator.events import Command, SaveGroup, SaveSweep, SendCommand, Ticked
from muster_coordinator.localize.probe import Site
from muster_coordinator.localize.strategy import Strategy
from muster_coordinator.orders import Orders
from muster_coordinator.sweep_records import (
    Blame,
    Ending,
    GroupRecord,
    GroupState,
    RoundRecord,
    SweepRecord,
    SweepRequest,
    SweepState,
)
from muster_coordinator.sweeps.formation import MAX_REFORMED
from muster_coordinator.sweeps.group import ABORT_GRACE_S, FORMING_S, CalledOff, MemberLost, Task
from muster_coordinator.sweeps.occupancy import Occupancy
from muster_coordinator.sweeps.outcome import UNTRIED
from muster_coordinator.sweeps.plan import Limits, Plan
from muster_coordinator.sweeps.recovery import interrupted
from muster_coordinator.sweeps.sweep import MOST_INVITED, SAVE_EVERY_S, Sweep

TASK = Task(check="collective", params={}, timeout_s=20.0, objective="busbw_gbps", cause="s")

NOT_FORMED = GroupRecord(
    id="s-7.1",
    members=("n0", "n1", "n2"),
    state=GroupState.ENDED,
    ending=Ending.NOT_FORMED,
    blamed=(Blame(node="n3", reason="busy"),),
    formed_again=True,
    started_at=0.0,
    ended_at=1.0,
)


def plan(strategy: Strategy, count: int, **more: Any) -> Plan:
    nodes = tuple(f"n{number}" for number in range(count))
    return Plan(id="s", asked=SweepRequest(check="collective"), strategy=strategy, task=TASK, nodes=nodes, **more)


class Play:
    """Plays the members of a sweep's groups: each does at once what `says` has for it, or goes through and passes.

    What a node says is a reason to decline with, a finding that its ranks end with, or the GB/s that it measures.
    """

    def __init__(
        self, planned: Plan, *, begins: float = 0.0, ahead: Mapping[str, float] = MappingProxyType({}), **says: Any
    ) -> None:
        self.now = begins
        self.step_s = 1.0
        self.ahead = ahead
        self.says = says
        self.occupancy = Occupancy()
        self.sweep = Sweep(planned, Orders(7), self.occupancy, self.now)
        self.saved: list[SweepRecord] = []
        self.groups: dict[str, GroupRecord] = {}
        self.commands = [*self._note(self.sweep.begin(self.now)), *self.form()]

    def to_end(self) -> SweepRecord:
        """The record when the sweep has ended."""
        for _ in range(1000):
            if self.sweep.is_over:
                break
            self.step()
        record = self.sweep.record()
        assert self.saved[-1] == self.sweep.summary()
        assert {group.id: group for stage in record.rounds for group in stage.groups} == self.groups
        return record

    def step(self) -> None:
        """Lets every member say its next word, and time pass."""
        for group in list(self.sweep.live.values()):
            for node in group.members:
                for reply in self._replies(node, group.id):
                    self._note(self.sweep.handle(reply, self.now))
        self.now += self.step_s
        self._note(self.sweep.handle(Ticked(), self.now))
        self.form()

    def form(self) -> list[Command]:
        self.occupancy.new_turn()
        return self._note(self.sweep.form(self.now))

    def _note(self, commands: list[Command]) -> list[Command]:
        self.saved += [command.record for command in commands if isinstance(command, SaveSweep)]
        self.groups |= {command.record.id: command.record for command in commands if isinstance(command, SaveGroup)}
        return commands

    def _replies(self, node: str, group: str) -> list[AnyGroupReply]:
        head: dict[str, Any] = {
            "id": "m",
            "sent_at": self.now + self.ahead.get(node, 0.0),
            "node": node,
            "group": group,
        }
        live = self.sweep.live.get(group)
        said = self.says.get(node, 1.5)
        if live is None or said == "silent":
            return []
        if not live.facts[node].accepted:
            busy = Declined(**head, reason="busy", detail="a job runs")
            return [busy] if said == "busy" else [Accepted(**head, address=node, port=1, ranks=1)]
        if live.members[0] != node and "isolated" in {self.says.get(member) for member in live.members}:
            return [Declined(**head, reason="unreachable", detail="connection refused")]
        return [Ready(**head)] if not live.facts[node].ready else [Finished(**head, ranks=(_result(said),))]


def _result(said: Any) -> RankResult:
    if isinstance(said, float):
        return RankResult(rank=0, verdict=Verdict.PASS, metrics={"busbw_gbps": said}, duration_s=1.0)
    verdict = Verdict.FAIL if said == "wrong" else Verdict.SKIPPED if said == "run.skipped" else Verdict.UNKNOWN
    severity = Severity.ERROR if said == "wrong" else Severity.UNKNOWN
    finding = Finding(code=said, summary=f"{said} happened", severity=severity)
    return RankResult(rank=0, verdict=verdict, findings=(finding,), duration_s=1.0)


@pytest.mark.parametrize("strategy", Strategy)
def test_a_healthy_fleet_passes(strategy: Strategy) -> None:
    """In one round, unless everybody is to meet everybody; every group says why it was formed."""
    record = Play(plan(strategy, 4)).to_end()
    rounds = 3 if strategy is Strategy.ROUND_ROBIN else 1
    assert (record.state, record.verdict, len(record.rounds)) == (SweepState.FINISHED, Verdict.PASS, rounds)
    assert record.cleared_nodes == record.nodes
    assert all(group.reasons for stage in record.rounds for group in stage.groups)


def test_pairs_name_the_failing_node() -> None:
    """Further rounds pair the suspects with nodes that passed, and say what they have taught."""
    record = Play(plan(Strategy.PAIRS, 6), n3=0.1).to_end()
    assert "convicted: n3" in record.rounds[-1].learned
    (failed,) = record.failed_nodes
    assert (failed.node, failed.code, record.verdict) == ("n3", "collective.slow", Verdict.FAIL)
    assert set(record.cleared_nodes) == set(record.nodes) - {"n3"}
    slow = [group for stage in record.rounds for group in stage.groups if "n3" in group.members]
    assert all(group.verdict is Verdict.FAIL and group.slow for group in slow)


def test_single_convicts_by_own_evidence_only() -> None:
    """FAIL convicts; a run that could not tell or was skipped leaves its node inconclusive, with the reason."""
    record = Play(plan(Strategy.SINGLE, 5), n1="wrong", n2="run.raised", n3="run.skipped").to_end()
    assert [(failed.node, failed.code) for failed in record.failed_nodes] == [("n1", "collective.failed")]
    assert (record.inconclusive, record.cleared_nodes) == (("n2", "n3"), ("n0", "n4"))
    assert record.notes == (
        "n2: n2: run.raised happened; it needs a good run alone",
        "n3: run.skipped: run.skipped happened",
    )


def test_a_whole_group_that_fails_convicts_nobody() -> None:
    """All are suspects and inconclusive."""
    record = Play(plan(Strategy.WHOLE, 3), n1="run.killed").to_end()
    assert (record.suspects, record.failed_nodes) == (("n1",), ())
    assert record.inconclusive == record.nodes
    record = Play(plan(Strategy.WHOLE, 3), n0="wrong", n1="wrong", n2="wrong").to_end()
    assert record.suspects == record.inconclusive == record.nodes
    assert record.verdict is Verdict.UNKNOWN


def test_a_whole_group_is_formed_again_without_who_declined() -> None:
    """In the same round; who was left out is inconclusive with the reason, the others are cleared."""
    record = Play(plan(Strategy.WHOLE, 4), n2="busy").to_end()
    first, again = record.rounds[0].groups
    assert (first.ending, again.members) == (Ending.NOT_FORMED, ("n0", "n1", "n3"))
    assert again.reasons == ("formed again without n2 (busy)",)
    assert (record.inconclusive, record.notes) == (("n2",), ("n2: busy: a job runs",))
    assert record.verdict is Verdict.UNKNOWN


def test_a_whole_sweep_gives_up_forming() -> None:
    """Not more often than is said."""
    play = Play(plan(Strategy.WHOLE, 6), n0="busy")
    for node in ("n1", "n2", "n3"):
        play.says[node] = "busy"
    record = play.to_end()
    assert len(record.rounds[0].groups) <= 1 + MAX_REFORMED


def test_a_member_that_declines_leaves_its_partner_to_another() -> None:
    """Its partner is not suspected for it."""
    record = Play(plan(Strategy.PAIRS, 6), n2="busy").to_end()
    assert record.inconclusive == ("n2",)
    assert set(record.cleared_nodes) == set(record.nodes) - {"n2"}


def test_a_pair_that_cannot_connect_is_turned_round_and_then_evidence() -> None:
    """Rank 0 changes once; then it counts, and a node that nobody can connect to is convicted by two partners."""
    record = Play(plan(Strategy.PAIRS, 6), n1="isolated").to_end()
    assert [(failed.node, failed.code) for failed in record.failed_nodes] == [("n1", "collective.failed")]
    assert set(record.cleared_nodes) == set(record.nodes) - {"n1"}
    for stage in record.rounds:
        first, turned = (group for group in stage.groups if "n1" in group.members)
        assert turned.members == first.members[::-1]
        assert turned.reasons == (f"nobody could reach {first.members[0]} as rank 0",)


def test_a_lost_node_is_inconclusive() -> None:
    """Its partner finds another; what was shown before it was lost would stand."""
    play = Play(plan(Strategy.PAIRS, 6))
    play.sweep.handle(MemberLost("n4"), 0.5)
    record = play.to_end()
    assert (record.inconclusive, record.notes) == (("n4",), ("n4: lost: its agent has vanished",))
    assert set(record.cleared_nodes) == set(record.nodes) - {"n4"}


def test_silence_is_waited_for_only_once() -> None:
    """A silent member costs its group one deadline and the pause that lets members go."""
    play = Play(plan(Strategy.PAIRS, 4), n1="silent")
    record = play.to_end()
    assert record.inconclusive == ("n1",)
    assert record.ended_at is not None
    assert record.ended_at <= FORMING_S + ABORT_GRACE_S + 10


def test_nothing_but_failures_ends_after_some_rounds() -> None:
    """When every group fails, nobody is convicted and the sweep does not go on forever."""
    everybody: dict[str, Any] = {f"n{number}": "run.raised" for number in range(8)}
    record = Play(plan(Strategy.PAIRS, 8), **everybody).to_end()
    assert record.failed_nodes == ()
    assert record.inconclusive == record.nodes
    assert len(record.rounds) <= 20


def test_an_aborted_sweep_keeps_what_it_found() -> None:
    """It ends at once, tells the members, and has the verdict UNKNOWN."""
    play = Play(plan(Strategy.PAIRS, 4))
    commands = play.sweep.handle(CalledOff("enough"), 1.0)
    assert sorted(c.node for c in commands if isinstance(c, SendCommand)) == ["n0", "n1", "n2", "n3"]
    record = play.sweep.record()
    assert (record.state, record.verdict, record.reason) == (SweepState.ABORTED, Verdict.UNKNOWN, "enough")
    assert play.sweep.handle(Ticked(), 2.0) == play.sweep.handle(MemberLost("n0"), 2.0) == []


def test_saving_is_limited_between_rounds() -> None:
    """What members say is saved at most once a second, and not at all when nothing has changed."""
    play = Play(plan(Strategy.PAIRS, 4))
    (group, *_) = play.sweep.live.values()
    accepted = Accepted(id="m", sent_at=0.0, node=group.members[0], group=group.id, address="a", port=1, ranks=1)
    assert play.sweep.handle(accepted, 0.1) == []
    saves = [
        [type(command).__name__ for command in play.sweep.handle(Ticked(), now)] for now in (0.2, SAVE_EVERY_S, 2.5)
    ]
    assert saves == [[], ["SaveSweep", "Announce", "SaveGroup", "Announce"], []]


def test_what_waits_is_saved_when_a_round_begins_and_when_nothing_waits_any_more() -> None:
    """Whoever watches would otherwise count groups twice, as formed and as waiting."""
    play = Play(plan(Strategy.PAIRS, 6), n3=0.1)
    play.step_s = SAVE_EVERY_S / 10
    while not play.sweep.is_over:
        assert [stage.waiting for stage in play.saved[-1].rounds] == [0] * len(play.saved[-1].rounds)
        play.step()
    assert len(play.saved[-1].rounds) > 1


def test_what_waits_is_saved_within_a_second() -> None:
    """Also when nothing else happens."""
    play = Play(plan(Strategy.PAIRS, 8, limits=Limits(nodes=2)))
    for _ in range(3):
        play.step()
    play.form()
    play.sweep.handle(Ticked(), play.now + 0.5)
    play._note(play.sweep.handle(Ticked(), play.now + SAVE_EVERY_S))
    (stage,) = play.saved[-1].rounds
    assert (stage.waiting, len(play.groups)) == (2, 2)


def test_what_an_ended_sweep_has_not_tried_lacks_nothing_else() -> None:
    """It would be wrong to say that there was nobody to try it with."""
    play = Play(plan(Strategy.PAIRS, 4, limits=Limits(nodes=2)))
    for _ in range(3):
        play.step()
    play.sweep.handle(CalledOff("enough"), play.now)
    record = play.sweep.record()
    assert len(record.cleared_nodes) == len(record.inconclusive) == 2
    assert record.notes == tuple(f"{node}: {UNTRIED}" for node in record.inconclusive)


def test_invitations_carry_the_task() -> None:
    """Check, parameters and deadline."""
    joins = [c.command for c in Play(plan(Strategy.WHOLE, 2)).commands if isinstance(c, SendCommand)]
    assert [(order.check, order.timeout_s, order.cause) for order in joins if isinstance(order, Join)] == [
        ("collective", 20.0, "s")
    ] * 2


def test_a_wrong_clock_is_told() -> None:
    """It is no fault in what the sweep tries, and its node is cleared all the same."""
    play = Play(plan(Strategy.PAIRS, 4), begins=100.0, ahead={"n1": 3600.0, "n2": -60.0, "n3": 2.0})
    record = play.to_end()
    assert record.verdict is Verdict.PASS
    assert record.notes == (
        "the clock of n1 is 3600 s ahead of the coordinator's",
        "the clock of n2 is 60 s behind the coordinator's",
    )


# Limits


def test_no_more_nodes_are_in_groups_than_the_limit_says() -> None:
    """The others wait, and are formed when there is room; every node still has its run."""
    play = Play(plan(Strategy.PAIRS, 10, limits=Limits(nodes=4)))
    most = 0
    while not play.sweep.is_over:
        most = max(most, sum(len(group.members) for group in play.sweep.live.values()))
        play.step()
    assert most == 4
    assert play.sweep.record().cleared_nodes == play.sweep.plan.nodes


def test_a_sweep_ends_with_the_rounds_that_it_may_take() -> None:
    """With what it has found by then; the reason says so."""
    record = Play(plan(Strategy.PAIRS, 6, limits=Limits(rounds=1)), n3=0.1).to_end()
    assert (len(record.rounds), record.state, record.failed_nodes) == (1, SweepState.FINISHED, ())
    assert record.reason == "more rounds than 1 were not asked for"
    assert "n3" in record.inconclusive


def test_node_seconds_are_spent_only_as_far_as_the_limit_goes() -> None:
    """Groups that would exceed it are not formed; what they would have told stays open."""
    record = Play(plan(Strategy.PAIRS, 10, limits=Limits(node_s=3 * 2 * TASK.expected_s))).to_end()
    assert len(record.rounds[0].groups) == 3
    assert record.spent_node_s > 0
    enough = Play(plan(Strategy.PAIRS, 10, limits=Limits(node_s=10_000.0))).to_end()
    assert (enough.verdict, enough.reason) == (Verdict.PASS, None)


# Spares and other sweeps


def test_a_spare_from_the_same_rack_stands_in() -> None:
    """The node without a partner takes the place of one that is busy, if it stands in the same rack."""
    sites = tuple(Site(f"n{number}", f"r{number // 3}", f"l{number // 3}") for number in range(6))
    record = Play(plan(Strategy.WHOLE, 5, sites=sites[:5]), n1="busy").to_end()
    assert record.rounds[0].groups[1].members == ("n0", "n2", "n3", "n4")
    play = Play(plan(Strategy.PAIRS, 3, sites=sites[:3]))
    (group,) = play.sweep.live.values()
    (idle,) = {"n0", "n1", "n2"} - set(group.members)
    play.says[group.members[0]] = "busy"
    record = play.to_end()
    first, again = record.rounds[0].groups[:2]
    assert first.formed_again
    assert set(again.members) == {group.members[1], idle}
    assert f"{idle} stands in for {group.members[0]}" in again.reasons[0]


def test_a_group_waits_for_nodes_that_others_have() -> None:
    """Until they are released; a node that is lost meanwhile is not waited for."""
    play = Play(plan(Strategy.WHOLE, 3))
    other = Sweep(plan(Strategy.WHOLE, 3), Orders(7), play.occupancy, 0.0)
    other.begin(0.0)
    assert other.form(0.0) == []
    assert other.summary().state is SweepState.PLANNED
    other.handle(MemberLost("n2"), 0.5)
    play.to_end()
    play.occupancy.new_turn()
    assert other.form(play.now)
    (group,) = other.live.values()
    assert group.members == ("n0", "n1")
    assert group.reasons == ("without n2 (lost)",)


def test_who_is_not_invited_yet_is_kept_from_others() -> None:
    """So many are invited at once; the nodes of the next wave go to nobody who comes later in the turn."""
    play = Play(plan(Strategy.PAIRS, MOST_INVITED + 4))
    assert sum(len(group.members) for group in play.sweep.live.values()) == MOST_INVITED
    other = Sweep(plan(Strategy.WHOLE, MOST_INVITED + 4), Orders(7), play.occupancy, 0.0)
    other.begin(0.0)
    invited = {node for group in play.sweep.live.values() for node in group.members}
    assert not any(play.occupancy.is_free(node, 0.0) for node in set(other.plan.nodes) - invited)


# After a restart


@pytest.mark.parametrize(
    "stage",
    [
        RoundRecord(number=1, waiting=1),
        RoundRecord(number=1, waiting=1, groups=(NOT_FORMED,)),
        RoundRecord(number=1, groups=(NOT_FORMED.model_copy(update={"ending": Ending.INTERRUPTED}),)),
    ],
)
def test_a_round_that_was_not_run_in_full_is_run_again(stage: RoundRecord) -> None:
    """Whether its group waited for nodes, waited to be formed again, or was interrupted."""
    play = Play(plan(Strategy.WHOLE, 3, limits=Limits(rounds=1)))
    record = play.sweep.record().model_copy(update={"rounds": (stage,)})
    play.occupancy = Occupancy()
    play.sweep = Sweep(play.sweep.plan, Orders(8), play.occupancy, 0.0)
    play.groups = {}
    play.sweep.take_up(record)
    play._note(play.sweep.begin(0.0))
    play.form()
    assert play.to_end().verdict is Verdict.PASS


def test_an_interrupted_sweep_goes_on_with_the_next_round() -> None:
    """What it had found stands, no group has the id of an earlier one, and what was under way is tried again."""
    play = Play(plan(Strategy.PAIRS, 6), n3=0.1)
    while len(play.sweep.summary().rounds) < 2:
        play.step()
    stored = interrupted(play.sweep.record(), 50.0)
    after = Play(plan(Strategy.PAIRS, 6), n3=0.1)
    after.now, after.occupancy = 50.0, Occupancy()
    after.sweep = Sweep(plan(Strategy.PAIRS, 6), Orders(8), after.occupancy, 50.0)
    after.groups = {}
    after.sweep.take_up(stored)
    after._note(after.sweep.begin(50.0))
    after.form()
    record = after.to_end()
    assert [failed.node for failed in record.failed_nodes] == ["n3"]
    assert record.created_at == 0.0
    assert record.rounds[0] == play.sweep.record().rounds[0]
    ids = [group.id for stage in record.rounds for group in stage.groups]
    assert len(ids) == len(set(ids))
    assert {group.ending for group in record.rounds[1].groups} == {Ending.INTERRUPTED}


def test_an_interrupted_sweep_can_end_with_what_it_had_found() -> None:
    """The verdicts of its groups stand, also of those that count as slow, and so does whom it has cleared."""
    play = Play(plan(Strategy.PAIRS, 6), n3=0.1)
    while len(play.sweep.summary().rounds) < 2:
        play.step()
    before = play.sweep.record()
    after = Sweep(plan(Strategy.PAIRS, 6), Orders(8), Occupancy(), 50.0)
    after.take_up(interrupted(before, 50.0))
    after.give_up("enough", 50.0)
    record = after.record()
    assert (record.state, record.reason, record.ended_at) == (SweepState.ABORTED, "enough", 50.0)
    assert (record.rounds[0], record.cleared_nodes) == (before.rounds[0], before.cleared_nodes)
    assert any(group.slow for group in record.rounds[0].groups)
