"""Nodes that a group gets from elsewhere, and those that other sweeps have."""

from tests.coordinator.sweeps.play import Play, plan

from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.probes import Site
from muster_coordinator.model.sweep_records import SweepState
from muster_coordinator.sweeps.group_events import MemberLost
from muster_coordinator.sweeps.sweep import MOST_INVITED, Sweep


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
