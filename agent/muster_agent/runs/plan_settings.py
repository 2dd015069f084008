"""What the settings make of the checks that the plugins bring."""

import os
from collections.abc import Mapping

from muster.check import AnyCheck, Params, valid_params
from muster.config import AgentSettings, CheckSettings
from muster.errors import Refused, SettingsError, unknown
from muster_agent.decide.plan import PlannedCheck


def make_plan(
    checks: Mapping[str, AnyCheck], settings: Mapping[str, CheckSettings], *, complete: bool
) -> dict[str, PlannedCheck]:
    """Every check as the settings want it; SettingsError when they name an unknown check or wrong parameters.

    `complete` is false when a plugin has failed to load: then an unknown check may be one of its.
    """
    for name in settings:
        if complete and name not in checks:
            raise SettingsError(unknown("check", name, checks) + " under [checks]")
    return {name: _planned(check, settings.get(name, CheckSettings())) for name, check in checks.items()}


def _planned(check: AnyCheck, settings: CheckSettings) -> PlannedCheck:
    interval_s = (settings.interval_s or check.cadence_s) if settings.enabled else None
    return PlannedCheck(
        check=check,
        params=_background_params(check, settings) if interval_s is not None or settings.params else None,
        timeout_s=settings.timeout_s or check.timeout_s,
        interval_s=interval_s,
    )


def _background_params(check: AnyCheck, settings: CheckSettings) -> Params:
    try:
        return valid_params(check, settings.params)
    except Refused as error:
        raise SettingsError(f"checks.{check.name}.params: {error}") from None


RESIDENT_BYTES = 1 << 30
"""The most memory of a resident process. It asks drivers and probes, and keeps nothing that grows."""


def memory_limit_bytes(settings: AgentSettings) -> int:
    """How much memory all ranks of a run may use together: `agent.memory_limit_gib`, else half of the host's."""
    if settings.memory_limit_gib is not None:
        return int(settings.memory_limit_gib * 2**30)
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def resident_limit_bytes(run_limit_bytes: int) -> int:
    """How much memory a resident process may use: RESIDENT_BYTES, and never more than a run may."""
    return min(run_limit_bytes, RESIDENT_BYTES)
