"""Capacity lost: node-hours out of service or silent, and how soon nodes return."""

import pytest
from tests.cases import cases
from tests.coordinator.views.pages.fleet_rows import NOW, row

from muster.model import Health, ServiceState
from muster.transition import Transition
from muster_coordinator.model.nodes import StoryEntry
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.views.pages.lost_capacity import HOUR_S, CapacityHistory, lost_capacity

IN, OUT, TESTS = ServiceState.IN_SERVICE, ServiceState.CORDONED, ServiceState.PROBATION


def turned(after, hours_ago, node="n1", before=None, **more):
    at = NOW - hours_ago * HOUR_S
    before = before or (OUT if after is IN else IN)
    return Transition(id=f"t{hours_ago}", node=node, before=before, after=after, reason="", at=at, **more)


def silence(kind, hours_ago, node="n1"):
    return StoryEntry(id=f"s{hours_ago}", at=NOW - hours_ago * HOUR_S, node=node, kind=kind, text="")


def lost(*events, rows=(), **more):
    transitions = tuple(TransitionRecord(transition=event) for event in events if isinstance(event, Transition))
    silences = tuple(event for event in events if isinstance(event, StoryEntry))
    return lost_capacity(CapacityHistory(transitions, silences, **more), rows or (row("n1"), row("n2")), NOW)


CORDONED = (row("n1", Health.FAILED, OUT, out_since=NOW - 2 * HOUR_S), row("n2"))
LONG_OUT = (row("n1", Health.FAILED, OUT, out_since=NOW - 900 * HOUR_S), row("n2"))
SILENT = (row("n1", Health.UNKNOWN, lost=True), row("n2"))


@cases(
    "events, rows, day_h, week_h",
    [
        ((), (), 0, 0),
        ((turned(OUT, 5), turned(IN, 3)), (), 2, 2),
        ((turned(OUT, 5), turned(TESTS, 4), turned(IN, 3)), (), 2, 2),
        ((turned(OUT, 30), turned(IN, 22)), (), 2, 8),
        ((turned(OUT, 5),), CORDONED, 5, 5),
        ((turned(IN, 3),), (), 21, 165),  # it went out before the seven days
        ((turned(IN, 3, before=ServiceState.ACCEPTING),), (), 0, 0),  # a new node
        ((), LONG_OUT, 24, 168),
        ((), CORDONED, 2, 2),  # its transition is not stored yet
        ((turned(OUT, 5, dry_run=True), turned(IN, 3, dry_run=True)), (), 0, 0),
        ((), (row("n1", Health.FAILED, OUT, dry_run=True), row("n2")), 0, 0),
        ((silence("lost", 4), silence("back", 1)), (), 3, 3),
        ((silence("lost", 4),), SILENT, 4, 4),
        ((), (row("n1", Health.UNKNOWN, lost=True, last_seen=NOW - HOUR_S), row("n2")), 1, 1),
        ((turned(OUT, 4), turned(IN, 2), silence("lost", 3), silence("back", 1)), (), 3, 3),
        ((turned(OUT, 4), turned(IN, 2), turned(OUT, 4, "n2"), turned(IN, 3, "n2")), (), 3, 3),
        ((turned(OUT, 9, "gone"),), (), 0, 0),  # it was forgotten since
    ],
)
def test_node_hours(events, rows, day_h, week_h):
    """Within a day and within seven days."""
    made = lost(*events, rows=rows)
    assert (made.day_h, made.week_h) == (pytest.approx(day_h), pytest.approx(week_h))


def test_the_share_is_of_what_the_fleet_could_have_given():
    """Two nodes give 48 node-hours a day."""
    assert lost(turned(OUT, 12), rows=CORDONED).day_share == pytest.approx(12 / 48)
    assert lost_capacity(CapacityHistory(), (), NOW).day_share == 0


def test_the_time_to_return_is_that_of_nodes_that_have_returned():
    """Its median; a node that is still out, and one whose begin is not known, do not count."""
    made = lost(
        turned(IN, 100),
        turned(OUT, 50),
        turned(IN, 40),
        turned(OUT, 20, "n2"),
        turned(IN, 18, "n2"),
        turned(OUT, 1),
        rows=CORDONED,
    )
    assert (made.returns, made.return_s) == (2, pytest.approx(6 * HOUR_S))
    assert lost().return_s is None


def test_a_cut_history_says_at_least():
    """Nobody takes it for all."""
    made = lost(turned(IN, 3), turned(OUT, 4, "n2"), turned(IN, 1, "n2"), is_cut=True)
    assert (made.is_least, made.week_h) == (True, pytest.approx(4))  # not the days before the first that is known
