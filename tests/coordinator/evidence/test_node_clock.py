"""Nodes whose clocks are off: how that is noticed, and how what they have measured is dated."""

import pytest
from tests.cases import cases

from muster.model import Run, Verdict
from muster_coordinator.evidence.node_clock import NodeClock, behind_s, clock_in_words, dated

NOW = 1_800_000_000.0


def heard(*late_s: float) -> NodeClock:
    """A clock of which reports have come so much later than it says that they were sent."""
    clock = NodeClock()
    for late in late_s:
        clock.heard(NOW - late, NOW)
    return clock


@cases(
    ("late_s", "ahead_s"),
    [
        ((0.1, 0.1, 0.1), None),
        ((59.0, 59.0, 59.0), None),
        ((61.0, 62.0, 75.0), -61.0),
        ((-61.0, -61.0, -61.0), 61.0),
        ((-300.0, -299.0, -200.0), 300.0),
        ((7200.0, 0.1, 7200.0), None),
        ((7200.0, 7200.0), None),
        ((7200.0, 7200.0, 7200.0, 0.1), None),
    ],
)
def test_a_clock_is_wrong_when_several_reports_in_a_row_say_so(
    late_s: tuple[float, ...], ahead_s: float | None
) -> None:
    """By more than a minute. One that is only late was on its way for so long."""
    assert heard(*late_s).ahead_s == ahead_s


def test_it_is_told_when_a_clock_is_wrong_and_when_it_is_right_again() -> None:
    """Once each, however many reports come."""
    clock = NodeClock()
    wrong, right = "its clock is 300 s ahead of the coordinator's", "its clock is right again"
    assert [clock.heard(NOW + 300, NOW) for _ in range(5)] == [None, None, wrong, None, None]
    assert [clock.heard(NOW, NOW) for _ in range(5)] == [None, None, right, None, None]


def test_what_was_known_of_a_clock_holds_until_enough_is_known_again() -> None:
    """Such as over a restart of the coordinator."""
    clock = NodeClock(ahead_s=300.0)
    known = [(clock.heard(NOW + 310, NOW), clock.ahead_s) for _ in range(3)]
    assert known == [(None, 300.0), (None, 300.0), (None, 310.0)]


@cases(
    ("started_at", "sent_at", "expected"),
    [
        pytest.param(NOW - 10, NOW - 1, NOW - 10, id="in step"),
        pytest.param(NOW - 3600, NOW - 1, NOW - 3600, id="in step, late from the outbox"),
        pytest.param(NOW + 290, NOW + 300, NOW - 10, id="ahead"),
        pytest.param(NOW - 7210, NOW - 7200, NOW - 10, id="behind"),
        pytest.param(NOW - 3300, NOW + 300, NOW - 3600, id="ahead, late from the outbox"),
        pytest.param(NOW - 10_800, NOW - 7200, NOW - 3600, id="behind, late from the outbox"),
        pytest.param(NOW + 2, NOW + 3, NOW, id="a little ahead"),
        pytest.param(NOW + 7200, NOW, NOW, id="set back since"),
        pytest.param(0.0, NOW + 300, 0.0, id="set since, from the beginning of time"),
    ],
)
def test_a_run_is_as_old_as_it_was_when_it_was_sent(started_at: float, sent_at: float, expected: float) -> None:
    """Whatever the clock says, and it never lies in the future."""
    run = Run(id="r", node="n", check="gemm", verdict=Verdict.PASS, started_at=started_at, duration_s=0.1)
    assert dated(run, behind_s(sent_at, NOW), NOW).started_at == expected


@pytest.mark.parametrize(
    ("ahead_s", "expected"), [(300.4, "300 s ahead of the coordinator's"), (-61.0, "61 s behind the coordinator's")]
)
def test_a_clock_in_words(ahead_s: float, expected: str) -> None:
    """With the seconds, and the direction."""
    assert clock_in_words(ahead_s) == expected
