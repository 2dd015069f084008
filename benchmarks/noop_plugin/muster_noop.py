"""A plugin whose checks do nothing for as long as they are told: what a run costs then, muster costs."""

import time
from collections.abc import Mapping

from pydantic import Field

from muster import Check, Config, Context, Finding, Measurement, Needs, Params, Reference, Scope, hookimpl


class NoopParams(Params):
    """How long to do nothing."""

    work_s: float = Field(0.0, ge=0, description="Seconds to sleep")


def measure(params: NoopParams, context: Context) -> Measurement:
    """When the work began and ended, by the host's clock."""
    began_at = time.time()
    time.sleep(params.work_s)
    return Measurement(metrics={"began_at": began_at, "ended_at": time.time()})


def meet(params: NoopParams, context: Context) -> Measurement:
    """When the rank came to its rendezvous and when it was let go, by the host's clock; the work comes after that."""
    arrived_at = time.time()
    context.rendezvous()
    released_at = time.time()
    time.sleep(params.work_s)
    return Measurement(metrics={"arrived_at": arrived_at, "released_at": released_at})


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Nothing is expected."""
    return []


def _check(name: str, needs: Needs) -> Check[NoopParams]:
    return Check(
        name=name,
        summary="Does nothing",
        scope=Scope.NODE,
        params=NoopParams,
        measure=measure,
        judge=judge,
        timeout_s=30.0,
        needs=needs,
    )


NOOP_GROUP = Check(
    name="noop-group",
    summary="Meets and does nothing, without torch",
    scope=Scope.GROUP,
    params=NoopParams,
    measure=meet,
    judge=judge,
    timeout_s=30.0,
    needs=Needs.IDLE_NODE,
)


@hookimpl
def muster_checks(config: Config) -> list[Check[NoopParams]]:
    return [_check("noop", Needs.NOTHING), _check("noop-idle", Needs.IDLE_NODE), NOOP_GROUP]
