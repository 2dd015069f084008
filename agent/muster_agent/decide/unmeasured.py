"""Runs that never started. The agent reports them like any other run, because silence would look like health."""

from muster.model import Finding, Run, Severity, Verdict
from muster.wire.messages import RunCheck
from muster_agent.decide.orders import Order


def not_idle(node: str, order: Order, why: str, now: float) -> Run:
    """The SKIPPED run of an order that did not get the node."""
    return Run(
        id=order.run,
        node=node,
        check=order.check.name,
        verdict=Verdict.SKIPPED,
        findings=(Finding(code="run.not_idle", summary=why, severity=Severity.SKIPPED),),
        params=order.params.model_dump(mode="json"),
        started_at=now,
        duration_s=0.0,
        cause=order.cause,
    )


def refused(node: str, command: RunCheck, why: str, now: float) -> Run:
    """The UNKNOWN run of a request whose check or parameters are not valid here."""
    return Run(
        id=command.run,
        node=node,
        check=command.check,
        verdict=Verdict.UNKNOWN,
        findings=(Finding(code="run.refused", summary=why, severity=Severity.UNKNOWN),),
        params=command.params,
        started_at=now,
        duration_s=0.0,
        cause=command.cause,
    )
