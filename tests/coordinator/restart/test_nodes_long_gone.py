"""Nodes that left long ago are remembered no more, neither by the coordinator nor in its database."""

import pytest
from sqlalchemy import select
from tests.coordinator.restart.lives import inventory, presence

from muster.config import StoreSettings
from muster.model import ServiceState
from muster.transition import Effect, Mark, SchedulerNode
from muster_coordinator.model.events import RetentionEnded
from muster_coordinator.model.quarantine_events import HoldRequested, NodeNotListed, NodeSurveyed
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.tables import CASES, LEVELS, NODES, RUNS, STREAMS

DAY = 86_400.0
KEEP = StoreSettings(keep_days=10, keep_findings_days=100)


async def thin(lives):
    """Thins as the coordinator does, which is told what to remember no more."""
    ended: list[RetentionEnded] = []
    await Retention(lives.store.database, KEEP, lambda: lives.now, ended.append).thin()
    await lives.feed(*ended)
    await Retention(lives.store.database, KEEP, lambda: lives.now, ended.append).thin()


async def list_nodes(lives, *nodes, actor="kubernetes"):
    """A scheduler has these nodes."""
    for node in nodes:
        await lives.feed(NodeSurveyed(actor=actor, node=SchedulerNode(node=node, mark=Mark.NONE)))


async def leave(lives, node):
    """A node falls silent, and its scheduler has it no more."""
    await list_nodes(lives, node)
    await lives.feed(presence(node, online=False), NodeNotListed(actor="kubernetes", node=node))
    assert lives.fleet.case(node).left


async def pass_days(lives, days):
    """So many days later, when the nodes that are there are heard again."""
    lives.now += days * DAY
    await lives.feed(*map(presence, ("n1", "n2", "n3")))


async def stored(lives, *tables):
    """The nodes of which there is anything in these tables."""
    found = set()
    async with lives.store.database.engine.connect() as connection:
        for table in tables:
            found |= set(await connection.scalars(select(table.c.name if table is NODES else table.c.node)))
    return found


async def test_one_that_has_left_is_forgotten_after_a_while(lives):
    """Also what it has measured; its story is kept as long as all stories."""
    await leave(lives, "n4")
    await pass_days(lives, 9)
    await thin(lives)
    assert lives.fleet.case("n4") is not None
    await pass_days(lives, 2)
    await thin(lives)
    assert lives.fleet.case("n4") is None
    assert lives.fleet.node("n4", lives.now) is None
    assert await stored(lives, NODES, CASES, RUNS, STREAMS, LEVELS) == {"n1", "n2", "n3"}
    assert (await lives.store.story("n4", 100, None)).items[0].kind == "erased"
    await lives.begin()
    assert lives.fleet.case("n4") is None


async def test_it_is_a_new_node_when_it_comes_again(lives):
    """Although its agent goes on where it was."""
    await leave(lives, "n4")
    await pass_days(lives, 11)
    await thin(lives)
    await lives.feed(presence("n4"), lives.run("n4"))
    assert lives.state("n4") is ServiceState.ACCEPTING
    await lives.begin()
    assert lives.state("n4") is ServiceState.ACCEPTING


async def test_what_the_broker_has_kept_of_it_brings_it_not_back(lives):
    """Neither at once, nor when the coordinator starts; when it comes again, that is what it is made of."""
    await leave(lives, "n4")
    await pass_days(lives, 11)
    await thin(lives)
    for _ in range(2):
        await lives.feed(inventory("n4", kept=True))
        assert lives.fleet.case("n4") is None
        await lives.begin()
    await lives.feed(inventory("n4", kept=True), presence("n4"), lives.run("n4"))
    assert lives.state("n4") is ServiceState.IN_SERVICE


@pytest.mark.parametrize("why", ["held", "was out"])
async def test_what_must_be_remembered_is_remembered_for_longer(lives, why):
    """That somebody holds it, and how often it was out: it may come again."""
    if why == "held":
        await lives.feed(HoldRequested(node="n4", by="ann", reason="a fan"))
    else:
        await lives.told(await lives.cordon("n4"), kubernetes=Effect.DONE)
    await leave(lives, "n4")
    await pass_days(lives, 99)
    await thin(lives)
    case = lives.fleet.case("n4")
    assert case.hold or case.cordoned_at
    await pass_days(lives, 2)
    await thin(lives)
    assert lives.fleet.case("n4") is None


async def test_one_that_is_only_silent_is_remembered_for_longer(lives):
    """Nobody has said that it left: it is shown as lost for as long as what it has found is kept."""
    await lives.feed(presence("n4", online=False))
    await pass_days(lives, 99)
    await thin(lives)
    assert lives.fleet.case("n4") is not None
    await pass_days(lives, 2)
    await thin(lives)
    assert lives.fleet.case("n4") is None


async def test_one_that_a_scheduler_has_stays(lives):
    """However long it has been silent: somebody should look after it."""
    await list_nodes(lives, "n4")
    await lives.feed(presence("n4", online=False))
    await pass_days(lives, 500)
    await thin(lives)
    assert lives.fleet.case("n4").lost_at is not None


async def test_it_counts_no_more(lives):
    """Of a silent node that nobody has declared gone, the budget waits for its return until then."""
    await lives.feed(presence("n4", online=False))
    assert (lives.fleet.quarantine_view().nodes, lives.fleet.quarantine_view().away) == (4, 1)
    await pass_days(lives, 101)
    await thin(lives)
    assert (lives.fleet.quarantine_view().nodes, lives.fleet.quarantine_view().away) == (3, 0)
