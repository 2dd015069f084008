"""A sweep that a coordinator has left unfinished goes on, or ends with what it had found."""

import pytest
from tests.coordinator.sweeps.play import Play, plan

from muster.model import Verdict
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.sweep_records import Blame, Ending, GroupRecord, GroupState, RoundRecord, SweepState
from muster_coordinator.sweeps.occupancy import Occupancy
from muster_coordinator.sweeps.plan import SweepLimits
from muster_coordinator.sweeps.recovery import interrupted
from muster_coordinator.sweeps.sweep import Sweep

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
    play = Play(plan(Strategy.WHOLE, 4, limits=SweepLimits(rounds=1)))
    record = play.sweep.record().model_copy(update={"rounds": (stage,)})
    play.occupancy = Occupancy()
    play.sweep = Sweep(play.sweep.plan, Orders(8), play.occupancy, 0.0)
    play.groups = {}
    play.sweep.restore(record)
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
    after.sweep.restore(stored)
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
    after.restore(interrupted(before, 50.0))
    after.give_up("enough", 50.0)
    record = after.record()
    assert (record.state, record.reason, record.ended_at) == (SweepState.ABORTED, "enough", 50.0)
    assert (record.rounds[0], record.cleared_nodes) == (before.rounds[0], before.cleared_nodes)
    assert any(group.slow for group in record.rounds[0].groups)
