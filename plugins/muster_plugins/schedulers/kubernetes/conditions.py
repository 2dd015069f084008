"""The conditions of a node, which show its health to other programs. Pure.

`MusterHealthy` is True while no fault is known. The conditions by component have the polarity of node-problem-detector:
True is a problem. Both describe health. The label and the annotation say whether the node gets work.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from muster import HealthFinding, NodeHealthReport, Severity, describe_causes
from muster.model import Health, Json
from muster_plugins.schedulers.kubernetes.components import COMPONENTS, component_of
from muster_plugins.schedulers.kubernetes.node import NodeCondition
from muster_plugins.schedulers.kubernetes.texts import MOST_CHARACTERS, api_time

TYPE = "MusterHealthy"

_STATUS = {
    Health.HEALTHY: "True",
    Health.DEGRADED: "True",
    Health.SUSPECT: "False",
    Health.FAILED: "False",
    Health.UNKNOWN: "Unknown",
}
_WORD = {
    Health.HEALTHY: "Healthy",
    Health.DEGRADED: "Degraded",
    Health.SUSPECT: "Suspect",
    Health.FAILED: "Failed",
    Health.UNKNOWN: "NotMeasured",
}


class _ConditionContent(NamedTuple):
    """The content of a condition."""

    status: str
    reason: str
    message: str


_SILENT = _ConditionContent("Unknown", "AgentSilent", "the agent has stopped reporting")


def conditions(report: NodeHealthReport, before: Mapping[str, NodeCondition], *, by_component: bool) -> list[Json]:
    """The conditions; `before` are the present ones by type. The transition time changes with the status only."""
    said = {TYPE: _SILENT if report.is_silent else _health(report)}
    if by_component:
        said |= {kind: _SILENT if report.is_silent else _component(kind, report) for kind in COMPONENTS}
    return [_condition(kind, each, api_time(report.at), before.get(kind)) for kind, each in said.items()]


def _health(report: NodeHealthReport) -> _ConditionContent:
    status = _STATUS[report.health]
    is_bad = status == "False" and report.findings and report.findings[0].severity is Severity.ERROR
    reason = _reason(report.findings[0]) if is_bad else _WORD[report.health]
    return _ConditionContent(status, reason, _message(report))


def _component(kind: str, report: NodeHealthReport) -> _ConditionContent:
    """Only errors are a problem. Without an error, a node that was not measured is Unknown."""
    found = [each for each in report.findings if component_of(each) == kind and each.severity is Severity.ERROR]
    if found:
        return _ConditionContent("True", _reason(found[0]), _causes(found))
    if report.health is Health.UNKNOWN:
        return _ConditionContent("Unknown", _WORD[report.health], "not every check could tell")
    return _ConditionContent("False", "NoProblem", "no check finds a problem")


def _message(report: NodeHealthReport) -> str:
    """The findings; without any, why the node is not healthy, for example which checks have not reported yet."""
    if report.findings:
        return _causes(report.findings)
    return "; ".join(report.reasons)[:MOST_CHARACTERS] or f"health is {report.health}"


def _causes(findings: Sequence[HealthFinding]) -> str:
    return describe_causes(findings, findings[0].action)[:MOST_CHARACTERS]


def _reason(finding: HealthFinding) -> str:
    """The label as the API takes a reason: `Xid79`, `NvmlEccUncorrected`."""
    words = re.findall(r"[A-Za-z0-9]+", finding.label)
    reason = "".join(word[0].upper() + word[1:].lower() for word in words)
    return reason if reason[:1].isalpha() else f"Finding{reason}"


def _condition(kind: str, said: _ConditionContent, now: str, before: NodeCondition | None) -> Json:
    stands = before is not None and before.status == said.status
    return {
        "type": kind,
        "status": said.status,
        "reason": said.reason,
        "message": said.message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": (before.since if before and stands else None) or now,
    }
