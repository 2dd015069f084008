"""Which sweeps begin because nodes are new, played in virtual time."""

from typing import Any

import pytest
from tests.coordinator.sweeps.clock import DAY, HOUR, START, Clock, check, past, timetable

from muster.check import Scope
from muster.model import Health, Topology
from muster_coordinator.evidence.announced_checks import AnnouncedChecks
from muster_coordinator.sweeps.timetable import REMEMBERED_S, Due, SkippedSweep


def gathering(**settings: Any) -> Clock:
    return Clock(timetable(new_nodes={"check": "collective", **settings})).resume()


def asked(said: list[Due | SkippedSweep]) -> list[tuple[str, ...]]:
    """The nodes of what is due, all for new ones."""
    assert all(isinstance(it, Due) and it.origin == "new nodes" for it in said)
    return [due.request.nodes or () for due in said if isinstance(due, Due)]


def test_new_nodes_are_swept_when_they_have_gathered():
    """Two minutes after the first, with all that have come by then, in one sweep, and never again."""
    clock = gathering()
    for name in ("b", "a", "c"):
        clock.join_as_new(name)
        assert clock.play(39, step=1.0) == []
    clock.join("known")
    assert asked(clock.play(DAY)) == [("a", "b", "c")]


def test_who_comes_later_is_gathered_by_itself():
    """The next nodes wait for others again."""
    clock = gathering()
    clock.join_as_new("a"), clock.join_as_new("b")
    assert asked(clock.play(121, step=1.0)) == [("a", "b")]
    clock.join_as_new("c"), clock.join_as_new("d")
    assert clock.play(119, step=1.0) == []
    assert asked(clock.play(2, step=1.0)) == [("c", "d")]


def test_without_the_setting_new_nodes_are_not_swept():
    """Off unless set."""
    clock = Clock(timetable()).resume()
    clock.join_as_new("a"), clock.join_as_new("b")
    clock.table.note_swept(["a"])
    assert clock.play(DAY) == []


def test_a_node_is_new_from_when_it_says_that_it_has_the_check():
    """What it is made of comes after its first sign of life."""
    clock = gathering()
    late = clock.join_as_new("late")
    late.announced = AnnouncedChecks.of(())
    clock.join_as_new("a"), clock.join_as_new("b")
    assert asked(clock.play(300, step=1.0)) == [("a", "b")]
    late.announced = AnnouncedChecks.of([check()])
    clock.join_as_new("c")
    assert asked(clock.play(300, step=1.0)) == [("c", "late")]


def test_a_node_that_is_lost_again_is_left_out_until_it_is_back():
    """It neither takes part nor holds up the others, and gathers again."""
    clock = gathering()
    lost = clock.join_as_new("lost")
    clock.play(60, step=1.0)
    lost.online = False
    clock.join_as_new("a"), clock.join_as_new("b")
    assert clock.play(119, step=1.0) == []
    assert asked(clock.play(5, step=1.0)) == [("a", "b")]
    lost.online = True
    clock.join_as_new("c")
    assert asked(clock.play(300, step=1.0)) == [("c", "lost")]


def test_a_node_that_another_sweep_has_taken_is_not_new_any_more():
    """Whoever asked for that sweep."""
    clock = gathering()
    clock.join_as_new("a"), clock.join_as_new("b"), clock.join_as_new("c")
    clock.table.note_swept(["a", "stranger"])
    assert asked(clock.play(300)) == [("b", "c")]


def test_a_single_new_node_meets_healthy_ones():
    """The nearest and others of its block; never unhealthy nodes, and none from other blocks if these are enough."""
    clock = gathering(partners=3)
    place = Topology(block="b1", leaf="l1", rack="r1")
    clock.join("far", health=Health.HEALTHY, declared=Topology(block="b2", leaf="l9", rack="r9"))
    clock.join("block", health=Health.HEALTHY, declared=Topology(block="b1", leaf="l2", rack="r2"))
    clock.join("leaf", health=Health.HEALTHY, declared=Topology(block="b1", leaf="l1", rack="r3"))
    clock.join("rack", health=Health.HEALTHY, declared=place)
    clock.join("unknown", declared=place)
    clock.join("suspect", health=Health.SUSPECT, declared=place)
    clock.join("lost", health=Health.HEALTHY, declared=place, online=False)
    clock.join("without", health=Health.HEALTHY, declared=place).announced = AnnouncedChecks.of(())
    clock.join_as_new("new", health=Health.HEALTHY, declared=place)
    (met,) = asked(clock.play(HOUR))
    assert met
    new, nearest, *others = met
    assert (new, nearest, {*others}) == ("new", "rack", {"leaf", "block"})


def test_nodes_that_claim_a_place_near_a_node_are_not_all_its_partners():
    """One of them is; the others are drawn at random, differently for each new node."""
    drawn = []
    for name in ("new-1", "new-2", "new-3"):
        clock = gathering(partners=3)
        for number in range(4):
            clock.join(f"beside-{number}", health=Health.HEALTHY, declared=Topology(rack="r1"))
        for number in range(96):
            clock.join(f"elsewhere-{number}", health=Health.HEALTHY, declared=Topology(rack=f"r{2 + number // 8}"))
        clock.join_as_new(name, health=Health.HEALTHY, declared=Topology(rack="r1"))
        (met,) = asked(clock.play(HOUR))
        assert met
        _, nearest, *others = met
        assert nearest.startswith("beside")
        drawn.append(tuple(others))
    assert sum(name.startswith("beside") for others in drawn for name in others) <= 1
    assert len(set(drawn)) == 3


def test_a_single_new_node_waits_for_somebody_to_meet():
    """It is looked for again and again, and nothing is said meanwhile."""
    clock = gathering()
    clock.join_as_new("new")
    known = clock.join("known")
    assert clock.play(HOUR) == []
    known.health = Health.HEALTHY
    assert asked(clock.play(HOUR)) == [("new", "known")]


@pytest.mark.parametrize(("scope", "settings"), [(Scope.NODE, {}), (Scope.GROUP, {"strategy": "single"})])
def test_a_check_of_single_nodes_needs_no_partner(scope, settings):
    """Whether the check or the strategy is about nodes alone."""
    clock = gathering(**settings)
    clock.join("known", scope, health=Health.HEALTHY)
    clock.join_as_new("new", scope)
    assert asked(clock.play(HOUR)) == [("new",)]


def test_new_nodes_after_a_restart():
    """Who joined within a day and was in no sweep since is still new."""
    clock = Clock(timetable(new_nodes={"check": "collective"}), now=START - REMEMBERED_S - 1.0)
    clock.join("old")
    clock.now = START - HOUR
    for name in ("a", "b", "swept"):
        clock.join(name)
    clock.now = START
    clock.resume(past("request", START - 60.0, ("swept", "old")))
    assert asked(clock.play(HOUR)) == [("a", "b")]
