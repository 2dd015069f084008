"""The common part of checks that read the devices of a node: `nvml` reads real ones, `simulated` simulated ones."""

from collections.abc import Callable
from functools import partial

from muster import Check, Context, Measurement, Scope
from muster_plugins.shared.devices import judgement
from muster_plugins.shared.no_params import NoParams


def device_check(
    name: str,
    measure: Callable[[NoParams, Context], Measurement],
    *,
    summary: str,
    cost_s: float,
    precedent: str,
    watch: Callable[[], None] | None = None,
) -> Check[NoParams]:
    """The check `name`, whose `measure` returns a `NodeReading` as a measurement."""
    return Check(
        name=name,
        summary=summary,
        scope=Scope.NODE,
        params=NoParams,
        measure=measure,
        judge=partial(judgement.judge, name),
        timeout_s=10.0,
        cadence_s=15.0,
        resident=True,
        judged=judgement.JUDGED,
        watch=watch,
        finds={f"{name}.{code}": meaning for code, meaning in judgement.FINDS.items()},
        cost_s=cost_s,
        precedent=precedent,
    )
