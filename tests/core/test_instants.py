"""Points in time as people read them."""

from zoneinfo import ZoneInfo

from tests.cases import cases

from muster.instants import instant_text

WINTER = 1_769_900_400.0  # 2026-01-31 23:00 UTC
SUMMER = 1_785_578_400.0  # 2026-08-01 10:00 UTC


@cases(
    ("seconds", "zone", "text"),
    [
        (SUMMER, "Europe/Berlin", "2026-08-01T10:00:00Z (12:00 CEST)"),
        (WINTER, "Europe/Berlin", "2026-01-31T23:00:00Z (2026-02-01 00:00 CET)"),
        (WINTER, "America/Los_Angeles", "2026-01-31T23:00:00Z (15:00 PST)"),
        (WINTER, "UTC", "2026-01-31T23:00:00Z"),
        (WINTER, "Europe/London", "2026-01-31T23:00:00Z"),
    ],
)
def test_local_time_stands_beside_utc(seconds, zone, text):
    """With its date where that is another, and not at all where both are the same."""
    assert instant_text(seconds, ZoneInfo(zone)) == text


def test_the_zone_is_that_of_the_process(monkeypatch):
    """As TZ sets it."""
    import time  # noqa: PLC0415 (tzset belongs to this test alone)

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert instant_text(SUMMER) == "2026-08-01T10:00:00Z (19:00 JST)"
    finally:
        monkeypatch.undo()
        time.tzset()
