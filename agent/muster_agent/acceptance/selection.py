"""Selects the checks of a request and their parameters. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.check import AnyCheck, Params, valid_params
from muster.config import CheckSettings
from muster.errors import Refused, unknown
from muster.model import Json
from muster.wire.messages import PluginInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedCheck:
    """A check to run, with valid parameters and its deadline in seconds."""

    check: AnyCheck
    params: Params
    timeout_s: float


def find(checks: Mapping[str, AnyCheck], name: str, failed: Iterable[PluginInfo]) -> AnyCheck:
    """The check `name`. Refused lists the valid names, and the plugins that failed: one of them may have it."""
    if name in checks:
        return checks[name]
    broken = "; ".join(f"{info.name} ({info.error})" for info in failed)
    raise Refused(unknown("check", name, checks) + (f"; plugins that failed: {broken}" if broken else ""))


def select_named(
    checks: Sequence[AnyCheck], settings: Mapping[str, CheckSettings], params: Json, *, quick: bool
) -> list[SelectedCheck]:
    """The named checks with `params`. Each check must have all these parameters."""
    return [_selected(check, settings, params, quick=quick) for check in checks]


def select_all(
    checks: Sequence[AnyCheck], settings: Mapping[str, CheckSettings], params: Json, *, quick: bool
) -> list[SelectedCheck]:
    """All checks, each with those of `params` that it has. Raises Refused for a parameter that no check has."""
    known = {key for check in checks for key in check.params.model_fields}
    for key in params:
        if key not in known:
            raise Refused(unknown("parameter", key, known))
    return [_selected(check, settings, _own(check, params), quick=quick) for check in checks]


def _own(check: AnyCheck, params: Json) -> Json:
    return {key: value for key, value in params.items() if key in check.params.model_fields}


def _selected(check: AnyCheck, settings: Mapping[str, CheckSettings], params: Json, *, quick: bool) -> SelectedCheck:
    """Applies `--param` over `--quick`, and that over the settings."""
    usual = settings.get(check.name, CheckSettings())
    values = {**usual.params, **(check.quick if quick else {}), **params}
    return SelectedCheck(check=check, params=valid_params(check, values), timeout_s=usual.timeout_s or check.timeout_s)
