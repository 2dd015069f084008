"""How long a node that has older runs to deliver is waited for: not for ever, whatever it delivers."""

import pytest

from muster_coordinator.quarantine.backlogs import CATCH_UP_S, LONGEST_CATCH_UP_S, Backlogs

NOW = 1_000_000.0


@pytest.fixture
def backlogs() -> Backlogs:
    """A coordinator has started over what is stored of `a` and `b`."""
    backlogs = Backlogs()
    backlogs.begin(["a", "b"])
    backlogs.pass_time(NOW)
    return backlogs


def waits(backlogs: Backlogs, now: float) -> str:
    """The nodes that are catching up at this time."""
    backlogs.pass_time(now)
    return "".join(node for node in "abc" if node in backlogs.catching_up)


def test_a_node_that_is_heard_late_has_its_own_time(backlogs: Backlogs) -> None:
    """Its agent took a minute to reach the broker; `b` is not heard at all."""
    backlogs.note_heard("c", NOW)
    backlogs.note_heard("a", NOW + 60)
    assert waits(backlogs, NOW + CATCH_UP_S - 1) == "ab"
    assert waits(backlogs, NOW + CATCH_UP_S) == "a"
    assert waits(backlogs, NOW + 60 + CATCH_UP_S) == ""


def test_a_node_is_waited_for_as_long_as_its_runs_come_nearer(backlogs: Backlogs) -> None:
    """Up to an hour: a node could come nearer by a millisecond with each run."""
    backlogs.note_heard("a", NOW)
    for minute in range(60):
        now = NOW + 60 * minute
        backlogs.note_delivered("a", now - 5_000 + minute, now)
        assert "a" in waits(backlogs, now + 59)
    assert waits(backlogs, NOW + LONGEST_CATCH_UP_S) == ""


def test_runs_that_come_no_nearer_count_for_nothing(backlogs: Backlogs) -> None:
    """The node makes runs faster than the coordinator takes them, or delivers the same ones again and again."""
    backlogs.note_heard("a", NOW)
    for second in range(200):
        backlogs.note_delivered("a", NOW - 500 + second, NOW + second)
    assert waits(backlogs, NOW + CATCH_UP_S) == ""


def test_a_node_that_took_too_long_is_not_waited_for_at_once(backlogs: Backlogs) -> None:
    """Otherwise an agent that crashes and starts again and again would never be cordoned. An hour later it is."""
    backlogs.note_heard("a", NOW)
    assert waits(backlogs, NOW + CATCH_UP_S) == ""
    backlogs.note_incomplete("a", NOW + 1_000)
    assert waits(backlogs, NOW + 1_000) == ""
    backlogs.note_incomplete("a", NOW + 2 * LONGEST_CATCH_UP_S)
    assert waits(backlogs, NOW + 2 * LONGEST_CATCH_UP_S) == "a"


def test_a_node_that_has_caught_up_may_fall_behind_again(backlogs: Backlogs) -> None:
    """It was complete in between, so it could have been cordoned then."""
    backlogs.note_heard("a", NOW)
    backlogs.note_complete("a")
    assert waits(backlogs, NOW + 200) == ""
    backlogs.note_incomplete("a", NOW + 200)
    assert waits(backlogs, NOW + 200) == "a"


def test_a_silent_node_that_is_heard_after_its_time_delivers_first(backlogs: Backlogs) -> None:
    """It was off while the coordinator started, and its outbox has the passes from before that."""
    backlogs.note_heard("a", NOW)
    assert waits(backlogs, NOW + 10_000) == ""
    backlogs.note_heard("b", NOW + 10_000)
    assert waits(backlogs, NOW + 10_000) == "b"


@pytest.mark.parametrize("passed_s", [0.0, 60.0])
def test_a_clock_that_is_set_back_makes_no_wait_longer(backlogs: Backlogs, passed_s: float) -> None:
    """The clock was an hour ahead when the node was heard, and is set right before or while the node delivers."""
    backlogs.note_heard("a", NOW)
    assert waits(backlogs, NOW + passed_s) == "ab"
    right = NOW + passed_s - 3_600
    assert waits(backlogs, right) == "ab"
    assert waits(backlogs, right + CATCH_UP_S - passed_s - 1) == "ab"
    assert waits(backlogs, right + CATCH_UP_S - passed_s) == ""
