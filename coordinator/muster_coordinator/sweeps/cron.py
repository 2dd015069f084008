"""When a cron expression is due, in the time zone that it is meant in.

As Debian's cron has it: a run at a set time that the clock skips when summer begins is due right after the change, and
one at a time that comes twice when it ends is due the first time. With a `*` for the minute or the hour, an expression
is due whenever the clock shows it.
"""

import math
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from cronsim import CronSim, CronSimError

from muster.errors import SettingsError, unknown

SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)
"""From here on, an expression that is of any use is due within the 50 years that are looked through."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of five fields."""

    expression: str
    zone: tzinfo

    def after(self, moment: float) -> float:
        """When it is due next after `moment`, both in seconds since the epoch; infinite when never."""
        # Where an hour comes twice, the search begins in the first one, from before the moment.
        found = (due.timestamp() for due in CronSim(self.expression, datetime.fromtimestamp(moment, self.zone)))
        return next((due for due in found if due > moment), math.inf)


def read_cron(expression: str, zone: str, key: str) -> Cron:
    """The expression that stands in the table `key` of the settings; SettingsError says what is wrong with it."""
    try:
        cron = Cron(expression, zoneinfo.ZoneInfo(zone))
        due = cron.after(SOME_DAY.timestamp())
    except CronSimError as error:
        problem = str(error).replace("Bad", "cannot read the")
        raise SettingsError(f"setting '{key}.cron': {problem} (got {expression!r})") from None
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):  # the latter for a directory of zones
        problem = unknown("time zone", zone, zoneinfo.available_timezones())
        raise SettingsError(f"setting '{key}.timezone': {problem}") from None
    if math.isinf(due):
        raise SettingsError(f"setting '{key}.cron': there is no such day (got {expression!r})")
    return cron
