"""No more nodes at once, rounds and node-seconds than were asked for, and what has to wait for room."""

from tests.coordinator.sweeps.play import TASK, Play, plan

from muster.model import Verdict
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.events import Ticked
from muster_coordinator.model.sweep_records import SweepState
from muster_coordinator.sweeps.conclusion import UNTRIED
from muster_coordinator.sweeps.group_events import CalledOff
from muster_coordinator.sweeps.plan import SweepLimits
from muster_coordinator.sweeps.sweep import SAVE_EVERY_S


def test_no_more_nodes_are_in_groups_than_the_limit_says() -> None:
    """The others wait, and are formed when there is room; every node still has its run."""
    play = Play(plan(Strategy.PAIRS, 10, limits=SweepLimits(nodes=4)))
    most = 0
    while not play.sweep.is_over:
        most = max(most, sum(len(group.members) for group in play.sweep.live.values()))
        play.step()
    assert most == 4
    assert play.sweep.record().cleared_nodes == play.sweep.plan.nodes


def test_a_sweep_ends_with_the_rounds_that_it_may_take() -> None:
    """With what it has found by then; the reason says so."""
    record = Play(plan(Strategy.PAIRS, 6, limits=SweepLimits(rounds=1)), n3=0.1).to_end()
    assert (len(record.rounds), record.state, record.failed_nodes) == (1, SweepState.FINISHED, ())
    assert record.reason == "max_rounds 1 is reached"
    assert "n3" in record.inconclusive


def test_node_seconds_are_spent_only_as_far_as_the_limit_goes() -> None:
    """Groups that would exceed it are not formed; what they would have told stays open."""
    record = Play(plan(Strategy.PAIRS, 10, limits=SweepLimits(node_s=3 * 2 * TASK.expected_s))).to_end()
    assert len(record.rounds[0].groups) == 3
    assert record.spent_node_s > 0
    enough = Play(plan(Strategy.PAIRS, 10, limits=SweepLimits(node_s=10_000.0))).to_end()
    assert (enough.verdict, enough.reason) == (Verdict.PASS, None)


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
    play = Play(plan(Strategy.PAIRS, 8, limits=SweepLimits(nodes=2)))
    for _ in range(3):
        play.step()
    play.form()
    play.sweep.handle(Ticked(), play.now + 0.5)
    play._note(play.sweep.handle(Ticked(), play.now + SAVE_EVERY_S))
    (stage,) = play.saved[-1].rounds
    assert (stage.waiting, len(play.groups)) == (2, 2)


def test_what_an_ended_sweep_has_not_tried_lacks_nothing_else() -> None:
    """It would be wrong to say that there was nobody to try it with."""
    play = Play(plan(Strategy.PAIRS, 6, limits=SweepLimits(nodes=4)))
    for _ in range(3):
        play.step()
    play.sweep.handle(CalledOff("enough"), play.now)
    record = play.sweep.record()
    assert (len(record.cleared_nodes), len(record.inconclusive)) == (4, 2)
    assert record.notes == tuple(f"{node}: {UNTRIED}" for node in record.inconclusive)
