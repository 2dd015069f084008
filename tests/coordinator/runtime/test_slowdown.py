"""How much less often agents run their checks while the coordinator is overloaded."""

from muster_coordinator.runtime.slowdown import CHANGED_EVERY_S, MOST, Slowdown


def played(slowdown: Slowdown, begin: float, end: float, *, is_overloaded: bool) -> list[tuple[float, int]]:
    """When it changed from `begin` to before `end`, looked at each second, and to what."""
    changes = []
    for now in range(int(begin), int(end)):
        before = slowdown.times
        slowdown.note(float(now), is_overloaded=is_overloaded)
        if slowdown.times != before:
            changes.append((float(now), slowdown.times))
    return changes


def test_it_grows_while_it_is_overloaded_and_ends_afterwards():
    """At once by one, then by one after each pause, up to a limit; back in the same pauses."""
    slowdown = Slowdown()
    assert played(slowdown, 0, 10, is_overloaded=False) == []
    grown = played(slowdown, 10, 200, is_overloaded=True)
    assert grown == [(10.0 + step * CHANGED_EVERY_S, step + 2) for step in range(MOST - 1)]
    assert played(slowdown, 200, 500, is_overloaded=False) == [(200.0, 2), (200.0 + CHANGED_EVERY_S, 1)]


def test_it_is_as_it_was_planned_if_nothing_is_overloaded():
    """Never less than once as often."""
    slowdown = Slowdown()
    assert played(slowdown, 0, 1000, is_overloaded=False) == []
    assert slowdown.times == 1


def test_a_short_overload_after_another_waits_for_the_pause():
    """Agents need a minute to hear of the last change, so what the coordinator sees may be from before."""
    slowdown = Slowdown()
    played(slowdown, 0, 1, is_overloaded=True)
    played(slowdown, 1, 20, is_overloaded=False)
    assert slowdown.times == 2
    assert played(slowdown, 20, 59, is_overloaded=True) == []
    assert played(slowdown, 59, 70, is_overloaded=True) == [(60.0, 3)]
