"""A sweep's rounds, and how groups that could not be formed are formed again."""

from typing import Any

import pytest

from muster.model import Finding, RankResult, Severity, Verdict
from muster.wire.messages import Accepted, AnyGroupReply, Declined, Finished, Join, Ready
from muster_coordinator.events import Command, SaveSweep, SendCommand, Ticked
from muster_coordinator.orders import Orders
from muster_coordinator.sweep_records import Ending, SweepRecord, SweepState
from muster_coordinator.sweeps.formation import MAX_REFORMED, Plan, Strategy, first_round
from muster_coordinator.sweeps.group import ABORT_GRACE_S, FORMING_S, CalledOff, MemberLost, Task
from muster_coordinator.sweeps.sweep import MAX_ROUNDS, SAVE_EVERY_S, Sweep

TASK = Task(check="collective", params={}, timeout_s=20.0, objective="busbw_gbps", cause="s")


def plan(strategy: Strategy, count: int, name: str = "s") -> Plan:
    return Plan(id=name, strategy=strategy, task=TASK, nodes=tuple(f"n{number}" for number in range(count)))


class Play:
    """Plays the members of a sweep's groups: each does at once what `says` has for it, or goes through and passes.

    What a node says is a reason to decline with, a finding that its ranks end with, or the GB/s that it measures.
    """

    def __init__(self, strategy: Strategy, count: int, **says: Any) -> None:
        self.now = 0.0
        self.says = says
        self.joined: list[tuple[str, ...]] = []
        self.sweep = Sweep(plan(strategy, count), Orders(7), 0.0)
        self.saved: list[SweepRecord] = []
        self.commands = self._note(self.sweep.begin(0.0))

    def to_end(self) -> SweepRecord:
        """The record when the sweep has ended."""
        for _ in range(1000):
            if self.sweep.state is not SweepState.RUNNING:
                break
            for group in list(self.sweep._live.values()):
                for node in group.members:
                    for reply in self._replies(node, group.id):
                        self._note(self.sweep.handle(reply, self.now))
            self.now += 1.0
            self._note(self.sweep.handle(Ticked(), self.now))
        record = self.sweep.record()
        assert self.saved[-1] == record
        return record

    def _note(self, commands: list[Command]) -> list[Command]:
        self.saved += [command.record for command in commands if isinstance(command, SaveSweep)]
        return commands

    def _replies(self, node: str, group: str) -> list[AnyGroupReply]:
        head: dict[str, Any] = {"id": "m", "sent_at": self.now, "node": node, "group": group}
        live = self.sweep._live.get(group)
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


@pytest.mark.parametrize("count", range(2, 12))
def test_the_first_round_pairs_everybody_once(count: int) -> None:
    """Pairs are disjoint, in topology order inside, differ by sweep and are the same in a replay."""
    formed = [formation.members for formation in first_round(plan(Strategy.PAIRS, count))]
    flat = [node for members in formed for node in members]
    assert len(flat) == len(set(flat)) == count - count % 2
    assert all(int(one[1:]) < int(other[1:]) for one, other in formed)
    assert formed == [formation.members for formation in first_round(plan(Strategy.PAIRS, count))]
    draws = {tuple(f.members for f in first_round(plan(Strategy.PAIRS, 8, f"s{draw}"))) for draw in range(20)}
    assert len(draws) > 10


@pytest.mark.parametrize("strategy", Strategy)
def test_a_healthy_fleet_passes_in_one_round(strategy: Strategy) -> None:
    """Everybody is cleared, and every group says why it was formed."""
    record = Play(strategy, 4).to_end()
    assert (record.state, record.verdict, len(record.rounds)) == (SweepState.FINISHED, Verdict.PASS, 1)
    assert record.cleared_nodes == record.nodes
    assert all(group.reasons for stage in record.rounds for group in stage.groups)


def test_pairs_name_the_failing_node_in_two_rounds() -> None:
    """The second round pairs the suspects with nodes that passed."""
    record = Play(Strategy.PAIRS, 6, n3=0.1).to_end()
    assert len(record.rounds) == 2
    (failed,) = record.failed_nodes
    assert (failed.node, failed.code, record.verdict) == ("n3", "collective.slow", Verdict.FAIL)
    assert set(record.cleared_nodes) == set(record.nodes) - {"n3"}
    slow = [group for stage in record.rounds for group in stage.groups if "n3" in group.members]
    assert all(group.verdict is Verdict.FAIL and "less than half" in group.reasons[-1] for group in slow)


def test_single_convicts_by_own_evidence_only() -> None:
    """FAIL convicts; a run that could not tell or was skipped leaves its node inconclusive, with the reason."""
    record = Play(Strategy.SINGLE, 5, n1="wrong", n2="run.raised", n3="run.skipped").to_end()
    assert [(failed.node, failed.code) for failed in record.failed_nodes] == [("n1", "collective.failed")]
    assert (record.inconclusive, record.cleared_nodes) == (("n2", "n3"), ("n0", "n4"))
    assert record.notes == ("n2: n2: run.raised happened", "n3: run.skipped: run.skipped happened")


