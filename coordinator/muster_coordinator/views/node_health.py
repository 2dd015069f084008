"""The report for plugins on the health of a node, made from its view. Pure."""

from muster.model import Severity
from muster.node_health import HealthFinding, NodeHealthReport
from muster.transition import Cause
from muster_coordinator.evidence.setup_findings import SETUP
from muster_coordinator.model.nodes import NodeFinding, NodeView

MOST_FINDINGS = 32
"""Maximum number of findings, and of reasons, in a report; a node that has more is bad enough."""

_WORST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.UNKNOWN)
"""The severities of findings that stand."""


def health_report(view: NodeView, at: float) -> NodeHealthReport:
    """The health of the node at the time `at`, with its findings, the worst first.

    Findings about its setup are left out, because they are not about its health.
    """
    about_health = (finding for finding in view.findings if finding.check != SETUP)
    worst = sorted(about_health, key=lambda finding: _WORST_FIRST.index(finding.severity))[:MOST_FINDINGS]
    return NodeHealthReport(
        node=view.name,
        at=at,
        health=view.health,
        is_silent=view.lost or view.left,
        findings=tuple(_finding(finding) for finding in worst),
        reasons=view.reasons[:MOST_FINDINGS],
    )


def _finding(finding: NodeFinding) -> HealthFinding:
    cause = Cause.of(finding, finding.check, finding.uuid)
    return HealthFinding(**dict(cause), severity=finding.severity, action=finding.action)
