"""When a heartbeat is due, and which ones the broker keeps."""

import math

from muster_agent.decide.heartbeat_timing import KEPT_EVERY_S, HeartbeatTiming


def connected(at: float = 0.0, outbox: int = 0) -> HeartbeatTiming:
    """The first heartbeat was sent."""
    timing = HeartbeatTiming(10.0)
    timing.connected()
    assert timing.due <= at
    assert timing.is_to_be_kept(at)
    timing.sent(outbox, 0, at, kept=True)
    return timing


def test_a_heartbeat_follows_another() -> None:
    """After the interval."""
    assert connected().due == 10.0


def test_a_report_is_a_sign_of_life() -> None:
    """The next heartbeat is due an interval after it."""
    timing = connected()
    timing.reported(4.0)
    assert timing.due == 14.0


def test_while_runs_wait_the_heartbeat_says_so() -> None:
    """The coordinator waits to hear that none does any more."""
    timing = connected(outbox=3)
    timing.reported(4.0)
    assert timing.due == 10.0


def test_a_heartbeat_waits_for_a_report_that_makes_it_needless() -> None:
    """For so long that the node is not lost by it; then it goes alone."""
    timing = connected()
    assert [timing.due_beside(report_due, 0) for report_due in (9.0, 18.0, 18.1, math.inf)] == [18.0, 18.0, 10.0, 10.0]
    timing.reported(17.0)
    assert timing.due_beside(math.inf, 0) == 27.0


def test_a_heartbeat_that_has_news_waits_for_no_report() -> None:
    """The one before said that runs wait."""
    assert connected(outbox=3).due_beside(11.0, 0) == 10.0


def test_a_heartbeat_says_soon_that_runs_were_dropped() -> None:
    """Reports do not say it. It goes an interval after the last one, once for each change."""
    timing = connected()
    timing.reported(4.0)
    assert [timing.due_beside(5.0, drops) for drops in (0, 1)] == [22.0, 10.0]
    timing.sent(0, 1, 10.0, kept=False)
    timing.reported(15.0)
    assert [timing.due_beside(16.0, drops) for drops in (1, 2)] == [33.0, 20.0]


def test_the_broker_keeps_one_every_five_minutes() -> None:
    """And the first of each connection."""
    timing = connected()
    assert not timing.is_to_be_kept(KEPT_EVERY_S - 1)
    timing.sent(0, 0, KEPT_EVERY_S - 1, kept=False)
    assert timing.is_to_be_kept(KEPT_EVERY_S)
    timing.sent(0, 0, KEPT_EVERY_S, kept=True)
    timing.connected()
    assert timing.is_to_be_kept(KEPT_EVERY_S + 1)
