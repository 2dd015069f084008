"""Plans of checks that measure nothing, for tests of the agent's decisions."""

from muster.check import AnyCheck, Check, Needs, Params, Scope
from muster.model import Measurement
from muster_agent.decide.plan import PlannedCheck


def planned(
    name: str, params: Params, needs: Needs, scope: Scope = Scope.NODE, interval_s: float | None = None
) -> PlannedCheck:
    """A check as a node runs it; its parameters are of the type of `params`."""
    check: AnyCheck = Check(
        name=name,
        summary="",
        scope=scope,
        params=type(params),
        measure=lambda _params, _context: Measurement(),
        judge=lambda _measurement, _references: [],
        timeout_s=60.0,
        needs=needs,
    )
    return PlannedCheck(check=check, params=params, timeout_s=20.0, interval_s=interval_s)
