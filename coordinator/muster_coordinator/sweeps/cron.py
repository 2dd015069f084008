"""When a cron expression is due, in the time zone that it is meant in.

As Debian's cron has it: a run at a set time that the clock skips when summer begins is due right after the change, and
one at a time that comes twice when it ends is due the first time. With a `*` for the minute or the hour, an expression
is due whenever the clock shows it.
"""

import math
from dataclasses import dataclass
from datetime import datetime, tzinfo

from cronsim import CronSim


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
