"""What plugins are told about the health of a node, made from its view. Pure."""

from collections.abc import Mapping

from muster.model import Severity
from muster.node_health import HealthFinding, NodeHealthReport
from muster_coordinator.model.nodes import NodeFinding, NodeView

MOST_FINDINGS = 32
"""In a report; a node that has more is bad enough."""

_WORST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.UNKNOWN)
"""The severities of findings that stand."""


def health_report(view: NodeView, at: float) -> NodeHealthReport:
    """How the node was at `at`, with its findings, the worst first."""
    uuids = {device.index: device.uuid for device in view.devices}
    worst = sorted(view.findings, key=lambda finding: _WORST_FIRST.index(finding.severity))[:MOST_FINDINGS]
    return NodeHealthReport(
        node=view.name,
        at=at,
        health=view.health,
        is_silent=view.lost or view.left,
        findings=tuple(_finding(finding, uuids) for finding in worst),
    )


def _finding(finding: NodeFinding, uuids: Mapping[int, str]) -> HealthFinding:
    return HealthFinding(
        code=finding.code,
        check=finding.check,
        device=finding.device,
        uuid="" if finding.device is None else uuids.get(finding.device, ""),
        xid=_number(finding, "xid"),
        sxid=_number(finding, "sxid"),
        summary=finding.summary,
        severity=finding.severity,
        action=finding.action,
    )


def _number(finding: NodeFinding, name: str) -> int | None:
    """A number by which the driver calls an error; agents write what they like there."""
    number = finding.evidence.get(name)
    return number if isinstance(number, int) else None
