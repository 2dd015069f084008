"""Who was heard, and who is lost."""

import pytest

from muster_coordinator.evidence.heartbeats import LATE_S, Heartbeats


@pytest.fixture
def heartbeats() -> Heartbeats:
    """Of two nodes that are heard every 10 s; "a" was heard at 0, "b" at 5."""
    made = Heartbeats(10.0)
    made.note("a", 0.0)
    made.note("b", 5.0)
    return made


@pytest.mark.parametrize(("now", "overdue"), [(30.0, []), (30.1, ["a"]), (35.0, ["a"]), (35.1, ["a", "b"])])
def test_a_node_is_lost_after_three_heartbeats(heartbeats: Heartbeats, now: float, overdue: list[str]) -> None:
    """Whoever has been silent for longest comes first."""
    assert heartbeats.overdue(now) == overdue
    assert [node for node in ("a", "b") if heartbeats.is_lost(node, now)] == overdue


def test_a_sign_of_life_restarts_the_wait(heartbeats: Heartbeats) -> None:
    """And puts the node behind those that were heard before it."""
    heartbeats.note("a", 10.0)
    assert heartbeats.overdue(36.0) == ["b"]
    assert heartbeats.overdue(41.0) == ["b", "a"]


def test_who_is_given_up_is_lost_and_waited_for_no_more(heartbeats: Heartbeats) -> None:
    """Until it is heard again; of who was never heard the same holds."""
    heartbeats.give_up("a")
    assert heartbeats.overdue(100.0) == ["b"]
    assert heartbeats.is_lost("a", 1.0)
    assert heartbeats.is_lost("c", 1.0)
    heartbeats.note("a", 100.0)
    assert not heartbeats.is_lost("a", 101.0)


def test_nobody_is_lost_while_messages_are_late(heartbeats: Heartbeats) -> None:
    """Heartbeats wait with everything else, or the broker has dropped them. Afterwards each node has its time."""
    for now in range(10, 100, 10):
        heartbeats.note_lag(LATE_S, float(now))
    assert heartbeats.overdue(120.0) == []
    assert heartbeats.overdue(120.1) == ["a", "b"]


def test_a_short_lag_says_nothing(heartbeats: Heartbeats) -> None:
    """A node that is silent is lost."""
    heartbeats.note_lag(LATE_S - 0.1, 30.0)
    assert heartbeats.overdue(30.1) == ["a"]


def test_a_will_is_not_believed_while_messages_are_late(heartbeats: Heartbeats) -> None:
    """The node may be back, and its next message wait. Once it was heard since, its will counts again."""
    assert heartbeats.note_will("a", "will", 10.0)
    heartbeats.note_lag(LATE_S, 11.0)
    assert heartbeats.take_believed(100.0) == []
    assert not heartbeats.note_will("a", "will", 12.0)
    heartbeats.note("a", 13.0)
    assert heartbeats.note_will("a", "will", 14.0)
