"""Who was heard, and who is lost."""

import pytest

from muster_coordinator.evidence.heartbeats import Heartbeats


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
