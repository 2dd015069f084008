"""The coordinator's clock: seconds since the epoch, without the steps of the host's clock.

Deadlines, retries and silences are measured with it. If the host's clock is set by an hour, a fleet that sends its
heartbeats must not look silent for an hour, and a silent node must not look alive for one. So this clock goes on
at its own pace, and follows a step at half of that pace.

Example: the host's clock is set forward by an hour. This clock goes half as fast again for two hours, and then agrees
with the host's. Meanwhile, 30 seconds of silence are over after 20.
"""

import time
from collections.abc import Callable

import structlog

PACE = 0.5
"""By how much faster or slower it goes while it differs. With 1 or more it could stand still or go back. A node that
beats every ten seconds is lost after three beats: at this pace it may still miss one.
"""

STEP_S = 60.0
"""The log tells people of a step from this size on, as for the clocks of nodes."""

log = structlog.get_logger()


class SteadyClock:
    """Call it for the time. It never goes back. `steady` is a clock that nobody sets."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._asked_at = steady()
        self._offset = wall() - self._asked_at
        self._was_told = False

    def __call__(self) -> float:
        now = self._steady()
        most = PACE * (now - self._asked_at)
        self._asked_at = now
        differs_s = self._wall() - (now + self._offset)
        self._tell(differs_s)
        self._offset += max(-most, min(most, differs_s))
        return now + self._offset

    def _tell(self, differs_s: float) -> None:
        is_stepped = abs(differs_s) > STEP_S
        if is_stepped and not self._was_told:
            log.warning("clock_was_set", by_s=round(differs_s), followed_within_s=round(abs(differs_s) / PACE))
        self._was_told = is_stepped
