"""Reads the timetable of sweeps from the settings. SettingsError says what is wrong, and where."""

import math
import zoneinfo
from datetime import UTC, datetime

from cronsim import CronSimError

from muster.config import Settings
from muster.errors import Refused, SettingsError, unknown
from muster.sweep_settings import NewNodesSettings, ScheduleSettings, SweepSettings
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.sweeps.new_nodes import NewNodes
from muster_coordinator.sweeps.requests import check_limits
from muster_coordinator.sweeps.schedule import Cron, SweepSchedule
from muster_coordinator.sweeps.timetable import Timetable
from muster_coordinator.topology.selection import parse_selection

SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)
"""Start of the search for a due time: a valid expression is due within the next 50 years."""

_VALID = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, if the month has that day",
    "month": "1 to 12 or JAN to DEC",
    "day-of-week": "0 to 7 or SUN to SAT",
}
"""The valid numbers and names of each field of a cron expression."""


def timetable_of(settings: Settings) -> Timetable:
    """The timetable of the settings. Raises SettingsError if it is wrong."""
    schedules = [_schedule(settings.fleet, name, wanted) for name, wanted in settings.sweeps.schedules.items()]
    enabled = (schedule for schedule in schedules if settings.sweeps.schedules[schedule.name].enabled)
    wanted = settings.sweeps.new_nodes
    new_nodes = None if wanted is None else _new_nodes(wanted, "sweeps.new_nodes")
    return Timetable(enabled, new_nodes)


def _schedule(fleet: str, name: str, wanted: ScheduleSettings) -> SweepSchedule:
    key = f"sweeps.schedules.{name}"
    if wanted.select is not None:
        _require_selection(wanted.select, f"{key}.select")
    cron = read_cron(wanted.cron, wanted.timezone, key)
    return SweepSchedule(fleet=fleet, name=name, cron=cron, jitter_s=wanted.jitter_s, request=_request(wanted, key))


def _require_selection(text: str, key: str) -> None:
    try:
        parse_selection(text)
    except Refused as refused:
        raise SettingsError(f"setting '{key}': {refused}") from None


def _new_nodes(wanted: NewNodesSettings, key: str) -> NewNodes:
    return NewNodes(request=_request(wanted, key), gather_s=wanted.gather_s, partners=wanted.partners)


def _request(wanted: SweepSettings, key: str) -> SweepRequest:
    request = SweepRequest.model_validate({name: value for name, value in wanted if name in SweepRequest.model_fields})
    try:
        check_limits(request)
    except Refused as refused:
        raise SettingsError(f"setting '{key}': {refused}") from None
    return request


def read_cron(expression: str, zone: str, key: str) -> Cron:
    """The cron expression of the table `key` of the settings, in its time zone."""
    try:
        cron = Cron(expression, zoneinfo.ZoneInfo(zone))
        due = cron.after(SOME_DAY.timestamp())
    except CronSimError as error:
        field = str(error).removeprefix("Bad ")
        valid = f"valid are {_VALID[field]}, and of these lists 1,2, ranges 1-5 and steps */5"
        raise SettingsError(f"setting '{key}.cron': cannot read the {field}: {valid} (got {expression!r})") from None
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):  # OSError for a directory of zones
        problem = unknown("time zone", zone, zoneinfo.available_timezones())
        raise SettingsError(f"setting '{key}.timezone': {problem}") from None
    if math.isinf(due):
        raise SettingsError(f"setting '{key}.cron': there is no such day (got {expression!r})")
    return cron
