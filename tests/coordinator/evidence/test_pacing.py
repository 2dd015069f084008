"""Small fleets report each run at once, large ones gather, and no run becomes late by it."""

from hypothesis import given
from hypothesis import strategies as st

from muster_coordinator.evidence.node import LATE_S
from muster_coordinator.evidence.pacing import LONGEST_HOLD_S, REPORTS_PER_S, hold_s, spread


def test_examples() -> None:
    """A rack waits for nothing, and ten thousand nodes for as long as they may."""
    assert [hold_s(nodes) for nodes in (0, 16, 199, 2_000, 10_000, 100_000)] == [0.0, 0.0, 0.0, 30.0, 45.0, 45.0]


@given(st.integers(0, 10_000), st.floats(0.0, 600.0))
def test_agents_gather_for_longer_while_messages_wait(nodes: int, lag_s: float) -> None:
    """As much longer as the coordinator is behind, up to the longest time."""
    assert hold_s(500, 1.0) == 40.0
    assert hold_s(10, 0.2) == 2.05
    assert hold_s(1, 10.0) == LONGEST_HOLD_S
    assert hold_s(nodes) <= hold_s(nodes, lag_s) <= LONGEST_HOLD_S


def test_nodes_that_report_together_do_not_stay_together() -> None:
    """Their waits are spread evenly over a quarter, and are never longer than they may be."""
    waits = sorted(spread(40.0, number) for number in range(1_000))
    assert waits[0] >= 30.0
    assert waits[-1] <= 40.0
    assert all(abs(wait - (30.0 + number / 100)) < 0.2 for number, wait in enumerate(waits))
    assert spread(0.0, 7) == 0.0


@given(st.integers(0, 9_000))
def test_the_reports_a_second_are_bounded(nodes: int) -> None:
    """Each node sends at most one report in that time."""
    held = hold_s(nodes)
    assert held == 0.0 or nodes / held <= REPORTS_PER_S * (1 + 1e-9)


def test_no_run_is_late_by_waiting() -> None:
    """A late run says that others wait behind it."""
    assert LONGEST_HOLD_S < LATE_S
