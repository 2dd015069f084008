"""The checks of this node as the settings want them."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.check import AnyCheck, CheckInfo, Params, Scope, describe, judged_metrics, valid_params
from muster.errors import Refused, unknown
from muster.model import Inventory, Json


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


def count_ranks(check: AnyCheck, wanted: int | None, inventory: Inventory | None, expected_gpus: int | None) -> int:
    """The ranks of this node in a group: one per device or as many as are `wanted`, or one where there is no device.

    Unfit when there are too few devices for that, or fewer than there have to be: where every device has a rank, the
    group is told so. Checks of scope NODE take part all the same, as it is for them to find out what is missing.
    """
    if inventory is None:
        raise Unfit("busy", "the agent has only just started and does not know its devices yet")
    found = len(inventory.devices)
    if check.scope is Scope.GROUP and expected_gpus is not None and found < expected_gpus:
        raise Unfit("too_few_devices", f"{expected_gpus} expected, {found} there")
    there = max(1, found)
    if wanted is not None and not 1 <= wanted <= there:
        raise Unfit("too_few_devices", f"{wanted} devices are wanted, {found} are there")
    return there if wanted is None else wanted
