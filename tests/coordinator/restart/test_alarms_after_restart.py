"""An alarm that not every plugin took before the coordinator was killed is sent again by the next one, and no other."""

import pytest

from muster.model import Verdict
from muster.transition import Effect
from muster_coordinator.model.events import Announce, Ticked
from muster_coordinator.model.quarantine_events import AlarmDelivered, AlarmTaken, ResendAlarm, SendAlarm
from muster_coordinator.quarantine.alarms import CALM_S


@pytest.fixture
async def begun(lives):
    """An alarm has begun: n2 is not drained, as n1 is away and the budget is one node."""
    transition = await lives.cordon("n1")
    await lives.told(transition, kubernetes=Effect.DONE)
    await lives.feed(lives.run("n2", Verdict.FAIL))
    said = await lives.feed(Ticked())
    (sent,) = [command for command in said if isinstance(command, SendAlarm)]
    assert Announce("alarm", sent.alarm) in said, "for the event stream"
    assert "1 faulty node not drained" in sent.alarm.text
    return sent.alarm


async def sent_again(lives):
    """What the next coordinator sends again."""
    again = [command for command in await lives.begin() if isinstance(command, ResendAlarm)]
    return [(command.alarm, command.taken_by) for command in again]


async def test_a_begin_that_nobody_took_is_sent_again(lives, begun):
    """By every coordinator, until it is delivered."""
    assert await sent_again(lives) == [(begun, ())]
    assert await sent_again(lives) == [(begun, ())]


async def test_a_plugin_that_took_it_is_left_out(lives, begun):
    """Another one could not be reached so far."""
    await lives.feed(AlarmTaken(alarm=begun, plugin="pager"))
    assert await sent_again(lives) == [(begun, ("pager",))]


async def test_what_was_delivered_is_not_sent_again(lives, begun):
    """The alarm stands, and is not raised again."""
    await lives.feed(AlarmTaken(alarm=begun, plugin="pager"), AlarmDelivered(alarm=begun))
    assert await sent_again(lives) == []
    assert not [command for command in await lives.feed(Ticked()) if isinstance(command, SendAlarm)]


async def test_an_end_that_nobody_took_is_sent_again(lives, begun):
    """Alone: whoever did not take the begin need not know of it any more. What was taken was the begin."""
    await lives.feed(AlarmTaken(alarm=begun, plugin="pager"))
    await lives.feed(lives.run("n2"), lives.run("n2"))
    await lives.feed(Ticked())
    lives.now += CALM_S
    (over,) = [command.alarm for command in await lives.feed(Ticked()) if isinstance(command, SendAlarm)]
    await lives.feed(AlarmDelivered(alarm=begun))
    assert over.is_over
    assert await sent_again(lives) == [(over, ())]
