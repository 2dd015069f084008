"""What plugins are told about the health of a node."""

from muster import HealthFinding, NodeHealthReport
from muster.model import Action, Device, Health, ServiceState, Severity
from muster_coordinator.model.nodes import NodeFinding, NodeView
from muster_coordinator.views.node_health import MOST_FINDINGS, health_report


def finding(code, severity, **more):
    return NodeFinding(code=code, summary="found", severity=severity, check="nvml", run="r1", since=1.0, **more)


def view(*findings, **more):
    device = Device(index=3, uuid="GPU-healthy", model="H100")  # it has the index since a reboot
    usual = {"health": Health.FAILED, "service": ServiceState.IN_SERVICE, "lost": False, "last_seen": 1.0}
    return NodeView(name="n1", devices=(device,), findings=findings, **{**usual, **more})


def test_the_worst_finding_comes_first():
    """With the number by which the driver calls it, and the UUID that its GPU had in the run."""
    unsure = finding("nvml.read_failed", Severity.UNKNOWN)
    warned = finding("nvml.too_hot", Severity.WARNING, device=7)
    lost = finding(
        "nvml.xid", Severity.ERROR, device=3, uuid="GPU-5c1d", action=Action.REBOOT_NODE, evidence={"xid": 79}
    )
    report = health_report(view(unsure, warned, lost), 5.0)
    assert (report.node, report.at, report.health, report.is_silent) == ("n1", 5.0, Health.FAILED, False)
    assert [each.code for each in report.findings] == ["nvml.xid", "nvml.too_hot", "nvml.read_failed"]
    assert report.findings[0] == HealthFinding(
        code="nvml.xid",
        check="nvml",
        device=3,
        uuid="GPU-5c1d",
        xid=79,
        summary="found",
        severity=Severity.ERROR,
        action=Action.REBOOT_NODE,
    )
    assert report.findings[1].uuid == ""


def test_evidence_that_is_no_number_is_no_xid():
    """Agents write what they like into it."""
    (said,) = health_report(view(finding("nvml.xid", Severity.ERROR, evidence={"xid": "79"})), 5.0).findings
    assert said.xid is None


def test_a_node_that_is_not_healthy_says_why():
    """Also if no finding stands against it."""
    reasons = ("not measured yet: host",)
    assert health_report(view(health=Health.UNKNOWN, reasons=reasons), 5.0).reasons == reasons


def test_a_node_that_does_not_report_is_silent():
    """Whether it is lost or has left the fleet."""
    assert [health_report(view(**{state: True}), 5.0).is_silent for state in ("lost", "left")] == [True, True]


def test_a_report_is_bounded():
    """However much an agent finds."""
    many = [finding(f"nvml.{number}", Severity.ERROR) for number in range(100)]
    report = health_report(view(*many), 5.0)
    assert len(report.findings) == MOST_FINDINGS
    assert NodeHealthReport.model_validate_json(report.model_dump_json()) == report
