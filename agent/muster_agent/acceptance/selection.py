"""Which checks somebody asks for, and with which parameters. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.check import AnyCheck, Params, valid_params
from muster.config import CheckSettings
from muster.errors import Refused, unknown
from muster.model import Json
from muster.wire.messages import PluginInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedCheck:
    """A check that is to be run, with valid parameters and its deadline in seconds."""

    check: AnyCheck
    params: Params
    timeout_s: float


def find(checks: Mapping[str, AnyCheck], name: str, failed: Iterable[PluginInfo]) -> AnyCheck:
    """The check of that name; Refused names the valid ones, and the plugins that failed, as it may be one of theirs."""
    if name in checks:
        return checks[name]
    broken = "; ".join(f"{info.name} ({info.error})" for info in failed)
    raise Refused(unknown("check", name, checks) + (f"; plugins that failed: {broken}" if broken else ""))


def select_named(
    checks: Sequence[AnyCheck], settings: Mapping[str, CheckSettings], params: Json, *, quick: bool
) -> list[SelectedCheck]:
    """The checks with `params`, which each of them must have."""
    return [_selected(check, settings, params, quick=quick) for check in checks]


def select_all(
    checks: Sequence[AnyCheck], settings: Mapping[str, CheckSettings], params: Json, *, quick: bool
) -> list[SelectedCheck]:
    """The checks, each with those of `params` that it has; Refused for one that no check has."""
    known = {key for check in checks for key in check.params.model_fields}
    for key in params:
        if key not in known:
            raise Refused(unknown("parameter", key, known))
    return [_selected(check, settings, _own(check, params), quick=quick) for check in checks]


def _own(check: AnyCheck, params: Json) -> Json:
    return {key: value for key, value in params.items() if key in check.params.model_fields}


def _selected(check: AnyCheck, settings: Mapping[str, CheckSettings], params: Json, *, quick: bool) -> SelectedCheck:
    """What is said for this one time goes before `--quick`, and that before the settings."""
    usual = settings.get(check.name, CheckSettings())
    values = {**usual.params, **(check.quick if quick else {}), **params}
    return SelectedCheck(check=check, params=valid_params(check, values), timeout_s=usual.timeout_s or check.timeout_s)
