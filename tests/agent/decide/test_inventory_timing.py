"""When the agent sends its inventory."""

import math

from muster.wire.messages import DEFLATE, KEPT_NOTHING, CoordinatorPresence
from muster_agent.decide.inventory_timing import WAITS_S, InventoryTiming


def said(*accepts: str, epoch: int = 1, online: bool = True) -> CoordinatorPresence:
    return CoordinatorPresence(sent_at=1.0, online=online, epoch=epoch, accepts=accepts)


def sent_to(*accepts: str, deflated: bool = False) -> InventoryTiming:
    timing = InventoryTiming()
    timing.connected(100.0)
    timing.heard(said(*accepts))
    timing.sent(deflated=deflated)
    return timing


def test_it_waits_for_the_first_word_of_a_coordinator():
    """For a second at most; without a connection, for ever."""
    timing = InventoryTiming()
    assert timing.due() == math.inf
    timing.connected(100.0)
    assert timing.due() == 100.0 + WAITS_S
    timing.heard(said())
    assert timing.due() == -math.inf


def test_it_goes_once_in_a_connection():
    """And again when it has changed, or in the next connection."""
    timing = sent_to()
    assert (timing.is_sent, timing.due()) == (True, math.inf)
    timing.changed()
    assert (timing.is_sent, timing.due()) == (False, -math.inf)
    timing.sent(deflated=False)
    timing.connected(200.0)
    assert (timing.is_sent, timing.due()) == (False, 200.0 + WAITS_S)


def test_a_coordinator_that_cannot_read_it_gets_it_again():
    """What the broker keeps is compressed; one that is going offline reads nothing more."""
    timing = sent_to(DEFLATE, deflated=True)
    timing.heard(said(DEFLATE))
    timing.heard(said(online=False))
    assert timing.is_sent
    timing.heard(said())
    assert not timing.is_sent


def test_a_coordinator_that_got_nothing_from_the_broker_gets_it_once_more():
    """Each that asks; its later words ask for nothing new."""
    timing = sent_to()
    timing.heard(said(KEPT_NOTHING))
    assert timing.due() == -math.inf
    timing.sent(deflated=False)
    timing.heard(said(KEPT_NOTHING))
    assert timing.is_sent
    timing.heard(said(KEPT_NOTHING, epoch=2))
    assert not timing.is_sent
