"""Builds the plan of this node: the checks of the plugins, with the settings applied."""

import os
from collections.abc import Mapping

from muster.agent_settings import AgentSettings
from muster.check import AnyCheck, Params, valid_params
from muster.config import CheckSettings
from muster.errors import Refused, SettingsError, unknown
from muster_agent.decide.plan import PlannedCheck


def make_plan(
    checks: Mapping[str, AnyCheck], settings: Mapping[str, CheckSettings], *, complete: bool
) -> dict[str, PlannedCheck]:
    """Every check with its settings. Raises SettingsError for an unknown check or wrong parameters.

    `complete` is false if a plugin has failed to load: an unknown check may belong to that plugin.
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
"""Memory limit of a resident process. It queries drivers and probes, and holds no data that grows."""


def memory_limit_bytes(settings: AgentSettings) -> int:
    """Memory limit of all ranks of a run together: `agent.memory_limit_gib`, or else half of the host's memory."""
    if settings.memory_limit_gib is not None:
        return int(settings.memory_limit_gib * 2**30)
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def resident_limit_bytes(run_limit_bytes: int) -> int:
    """Memory limit of a resident process: RESIDENT_BYTES, but not more than a run may use."""
    return min(run_limit_bytes, RESIDENT_BYTES)
