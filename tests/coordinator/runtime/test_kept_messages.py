"""Whether the broker gives a coordinator what it has kept."""

from muster.wire.messages import KEPT_NOTHING
from muster_coordinator.runtime.kept_messages import COMES_WITHIN_S, KeptMessages


def connected() -> KeptMessages:
    kept = KeptMessages()
    kept.connected(100.0)
    return kept


def test_nodes_without_a_kept_message_are_asked_once():
    """Some seconds after the connection, and no sooner."""
    kept = connected()
    kept.heard(kept=False)
    assert not kept.is_found_missing(100.0 + COMES_WITHIN_S - 0.1)
    assert not kept.asks
    assert kept.is_found_missing(100.0 + COMES_WITHIN_S)
    assert kept.asks == (KEPT_NOTHING,)
    assert not kept.is_found_missing(1000.0)


def test_one_kept_message_shows_that_the_broker_sends_them():
    """However many other messages come."""
    kept = connected()
    kept.heard(kept=True)
    kept.heard(kept=False)
    assert not kept.is_found_missing(1000.0)


def test_without_nodes_nothing_is_missing():
    """Until the first is heard."""
    kept = connected()
    assert not kept.is_found_missing(1000.0)
    kept.heard(kept=False)
    assert kept.is_found_missing(1001.0)


def test_each_connection_is_looked_at():
    """It may lead to another broker."""
    kept = connected()
    kept.heard(kept=False)
    assert kept.is_found_missing(200.0)
    kept.connected(300.0)
    assert not kept.asks
    kept.heard(kept=True)
    assert not kept.is_found_missing(400.0)
