"""Small fleets gather for a part of the shortest cadence, large ones for longer, and no run becomes late by it."""

import math

from hypothesis import given
from hypothesis import strategies as st

from muster_coordinator.evidence.node import LATE_S
from muster_coordinator.evidence.pacing import (
    CADENCE_SHARE,
    LEAST_HOLD_S,
    LONGEST_HOLD_S,
    REPORTS_PER_S,
    SMALL_FLEET_HOLD_S,
    hold_s,
    spread,
)


def test_examples() -> None:
    """A rack waits so that runs travel together, and ten thousand nodes wait for as long as they may."""
    sizes = 0, 16, 199, 2_000, 10_000, 100_000
    assert [hold_s(nodes) for nodes in sizes] == [12.0, 12.0, 12.0, 30.0, 45.0, 45.0]


def test_checks_that_run_often_keep_their_pace() -> None:
    """In small fleets; in large ones the coordinator has to be spared."""
    cadences = 1.0, 2.0, 15.0, 60.0, math.inf
    assert [hold_s(16, cadence_s=cadence_s) for cadence_s in cadences] == [0.0, 1.6, 12.0, 12.0, 12.0]
    assert hold_s(2_000, cadence_s=2.0) == 30.0


@given(st.integers(0, 199), st.floats(0.1, 86_400.0))
def test_in_small_fleets_no_run_waits_for_the_next_of_its_check(nodes: int, cadence_s: float) -> None:
    """A report is never further from the one before than two runs of the check."""
    held = hold_s(nodes, cadence_s=cadence_s)
    assert held <= min(CADENCE_SHARE * cadence_s, SMALL_FLEET_HOLD_S)
    assert held == 0.0 or held >= LEAST_HOLD_S


@given(st.integers(0, 10_000), st.floats(0.0, 600.0))
def test_agents_gather_for_longer_while_messages_wait(nodes: int, lag_s: float) -> None:
    """As much longer as the coordinator is behind, up to the longest time."""
    assert hold_s(500, 1.0) == 40.0
    assert hold_s(10, 0.2) == 14.0
    assert hold_s(1, 10.0) == LONGEST_HOLD_S
    assert hold_s(nodes) <= hold_s(nodes, lag_s) <= LONGEST_HOLD_S


def test_nodes_that_report_together_do_not_stay_together() -> None:
    """Their waits are spread evenly over a quarter, and are never longer than they may be."""
    waits = sorted(spread(40.0, number) for number in range(1_000))
    assert waits[0] >= 30.0
    assert waits[-1] <= 40.0
    assert all(abs(wait - (30.0 + number / 100)) < 0.2 for number, wait in enumerate(waits))
    assert spread(0.0, 7) == 0.0


@given(st.integers(200, 9_000))
def test_the_reports_a_second_are_bounded(nodes: int) -> None:
    """Each node sends at most one report in that time."""
    held = hold_s(nodes)
    assert nodes / held <= REPORTS_PER_S * (1 + 1e-9)


def test_no_run_is_late_by_waiting() -> None:
    """A late run says that others wait behind it."""
    assert LONGEST_HOLD_S < LATE_S