def test_a_whole_group_that_fails_convicts_nobody() -> None:
    """All are suspects and inconclusive."""
    record = Play(Strategy.WHOLE, 3, n1="run.killed").to_end()
    assert (record.suspects, record.failed_nodes) == (("n1",), ())
    assert record.inconclusive == record.nodes
    record = Play(Strategy.WHOLE, 3, n0="wrong", n1="wrong", n2="wrong").to_end()
    assert record.suspects == record.inconclusive == record.nodes
    assert record.verdict is Verdict.UNKNOWN


def test_a_whole_group_is_formed_again_without_who_declined() -> None:
    """In the same round; who was left out is inconclusive with the reason, the others are cleared."""
    record = Play(Strategy.WHOLE, 4, n2="busy").to_end()
    first, again = record.rounds[0].groups
    assert (first.ending, again.members) == (Ending.NOT_FORMED, ("n0", "n1", "n3"))
    assert again.reasons == ("formed again without n2 (busy)",)
    assert (record.inconclusive, record.notes) == (("n2",), ("n2: busy: a job runs",))
    assert record.verdict is Verdict.UNKNOWN


def test_a_whole_sweep_gives_up_forming() -> None:
    """Not more often than is said."""
    play = Play(Strategy.WHOLE, 6, n0="busy")
    for node in ("n1", "n2", "n3"):
        play.says[node] = "busy"
    record = play.to_end()
    assert len(record.rounds[0].groups) <= 1 + MAX_REFORMED


def test_a_member_that_declines_leaves_its_partner_to_another() -> None:
    """Its partner is not suspected for it."""
    record = Play(Strategy.PAIRS, 6, n2="busy").to_end()
    assert record.inconclusive == ("n2",)
    assert set(record.cleared_nodes) == set(record.nodes) - {"n2"}


def test_a_pair_that_cannot_connect_is_turned_round_and_then_evidence() -> None:
    """Rank 0 changes once; then it counts, and a node that nobody can connect to is convicted by two partners."""
    record = Play(Strategy.PAIRS, 6, n1="isolated").to_end()
    assert [(failed.node, failed.code) for failed in record.failed_nodes] == [("n1", "collective.failed")]
    assert set(record.cleared_nodes) == set(record.nodes) - {"n1"}
    for stage in record.rounds:
        first, turned = (group for group in stage.groups if "n1" in group.members)
        assert turned.members == first.members[::-1]
        assert turned.reasons == (f"nobody could reach {first.members[0]} as rank 0",)


def test_a_lost_node_is_inconclusive() -> None:
    """Its partner finds another; what was shown before it was lost would stand."""
    play = Play(Strategy.PAIRS, 6)
    play.sweep.handle(MemberLost("n4"), 0.5)
    record = play.to_end()
    assert (record.inconclusive, record.notes) == (("n4",), ("n4: lost: its agent has vanished",))
    assert set(record.cleared_nodes) == set(record.nodes) - {"n4"}


def test_silence_is_waited_for_only_once() -> None:
    """A silent member costs its group one deadline and the pause that lets members go."""
    play = Play(Strategy.PAIRS, 4, n1="silent")
    record = play.to_end()
    assert record.inconclusive == ("n1",)
    assert record.ended_at is not None
    assert record.ended_at <= FORMING_S + ABORT_GRACE_S + 10


def test_nothing_but_failures_ends_after_some_rounds() -> None:
    """When every group fails, nobody is convicted and the sweep does not go on forever."""
    record = Play(Strategy.PAIRS, 8, **{f"n{number}": "run.raised" for number in range(8)}).to_end()
    assert record.failed_nodes == ()
    assert record.inconclusive == record.nodes
    assert len(record.rounds) <= MAX_ROUNDS


def test_an_aborted_sweep_keeps_what_it_found() -> None:
    """It ends at once, tells the members, and has the verdict UNKNOWN."""
    play = Play(Strategy.PAIRS, 4)
    commands = play.sweep.handle(CalledOff("enough"), 1.0)
    assert sorted(c.node for c in commands if isinstance(c, SendCommand)) == ["n0", "n1", "n2", "n3"]
    record = play.sweep.record()
    assert (record.state, record.verdict, record.reason) == (SweepState.ABORTED, Verdict.UNKNOWN, "enough")
    assert play.sweep.handle(Ticked(), 2.0) == play.sweep.handle(MemberLost("n0"), 2.0) == []


def test_saving_is_limited_between_rounds() -> None:
    """What members say is saved at most once a second, and not at all when nothing has changed."""
    play = Play(Strategy.PAIRS, 4)
    (group, *_) = play.sweep._live.values()
    accepted = Accepted(id="m", sent_at=0.0, node=group.members[0], group=group.id, address="a", port=1, ranks=1)
    assert play.sweep.handle(accepted, 0.1) == []
    saves = [
        [type(command).__name__ for command in play.sweep.handle(Ticked(), now)] for now in (0.2, SAVE_EVERY_S, 2.5)
    ]
    assert saves == [[], ["SaveSweep", "Announce"], []]


def test_invitations_carry_the_task() -> None:
    """Check, parameters and deadline."""
    joins = [c.command for c in Play(Strategy.WHOLE, 2).commands if isinstance(c, SendCommand)]
    assert [(order.check, order.timeout_s, order.cause) for order in joins if isinstance(order, Join)] == [
        ("collective", 20.0, "s")
    ] * 2
