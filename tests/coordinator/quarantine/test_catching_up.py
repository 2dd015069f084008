"""How long a node that has older runs to deliver is waited for: not for ever, whatever it delivers."""

import pytest

from muster_coordinator.quarantine.catching_up import CATCH_UP_S, LONGEST_CATCH_UP_S, CatchingUp

NOW = 1_000_000.0


@pytest.fixture
def catching_up() -> CatchingUp:
    """A coordinator has started over what is stored of `a` and `b`."""
    catching_up = CatchingUp()
    catching_up.begin(["a", "b"])
    catching_up.pass_time(NOW)
    return catching_up


def waits(catching_up: CatchingUp, now: float) -> str:
    """The nodes that are catching up at this time."""
    catching_up.pass_time(now)
    return "".join(node for node in "abc" if node in catching_up)


def test_a_node_that_is_heard_late_has_its_own_time(catching_up: CatchingUp) -> None:
    """Its agent took a minute to reach the broker; `b` is not heard at all."""
    catching_up.note_heard("c", NOW)
    catching_up.note_heard("a", NOW + 60)
    assert waits(catching_up, NOW + CATCH_UP_S - 1) == "ab"
    assert waits(catching_up, NOW + CATCH_UP_S) == "a"
    assert waits(catching_up, NOW + 60 + CATCH_UP_S) == ""


def test_a_node_is_waited_for_as_long_as_its_runs_come_nearer(catching_up: CatchingUp) -> None:
    """Up to an hour: a node could come nearer by a millisecond with each run."""
    catching_up.note_heard("a", NOW)
    for minute in range(60):
        now = NOW + 60 * minute
        catching_up.note_delivered("a", now - 5_000 + minute, now)
        assert "a" in waits(catching_up, now + 59)
    assert waits(catching_up, NOW + LONGEST_CATCH_UP_S) == ""


def test_runs_that_come_no_nearer_count_for_nothing(catching_up: CatchingUp) -> None:
    """The node makes runs faster than the coordinator takes them, or delivers the same ones again and again."""
    catching_up.note_heard("a", NOW)
    for second in range(200):
        catching_up.note_delivered("a", NOW - 500 + second, NOW + second)
    assert waits(catching_up, NOW + CATCH_UP_S) == ""


def test_a_node_that_took_too_long_is_not_waited_for_at_once(catching_up: CatchingUp) -> None:
    """Otherwise an agent that crashes and starts again and again would never be cordoned. An hour later it is."""
    catching_up.note_heard("a", NOW)
    assert waits(catching_up, NOW + CATCH_UP_S) == ""
    catching_up.note_incomplete("a", NOW + 1_000)
    assert waits(catching_up, NOW + 1_000) == ""
    catching_up.note_incomplete("a", NOW + 2 * LONGEST_CATCH_UP_S)
    assert waits(catching_up, NOW + 2 * LONGEST_CATCH_UP_S) == "a"


def test_a_node_that_has_caught_up_may_fall_behind_again(catching_up: CatchingUp) -> None:
    """It was complete in between, so it could have been cordoned then."""
    catching_up.note_heard("a", NOW)
    catching_up.note_complete("a")
    assert waits(catching_up, NOW + 200) == ""
    catching_up.note_incomplete("a", NOW + 200)
    assert waits(catching_up, NOW + 200) == "a"


def test_a_silent_node_that_is_heard_after_its_time_delivers_first(catching_up: CatchingUp) -> None:
    """It was off while the coordinator started, and its outbox has the passes from before that."""
    catching_up.note_heard("a", NOW)
    assert waits(catching_up, NOW + 10_000) == ""
    catching_up.note_heard("b", NOW + 10_000)
    assert waits(catching_up, NOW + 10_000) == "b"


@pytest.mark.parametrize("passed_s", [0.0, 60.0])
def test_a_clock_that_is_set_back_makes_no_wait_longer(catching_up: CatchingUp, passed_s: float) -> None:
    """The clock was an hour ahead when the node was heard, and is set right before or while the node delivers."""
    catching_up.note_heard("a", NOW)
    assert waits(catching_up, NOW + passed_s) == "ab"
    right = NOW + passed_s - 3_600
    assert waits(catching_up, right) == "ab"
    assert waits(catching_up, right + CATCH_UP_S - passed_s - 1) == "ab"
    assert waits(catching_up, right + CATCH_UP_S - passed_s) == ""
