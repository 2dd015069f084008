"""The log of a coordinator that is never restarted: it begins anew, so that what is old can go."""

from tests.coordinator.restart.lives import NODES, acts, presence

from muster.config import StoreSettings
from muster.model import ServiceState
from muster.transition import Effect
from muster_coordinator.model.events import SaveStep, Ticked
from muster_coordinator.model.quarantine_events import Beginning
from muster_coordinator.quarantine.replay import first_difference
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.stored_cases import read_log

DAY = 86_400.0


async def stored_log(lives):
    async with lives.store.database.engine.connect() as connection:
        return await read_log(connection, lives.fleet.epoch)


async def pass_a_day(lives):
    """What is done meanwhile; every node is there."""
    lives.now += DAY
    return await lives.feed(*map(presence, NODES), Ticked())


async def live_for_days(lives, days):
    """Every day another node is taken out."""
    for day in range(days):
        await pass_a_day(lives)
        node = f"n{1 + day}"
        await lives.feed(lives.run(node))
        await lives.told(await lives.cordon(node), kubernetes=Effect.DONE)


async def test_it_begins_anew_every_day(lives):
    """And can be gone through as a whole."""
    await live_for_days(lives, 2)
    log = await stored_log(lives)
    assert [step.event.kind for step in log if isinstance(step.event, Beginning)] == ["restored", "renewed", "renewed"]
    assert first_difference(log, lives.fleet.epoch) is None


async def test_what_is_left_when_the_old_part_has_gone_can_be_gone_through(lives):
    """It is less than it was, and still the same is decided."""
    await live_for_days(lives, 3)
    whole = await stored_log(lives)
    keep = StoreSettings(keep_days=1.5)
    await Retention(lives.store.database, keep, lambda: lives.now, lambda _: None).thin()
    left = await stored_log(lives)
    assert left == whole[-len(left) :]
    assert len(left) < len(whole)
    assert first_difference(left, lives.fleet.epoch) is None


async def test_nothing_is_decided_by_that(lives):
    """Neither about a node that is out nor about one that is in, and nobody is told anything."""
    await live_for_days(lives, 1)
    said = await pass_a_day(lives)
    begun, *_ = [it.step for it in said if isinstance(it, SaveStep)]
    assert (begun.event.kind, begun.decisions) == ("renewed", ())
    assert acts(said) == []
    assert [lives.state(node) for node in ("n1", "n2")] == [ServiceState.CORDONED, ServiceState.IN_SERVICE]


async def test_a_clock_that_was_set_back_does_not_stop_it(lives):
    """A day later it begins anew, however far the clock is behind what it was."""
    lives.now -= 400 * DAY
    await lives.feed(Ticked())
    begun = [step.at for step in await stored_log(lives) if isinstance(step.event, Beginning)]
    assert begun[-1] < begun[0]
