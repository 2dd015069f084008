"""The part of `muster config check` for sweeps that start by themselves."""

from collections.abc import Iterator, Mapping

from muster.check import AnyCheck
from muster.config import Config
from muster.extras import missing_package


def timetable(config: Config, checks: Mapping[str, AnyCheck] | None) -> Iterator[str]:
    """Returns nothing if they can start as set. Raises SettingsError if one cannot."""
    sweeps = config.settings.sweeps
    if not sweeps.schedules and sweeps.new_nodes is None:
        return
    try:
        from muster_coordinator.runtime.settings.timetable import timetable_of  # noqa: PLC0415 (an agent's install has no cron)
    except ModuleNotFoundError as error:
        yield f"Schedules not checked: {missing_package(error) or error}"
        return
    timetable_of(config.settings)
