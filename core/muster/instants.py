"""Points in time as people read them."""

from datetime import UTC, datetime, tzinfo


def instant_text(seconds: float, zone: tzinfo | None = None) -> str:
    """A time in UTC, and beside it in the local time zone or in `zone`: `2026-01-31T23:30:00Z (2026-02-01 00:30 CET)`.

    The local date is left out while it is the same, and local time as a whole where it is UTC.
    """
    utc = datetime.fromtimestamp(seconds, UTC)
    local = utc.astimezone(zone)
    text = f"{utc:%Y-%m-%dT%H:%M:%SZ}"
    if not local.utcoffset():
        return text
    date = "" if local.date() == utc.date() else f"{local:%Y-%m-%d} "
    return f"{text} ({date}{local:%H:%M %Z})"
