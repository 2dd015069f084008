"""The checks of this node as the settings want them."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.check import AnyCheck, CheckInfo, Params, describe, judged_metrics, valid_params
from muster.errors import Refused, unknown
from muster.model import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A check as the settings want it on this node: `params` and `interval_s` are those of its background runs.

    `interval_s` is None for a check that runs on demand only, which needs no `params` either. `timeout_s` holds for
    every run.
    """

    check: AnyCheck
    params: Params | None
    timeout_s: float
    interval_s: float | None


class Unfit(Exception):
    """Something cannot be run here; `reason` is the word that Declined has for why."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def announced(planned: Planned) -> CheckInfo:
    """The check as this node runs it: with the interval and the deadline of the settings."""
    of_settings = {"cadence_s": planned.interval_s, "timeout_s": planned.timeout_s}
    return describe(planned.check).model_copy(update=of_settings)


def judged(plan: Mapping[str, Planned]) -> dict[str, tuple[str, ...]]:
    """By check, the metrics that it has judged by references."""
    return judged_metrics({name: it.check for name, it in plan.items()})


def watched(plan: Mapping[str, Planned]) -> tuple[str, ...]:
    """The checks of which a watch is to be kept: those with one that run in the background."""
    return tuple(name for name, it in plan.items() if it.check.watch is not None and it.interval_s is not None)


def find(plan: Mapping[str, Planned], name: str, params: Json) -> tuple[AnyCheck, Params]:
    """The check of that name with parameters; Unfit when it is not known here or the parameters do not fit it."""
    planned = plan.get(name)
    if planned is None:
        raise Unfit("unknown_check", unknown("check", name, plan))
    try:
        return planned.check, valid_params(planned.check, params)
    except Refused as error:
        raise Unfit("bad_params", str(error)) from None
