"""The pause between two queries of a command that asks the coordinator again and again."""

import time

_BUSY_SHARE = 0.2
"""Maximum share of the time for queries: for a large fleet or sweep, both sides need time for the answer."""


def pause(asked_at: float, least_s: float) -> None:
    """Sleeps at least `least_s`, and longer after a query that took long; it was asked at this monotonic time."""
    took_s = time.monotonic() - asked_at
    time.sleep(max(least_s, took_s * (1 - _BUSY_SHARE) / _BUSY_SHARE))
