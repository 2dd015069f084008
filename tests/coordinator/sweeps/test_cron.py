"""When cron expressions are due, above all where the clock is changed, and how a wrong one is refused."""

from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from tests.cases import cases

from muster.errors import SettingsError
from muster_coordinator.runtime.settings.timetable import read_cron

BERLIN = "Europe/Berlin"


def times(expression: str, start: str, count: int, zone: str = BERLIN) -> list[str]:
    """The next times after `start`, each asked for again, as clocks in the zone show them."""
    cron = read_cron(expression, zone, "k")

    def due(moment: float):
        while True:
            moment = cron.after(moment)
            yield datetime.fromtimestamp(moment, ZoneInfo(zone)).strftime("%m-%d %H:%M%z")

    return [*islice(due(datetime.fromisoformat(start).timestamp()), count)]


@pytest.mark.parametrize(
    ("expression", "start", "expected"),
    [
        ("30 2 * * *", "2026-03-28T00:00+01:00", ["03-28 02:30+0100", "03-29 03:00+0200", "03-30 02:30+0200"]),
        ("0,30 2 * * *", "2026-03-28T12:00+01:00", ["03-29 03:00+0200", "03-30 02:00+0200", "03-30 02:30+0200"]),
        ("*/30 2 * * *", "2026-03-28T12:00+01:00", ["03-30 02:00+0200", "03-30 02:30+0200"]),
        ("0 * * * *", "2026-03-29T01:30+01:00", ["03-29 03:00+0200", "03-29 04:00+0200"]),
    ],
)
def test_a_time_that_summer_skips(expression, start, expected):
    """A set time is made up for right after the change, once; what comes by the hour goes on by the clock."""
    assert times(expression, start, len(expected)) == expected


@pytest.mark.parametrize(
    ("expression", "start", "expected"),
    [
        ("30 2 * * *", "2026-10-24T12:00+02:00", ["10-25 02:30+0200", "10-26 02:30+0100"]),
        ("30 2 * * *", "2026-10-25T02:15+01:00", ["10-26 02:30+0100"]),
        ("0 * * * *", "2026-10-25T01:30+02:00", ["10-25 02:00+0200", "10-25 02:00+0100", "10-25 03:00+0100"]),
    ],
)
def test_a_time_that_comes_twice_when_summer_ends(expression, start, expected):
    """A set time counts the first time only, also when it is asked for in between; every hour counts."""
    assert times(expression, start, len(expected)) == expected


@pytest.mark.parametrize(
    ("expression", "zone", "expected"),
    [
        ("0 2 * * MON-FRI", "UTC", ["07-03 02:00+0000", "07-06 02:00+0000"]),
        ("0 2 1 * *", "Asia/Kolkata", ["08-01 02:00+0530", "09-01 02:00+0530"]),
        ("0 0 29 2 *", "UTC", ["02-29 00:00+0000", "02-29 00:00+0000"]),
    ],
)
def test_days_and_zones(expression, zone, expected):
    """Days of the week and month, in the zone that is meant."""
    assert times(expression, "2026-07-02T12:00+00:00", 2, zone) == expected


@cases(
    ("expression", "zone", "message"),
    [
        (
            "61 2 * * *",
            "UTC",
            "setting 'k.cron': cannot read the minute: valid are 0 to 59,"
            " and of these lists 1,2, ranges 1-5 and steps */5 (got '61 2 * * *')",
        ),
        ("0 25 * * *", "UTC", "setting 'k.cron': cannot read the hour: valid are 0 to 23, and"),
        ("0 2 * * soon", "UTC", "setting 'k.cron': cannot read the day-of-week: valid are 0 to 7 or SUN to SAT, and"),
        ("0 2 * 13 *", "UTC", "setting 'k.cron': cannot read the month: valid are 1 to 12 or JAN to DEC, and"),
        ("0 0 30 2 *", "UTC", "setting 'k.cron': cannot read the day-of-month: valid are 1 to 31, if the month"),
        ("0 0 */20 * 1L", "UTC", "setting 'k.cron': there is no such day (got '0 0 */20 * 1L')"),
        (
            "0 2 * * *",
            "Europe/Belrin",
            "setting 'k.timezone': unknown time zone 'Europe/Belrin'; did you mean 'Europe/",
        ),
        ("0 2 * * *", "America", "setting 'k.timezone': unknown time zone 'America'"),
        ("0 2 * * *", "/etc/passwd", "setting 'k.timezone': unknown time zone '/etc/passwd'"),
        ("0 2 * * *", "", "setting 'k.timezone': unknown time zone ''"),
    ],
)
def test_what_is_wrong_is_named(expression, zone, message):
    """By the key of the setting, with what was given."""
    with pytest.raises(SettingsError) as refused:
        read_cron(expression, zone, "k")
    assert str(refused.value).startswith(message)
