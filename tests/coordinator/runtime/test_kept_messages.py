"""Whether the broker gives a coordinator what it has kept."""

from muster.wire.messages import KEPT_NOTHING
from muster_coordinator.runtime.kept_messages import COMES_WITHIN_S, KeptMessages

FIRST, SECOND = 100.0 + COMES_WITHIN_S, 100.0 + 2 * COMES_WITHIN_S
"""When the first and the second subscription have shown what comes."""


def connected() -> KeptMessages:
    kept = KeptMessages()
    kept.connected(100.0)
    return kept


def test_nodes_without_a_kept_message_are_asked_once():
    """After the broker got a second chance, some seconds after each subscription and no sooner."""
    kept = connected()
    kept.heard(kept=False)
    assert not kept.is_to_be_tried(FIRST - 0.1)
    assert not kept.is_found_missing(FIRST)
    assert kept.is_to_be_tried(FIRST)
    assert not kept.is_to_be_tried(SECOND)
    assert not kept.is_found_missing(SECOND - 0.1)
    assert not kept.asks
    assert kept.is_found_missing(SECOND)
    assert kept.asks == (KEPT_NOTHING,)
    assert not kept.is_found_missing(1000.0)
    assert not kept.is_to_be_tried(1000.0)


def test_one_kept_message_shows_that_the_broker_sends_them():
    """However many other messages come."""
    kept = connected()
    kept.heard(kept=True)
    kept.heard(kept=False)
    assert not kept.is_to_be_tried(1000.0)
    assert not kept.is_found_missing(1000.0)


def test_a_new_fleet_is_not_asked():
    """Its nodes came after the coordinator; what the broker has kept of them since comes after the second try."""
    kept = connected()
    kept.heard(kept=False)
    assert kept.is_to_be_tried(FIRST)
    kept.heard(kept=True)
    assert not kept.is_found_missing(1000.0)
    assert not kept.asks


def test_without_nodes_nothing_is_missing():
    """Until the first is heard."""
    kept = connected()
    assert not kept.is_to_be_tried(1000.0)
    kept.heard(kept=False)
    assert kept.is_to_be_tried(1001.0)


def test_each_connection_is_looked_at():
    """It may lead to another broker."""
    kept = connected()
    kept.heard(kept=False)
    assert kept.is_to_be_tried(200.0)
    assert kept.is_found_missing(210.0)
    kept.connected(300.0)
    assert not kept.asks
    kept.heard(kept=False)
    assert kept.is_to_be_tried(400.0)
    kept.heard(kept=True)
    assert not kept.is_found_missing(500.0)
