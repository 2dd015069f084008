"""The counters of a port over time."""

import pytest
from tests.cases import cases

from muster_plugins.checks.fabric.counters import COUNTERS, HOUR_S, LastHour, saturated

NAME = "out_of_sequence"


def counted(*readings: tuple[float, int]) -> int | None:
    """What stands in the last hour after the readings: pairs of a time in seconds and what the counter said."""
    last_hour = LastHour()
    answers = [last_hour.count({NAME: value}, now) for now, value in readings]
    return answers[-1].get(NAME)


@cases(
    ("readings", "expected"),
    [
        ([(0, 7)], None),
        ([(0, 7), (30, 7)], 0),
        ([(0, 7), (30, 9)], 2),
        ([(0, 7), (30, 9), (60, 10)], 3),
        ([(0, 0), (30, 5), (30 + HOUR_S + 60, 5)], 0),
        ([(0, 0), (30, 5), (1800, 6), (30 + HOUR_S + 60, 6)], 1),
    ],
    ids=["first look", "nothing", "two", "added up", "an hour ago", "partly an hour ago"],
)
def test_what_was_added_within_the_hour_counts(readings, expected):
    """Nothing is extrapolated: two errors in half a minute are two an hour, not 240."""
    assert counted(*readings) == expected


@pytest.mark.parametrize("after", [0, 3, 2**32 - 5], ids=["reset", "reset and counted", "fell a little"])
def test_a_counter_that_falls_adds_nothing(after):
    """The counter was reset or has wrapped around: its increase in between is unknown, and no rate is negative."""
    assert counted((0, 2**32 - 1), (30, after)) == 0
    assert counted((0, 2**32 - 1), (30, after), (60, after + 4)) == 4


def test_after_a_long_gap_only_the_share_of_an_hour_counts():
    """An agent that was away for four hours does not take four hours of errors for those of one."""
    assert counted((0, 0), (4 * HOUR_S, 400)) == 100


def test_a_counter_that_was_away_is_compared_with_what_it_said_last():
    """A file that is unreadable once loses no errors."""
    last_hour = LastHour()
    assert last_hour.count({NAME: 1}, 0) == {}
    assert last_hour.count({}, 30) == {}
    assert last_hour.count({NAME: 4}, 60) == {NAME: 3}


def test_memory_is_bounded():
    """The memory for the last hour does not grow with the number of readings."""
    last_hour = LastHour()
    for look in range(20_000):
        last_hour.count({NAME: look}, look * 0.5)
    assert len(last_hour._by_minute[NAME]) <= 60
    assert last_hour.count({NAME: 20_000}, 10_000) == {NAME: pytest.approx(7200, rel=0.02)}


def test_counters_at_their_limit_are_named():
    """They stop there: what comes after is not seen."""
    assert saturated({"symbol_error": 0xFFFF, "link_downed": 0xFE, NAME: 0xFFFF}) == ("symbol_error",)


def test_counters_of_the_port_have_limits_and_those_of_the_hardware_wrap():
    """As the specification's attribute PortCounters has it."""
    limited = {name for name, counter in COUNTERS.items() if counter.limit is not None}
    assert limited == {name for name, counter in COUNTERS.items() if counter.folder == "counters"}
