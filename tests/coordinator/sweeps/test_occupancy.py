"""Which nodes groups have taken."""

from muster_coordinator.sweeps.occupancy import Occupancy


def test_a_node_is_taken_until_it_is_released() -> None:
    """And free from the time that the release names."""
    occupancy = Occupancy()
    assert occupancy.take(("a", "b"), 0.0)
    assert not occupancy.is_free("a", 1e9)
    occupancy.release(("a",), 5.0)
    assert [occupancy.is_free("a", now) for now in (4.9, 5.0)] == [False, True]
    assert not occupancy.is_free("b", 1e9)


def test_whoever_waits_keeps_the_nodes_from_those_that_come_later() -> None:
    """In the same turn only: the next begins with whoever comes first then."""
    occupancy = Occupancy()
    occupancy.take(("a",), 0.0)
    assert not occupancy.take(("a", "b", "c"), 0.0)
    assert not occupancy.take(("b",), 0.0)
    assert occupancy.take(("d",), 0.0)
    occupancy.new_turn()
    assert occupancy.take(("b",), 0.0)


def test_it_tells_whether_anything_was_released_since_the_last_turn() -> None:
    """So that nobody has to ask again while nothing has changed."""
    occupancy = Occupancy()
    occupancy.take(("a",), 0.0)
    assert not occupancy.has_released
    occupancy.release(("a",), 1.0)
    assert occupancy.has_released
    occupancy.new_turn()
    assert not occupancy.has_released


def test_a_set_of_nodes_is_kept_as_it_is_when_somebody_asks() -> None:
    """In the same turn: a node that is taken out of the set is free, and one that comes in is not."""
    occupancy = Occupancy()
    waiting = {"a", "b"}
    occupancy.keep(waiting)
    waiting.remove("a")
    waiting.add("c")
    assert [occupancy.is_free(node, 0.0) for node in ("a", "b", "c")] == [True, False, False]
    occupancy.new_turn()
    assert occupancy.is_free("b", 0.0)


def test_nodes_can_be_waited_for_without_taking_any() -> None:
    """Whoever could have them but may not form a group yet keeps its turn."""
    occupancy = Occupancy()
    occupancy.wait_for(("a",))
    assert not occupancy.take(("a", "b"), 0.0)
    occupancy.new_turn()
    assert occupancy.take(("a",), 0.0)
