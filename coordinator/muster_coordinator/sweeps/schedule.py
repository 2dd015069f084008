"""Sweeps at the times of a cron expression, each up to `jitter_s` seconds later.

The idea: the delay is random, so several fleets do not begin at the same second. The random generator is seeded with
fleet, schedule and time. A coordinator that restarts computes the same delay again.

Cron expressions are read as by Debian's cron. When summer time begins and the clock skips a set time, the sweep is due
right after the change. When summer time ends and a set time comes twice, the sweep is due the first time. With `*` for
the minute or the hour, it is due whenever the clock shows it.

Example: `0 2 * * *` with a jitter of 300 s is due between 02:00 and 02:05 every night. If the coordinator is down from
02:00 to 02:06, it begins the sweep at 02:06. If it is back at 03:00, that is later than GRACE_S, and the sweep is
skipped. A tick takes constant time, except after a pause, when it steps over the times that were missed.
"""

import math
import random
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from cronsim import CronSim

from muster_coordinator.model.sweep_records import SweepRequest


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of five fields, in a time zone."""

    expression: str
    zone: tzinfo

    def after(self, moment: float) -> float:
        """The next due time after `moment`, in seconds since the epoch; infinite if none comes within 50 years."""
        # In an hour that comes twice, CronSim searches from the first one, which may lie before `moment`.
        found = (due.timestamp() for due in CronSim(self.expression, datetime.fromtimestamp(moment, self.zone)))
        return next((due for due in found if due > moment), math.inf)


GRACE_S = 600.0
"""The maximum delay with which a coordinator starts a missed sweep. An update or a failover takes less. Later, the
sweep would begin at a time that nobody has chosen, perhaps in working hours.
"""


@dataclass(slots=True, kw_only=True)
class SweepSchedule:
    """A schedule of `fleet`: `request` is due once for each time of `cron`, up to `jitter_s` seconds later."""

    fleet: str
    name: str
    cron: Cron
    jitter_s: float
    request: SweepRequest
    _time: float = field(default=math.inf, init=False)
    _due: float = field(default=math.inf, init=False)

    @property
    def origin(self) -> str:
        """The origin of its sweeps, as stored with them."""
        return f"schedule {self.name}"

    def resume(self, last: float | None, now: float) -> None:
        """Continues after a restart.

        `last` is when its last sweep began, if there was one. Nothing is due before this.
        """
        begun = now - GRACE_S if last is None else max(min(last, now), now - GRACE_S)
        self._seek(begun)

    def take(self, now: float) -> float | None:
        """Seconds by which the sweep that is due now is late; None if none is due. The last one due counts."""
        late_s = now - self._due
        if late_s < 0:
            return None
        if late_s > GRACE_S:
            self._seek(now - GRACE_S)
        while self._due <= now:
            late_s = now - self._due
            self._wait_for(self.cron.after(self._time))
        return late_s

    def _seek(self, moment: float) -> None:
        """Finds the first time whose sweep is due after `moment`."""
        self._wait_for(self.cron.after(moment - self.jitter_s))
        while self._due <= moment:
            self._wait_for(self.cron.after(self._time))

    def _wait_for(self, time: float) -> None:
        latest_s = min(self.jitter_s, self.cron.after(time) - time)  # otherwise a sweep could be due after the next one
        rng = random.Random(f"{self.fleet} {self.name} {time}")  # noqa: S311 - no secret depends on it
        self._time, self._due = time, time + rng.uniform(0, latest_s)
