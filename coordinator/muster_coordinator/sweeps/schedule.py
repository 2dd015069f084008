"""A sweep that begins again and again, at the times of a cron expression and a little later each time.

How much later is drawn by lot, so that several fleets do not begin at once, and drawn from the fleet, the schedule and
the time, so that a coordinator that was restarted in between comes to the same.
"""

import math
import random
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from cronsim import CronSim

from muster_coordinator.model.sweep_records import SweepRequest


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of five fields."""

    expression: str
    zone: tzinfo

    def after(self, moment: float) -> float:
        """When it is due next after `moment`, both in seconds since the epoch; infinite when not in 50 years."""
        # Where an hour comes twice, the search begins in the first one, from before the moment.
        found = (due.timestamp() for due in CronSim(self.expression, datetime.fromtimestamp(moment, self.zone)))
        return next((due for due in found if due > moment), math.inf)


GRACE_S = 600.0
"""A coordinator that was updated or has failed over is back by then, and makes up for the sweep that it has missed.
Later than that, a sweep would begin at a time that nobody has chosen, perhaps in working hours."""


@dataclass(slots=True, kw_only=True)
class SweepSchedule:
    """A schedule of `fleet`: for each time of `cron`, `request` is due once, up to `jitter_s` seconds later."""

    fleet: str
    name: str
    cron: Cron
    jitter_s: float
    request: SweepRequest
    _time: float = field(default=math.inf, init=False)
    _due: float = field(default=math.inf, init=False)

    @property
    def origin(self) -> str:
        """Who makes its requests."""
        return f"schedule {self.name}"

    def resume(self, last: float | None, now: float) -> None:
        """Goes on after its `last` sweep, which began at that time if there was any; until then nothing is due."""
        begun = now - GRACE_S if last is None else max(min(last, now), now - GRACE_S)
        self._seek(begun)

    def take(self, now: float) -> float | None:
        """By how many seconds the sweep that is due now is late; None when none is due. Of several the last counts."""
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
        """Waits for the first time of which the sweep is due after `moment`."""
        self._wait_for(self.cron.after(moment - self.jitter_s))
        while self._due <= moment:
            self._wait_for(self.cron.after(self._time))

    def _wait_for(self, time: float) -> None:
        latest_s = min(self.jitter_s, self.cron.after(time) - time)  # so that the times stay in order
        rng = random.Random(f"{self.fleet} {self.name} {time}")  # noqa: S311 - no secret depends on it
        self._time, self._due = time, time + rng.uniform(0, latest_s)
