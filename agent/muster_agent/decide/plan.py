"""The plan of a node: every check with the interval, deadline and parameters that the settings give it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from muster.check import AnyCheck, CheckInfo, Params, Scope, describe, judged_metrics, valid_params
from muster.errors import Refused, unknown
from muster.model import Inventory, Json


@dataclass(frozen=True, kw_only=True)
class PlannedCheck:
    """A check with its settings on this node. `params` and `interval_s` are for background runs.

    A check that runs on demand only has no `interval_s` and needs no `params`. `timeout_s` is for every run.
    """

    check: AnyCheck
    params: Params | None
    timeout_s: float
    interval_s: float | None

    @cached_property
    def announcement(self) -> CheckInfo:
        """The check as this node announces it, with interval and deadline from the settings."""
        return describe(self.check).model_copy(update={"cadence_s": self.interval_s, "timeout_s": self.timeout_s})


class CannotRun(Exception):
    """A check cannot run here. `reason` is one word, which goes into Declined."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def announced(plan: Mapping[str, PlannedCheck]) -> tuple[CheckInfo, ...]:
    """The checks as this node announces them. They are made once, because their schemas take time and memory."""
    return tuple(planned.announcement for planned in plan.values())


def judged(plan: Mapping[str, PlannedCheck]) -> dict[str, tuple[str, ...]]:
    """The metrics that each check judges against references."""
    return judged_metrics({name: planned.check for name, planned in plan.items()})


def watched(plan: Mapping[str, PlannedCheck]) -> tuple[str, ...]:
    """The checks whose watch the agent keeps: those with a watch that run in the background."""
    return tuple(
        name for name, planned in plan.items() if planned.check.watch is not None and planned.interval_s is not None
    )


def find(plan: Mapping[str, PlannedCheck], name: str, params: Json) -> tuple[AnyCheck, Params]:
    """The check `name` with valid parameters; raises CannotRun if the check is unknown here or a parameter is wrong."""
    planned = plan.get(name)
    if planned is None:
        raise CannotRun("unknown_check", unknown("check", name, plan))
    try:
        return planned.check, valid_params(planned.check, params)
    except Refused as error:
        raise CannotRun("bad_params", str(error)) from None


def count_ranks(check: AnyCheck, wanted: int | None, inventory: Inventory | None, expected_gpus: int | None) -> int:
    """The number of ranks that this node brings into a group: one per device, or `wanted`, or one without devices.

    Raises CannotRun if devices are missing, because a group in which every device has a rank would be incomplete. A
    check of scope NODE still runs, because it finds out what is missing.
    """
    if inventory is None:
        raise CannotRun("busy", "the agent has just started and does not know its devices yet")
    found = len(inventory.devices)
    if check.scope is Scope.GROUP and expected_gpus is not None and found < expected_gpus:
        raise CannotRun("too_few_devices", f"{expected_gpus} expected, {found} there")
    there = max(1, found)
    if wanted is not None and not 1 <= wanted <= there:
        raise CannotRun("too_few_devices", f"{wanted} devices are wanted, {found} are there")
    return there if wanted is None else wanted
