"""What a coordinator that was killed has left behind of its decisions, and what the next one makes of it."""

import pytest
from tests.coordinator.restart.lives import NODES, acts, inventory, ordered, presence

from muster.model import ServiceState, Verdict
from muster.transition import Effect
from muster_coordinator.model.events import Ticked
from muster_coordinator.model.quarantine_events import (
    ActionEnded,
    DispatchTransition,
    ReleaseRequested,
    SaveRecord,
    SaveTransition,
)
from muster_coordinator.store.last_runs import RUNS_TO_RESTORE


async def test_a_fleet_that_is_well_begins_quietly(lives):
    """No record is written again and nobody is told anything, also when time passes."""
    begun = [*await lives.begin(), *await lives.feed(Ticked())]
    assert [type(it) for it in begun if isinstance(it, SaveRecord | SaveTransition | DispatchTransition)] == []
    assert {lives.state(node) for node in NODES} == {ServiceState.IN_SERVICE}


async def test_what_was_decided_and_not_stored_is_decided_once_more(lives):
    """The agent still has the run that was not acknowledged, and sends it again."""
    fault = lives.run("n1", Verdict.FAIL)
    assert len(acts(lives.fleet.handle(fault, lives.now))) == 1
    assert acts(await lives.begin()) == []
    assert lives.state("n1") is ServiceState.IN_SERVICE
    assert [act.record.transition.after for act in acts(await lives.feed(fault))] == [ServiceState.CORDONED]
    assert acts(await lives.feed(fault)) == []


@pytest.mark.parametrize("answered", [(), ("kubernetes",), ("kubernetes", "webhook")])
async def test_what_was_stored_and_not_told_to_all_is_told_again(lives, answered):
    """To every actor and under the same id, however many had answered."""
    transition = await lives.cordon("n1")
    for actor in answered:
        head = {"node": "n1", "transition": transition.id, "actor": actor}
        await lives.feed(ActionEnded(**head, effect=Effect.DONE, detail="so"))
    (act,) = acts(await lives.begin())
    assert act.record.transition == transition
    assert act.actors == ()
    await lives.told(transition, kubernetes=Effect.DONE)
    assert acts(await lives.begin()) == []
    assert lives.state("n1") is ServiceState.CORDONED


async def test_only_who_has_failed_is_told_again(lives):
    """At once, and not when it would have been without the restart."""
    transition = await lives.cordon("n1")
    await lives.told(transition, kubernetes=Effect.DONE, webhook=Effect.FAILED)
    (act,) = acts(await lives.begin())
    assert (act.record.transition, act.actors) == (transition, ("webhook",))


async def test_a_test_that_was_under_way_begins_again(lives):
    """When the node is heard of, under a new id; what the old one says, should it come, counts as any run does."""
    await lives.told(await lives.cordon("n1"), kubernetes=Effect.DONE)
    (old,) = ordered(await lives.feed(ReleaseRequested(node="n1", by="ann", reason="repaired")))
    assert ordered([*await lives.begin(), *await lives.feed(Ticked())]) == []
    (new,) = ordered(await lives.feed(presence("n1")))
    assert old.run != new.run
    await lives.feed(lives.run("n1", run=old.run))
    assert lives.state("n1") is ServiceState.PROBATION
    await lives.feed(lives.run("n1", run=new.run))
    assert lives.state("n1") is ServiceState.IN_SERVICE


async def test_only_the_node_itself_can_pass_its_test(lives):
    """A run of another one that bears the id of the test says nothing about it."""
    await lives.told(await lives.cordon("n1"), kubernetes=Effect.DONE)
    (test,) = ordered(await lives.feed(ReleaseRequested(node="n1", by="ann", reason="repaired")))
    await lives.feed(lives.run("n1"), lives.run("n2", run=test.run))
    assert lives.state("n1") is ServiceState.PROBATION


async def test_who_was_lost_is_lost_for_as_long(lives):
    """A restart is no sign of life, and none of a new loss, and neither is what the broker has kept."""
    await lives.feed(presence("n1", online=False))
    lost_at = lives.now
    for _ in range(2):
        await lives.begin()
        await lives.feed(inventory("n1", kept=True))
        assert lives.fleet.case("n1").lost_at == lost_at
    await lives.feed(presence("n1"))
    assert lives.fleet.case("n1").lost_at is None


async def test_a_restart_is_no_return(lives):
    """A node that is out and there all the time is not taken for repaired."""
    await lives.told(await lives.cordon("n1"), kubernetes=Effect.DONE)
    for _ in range(2):
        await lives.begin()
        await lives.feed(presence("n1"), Ticked())
    assert lives.state("n1") is ServiceState.CORDONED
    assert lives.fleet.case("n1").retest_because is None


async def test_a_clock_that_went_back_hides_no_transition(lives):
    """The latest transition is the one that the case names, whatever its time."""
    await lives.told(await lives.cordon("n1"), kubernetes=Effect.DONE)
    lives.now -= 3600.0
    (act,) = acts(await lives.feed(ReleaseRequested(node="n1", by="ann", reason="fine", untested=True)))
    (again,) = acts(await lives.begin())
    assert again.record.transition == act.record.transition


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN])
async def test_what_stands_against_a_node_stands_as_before(lives, verdict):
    """It is neither forgotten nor found once more nor newer, however many runs have said the same or nothing since."""
    await lives.cordon("n1")
    for _ in range(2 * RUNS_TO_RESTORE):
        await lives.feed(lives.run("n1", verdict))
    before = lives.fleet.case("n1")
    await lives.begin()
    assert lives.fleet.case("n1") == before
