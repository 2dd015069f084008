"""A sweep's rounds, and how groups that could not be formed are formed again."""

from typing import Any

from tests.cases import cases
from tests.coordinator.sweeps.play import Play, plan

from muster.model import Verdict
from muster.wire.messages import Accepted, Join
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.events import SendCommand, Ticked
from muster_coordinator.model.sweep_records import Ending, SweepState
from muster_coordinator.sweeps.formation import MAX_REFORMED
from muster_coordinator.sweeps.group import ABORT_GRACE_S, FORMING_S
from muster_coordinator.sweeps.group_events import CalledOff, MemberLost
from muster_coordinator.sweeps.sweep import SAVE_EVERY_S


@cases("strategy", Strategy)
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
    record = Play(plan(Strategy.SINGLE, 6), n1="wrong", n2="run.raised", n3="run.skipped").to_end()
    assert [(failed.node, failed.code) for failed in record.failed_nodes] == [("n1", "collective.failed")]
    assert (record.inconclusive, record.cleared_nodes) == (("n2", "n3"), ("n0", "n4", "n5"))
    assert record.notes == (
        "n2: n2: run.raised happened; it needs a good run alone",
        "n3: run.skipped: run.skipped happened",
    )


def test_a_whole_group_passes_although_nothing_is_compared() -> None:
    """It says that its nodes work together. A pair of another strategy is asked for more."""
    whole, pair = (Play(plan(strategy, 2)).to_end() for strategy in (Strategy.WHOLE, Strategy.ADAPTIVE))
    assert (whole.verdict, pair.verdict) == (Verdict.PASS, Verdict.UNKNOWN)
    assert whole.smallest_loss == pair.smallest_loss == 1.0
    assert pair.inconclusive == pair.nodes


def test_a_whole_group_that_fails_convicts_nobody() -> None:
    """All are suspects and inconclusive."""
    record = Play(plan(Strategy.WHOLE, 4), n1="run.killed").to_end()
    assert (record.suspects, record.failed_nodes) == (("n1",), ())
    assert record.inconclusive == record.nodes
    record = Play(plan(Strategy.WHOLE, 3), n0="wrong", n1="wrong", n2="wrong").to_end()
    assert record.suspects == record.inconclusive == record.nodes
    assert record.verdict is Verdict.UNKNOWN


def test_a_whole_group_is_formed_again_without_who_declined() -> None:
    """In the same round; who was left out is inconclusive with the reason, the others are cleared."""
    record = Play(plan(Strategy.WHOLE, 5), n2="busy").to_end()
    first, again = record.rounds[0].groups
    assert (first.ending, again.members) == (Ending.NOT_FORMED, ("n0", "n1", "n3", "n4"))
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


def test_a_late_coordinator_finds_nobody_silent() -> None:
    """The invitations took longer to be stored than members have to answer; the sweep goes on as if nothing was."""
    play = Play(plan(Strategy.PAIRS, 6), n3="wrong")
    for second in range(1, 16):
        play.now = float(second)
        play.sweep.handle(Ticked(lost_s=1.0), play.now)
    record = play.to_end()
    assert [failed.node for failed in record.failed_nodes] == ["n3"]
    assert set(record.cleared_nodes) == set(record.nodes) - {"n3"}
    assert not record.absent


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
