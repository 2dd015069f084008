"""The list of nodes: what is wrong first, in lines that fit a terminal."""

import pytest
from tests.cases import cases

from muster.model import Device, Health, ServiceState, Severity
from muster_coordinator.model.nodes import NodeFinding, NodeView
from muster_coordinator.views.node_list import (
    HEALTH_ORDER,
    SERVICE_ORDER,
    SEVERITY_ORDER,
    devices,
    fleet_findings,
    health,
    node_list,
    seen,
)

NOW = 1_800_000_000.0


def finding(code, severity=Severity.ERROR, **evidence):
    said = {"code": code, "summary": "it is bad", "severity": severity, "evidence": evidence}
    return NodeFinding.model_validate({**said, "check": "c", "run": "r", "since": NOW})


def node(name="n1", state=Health.HEALTHY, service=ServiceState.IN_SERVICE, *, ago_s=4.0, **values):
    known = {"lost": False, "devices": (), "findings": (), **values}
    view = NodeView(name=name, health=state, service=service, last_seen=NOW - ago_s, **known)
    return view.model_dump(mode="json")


H100 = tuple(Device(index=index, uuid=str(index), model="NVIDIA H100 80GB HBM3") for index in range(8))


def names(text):
    return [line.split()[0] for line in text.splitlines()[1:]]


@pytest.mark.parametrize(
    ("order", "kind"), [(HEALTH_ORDER, Health), (SERVICE_ORDER, ServiceState), (SEVERITY_ORDER, Severity)]
)
def test_the_orders_have_every_value_once(order, kind):
    """A new state has its place: the list does not import the models."""
    assert sorted(order) == sorted(kind)


def test_what_is_wrong_comes_first():
    """By health, then by service state, then by name; nodes that have left come last."""
    fleet = [
        node("left", Health.FAILED, left=True),
        node("b"),
        node("a"),
        node("probing", service=ServiceState.PROBATION),
        node("degraded", Health.DEGRADED),
        node("failed", Health.FAILED),
        node("cordoned", Health.FAILED, ServiceState.CORDONED),
    ]
    assert names(node_list(fleet, NOW, 80)) == ["cordoned", "failed", "degraded", "probing", "a", "b", "left"]


def test_a_lost_node_is_not_healthy():
    """It says that it is lost and what it was, and stands before healthy ones, as its health is old."""
    assert health(node(lost=True)) == "LOST (was HEALTHY)"
    assert health(node()) == "HEALTHY"
    text = node_list([node("fine"), node("lost", lost=True), node("bad", Health.FAILED)], NOW, 80)
    assert names(text) == ["bad", "lost", "fine"]
    assert "LOST (was HEALTHY)" in text


@cases("name", ["n1", "a3-mega-0123", "gke-prod-a3-highgpu-8g-pool-1-4f2a9c-x7fz"])
@cases("lost", [False, True])
def test_lines_fit_the_terminal(name, lost):
    """Whatever must be cut or left out for it: the name, the state and the first finding are there."""
    findings = tuple(finding(f"kernel_log.{what}") for what in ("xid", "machine_check", "oops"))
    shown = node(name, Health.FAILED, ServiceState.CORDONED, devices=H100, findings=findings, lost=lost)
    text = node_list([shown, node("n2", devices=H100)], NOW, 80)
    assert max(map(len, text.splitlines())) <= 80
    line = text.splitlines()[1]
    assert line.startswith(f"{name}  ")
    assert "LOST" in line if lost else "FAILED" in line
    assert "CORDONED" in line
    assert "kernel_" in line


def test_without_a_width_nothing_is_cut():
    """As with --wide, for programs and wide terminals."""
    codes = [f"check.code_{number}" for number in range(20)]
    text = node_list([node(findings=tuple(map(finding, codes)), devices=H100)], NOW, None)
    assert ", ".join(codes) in text
    assert "8 x H100 80GB HBM3" in text


def test_findings_are_the_worst_first_and_once():
    """With the number of an XID, which says what it is, and the GPU that it is about."""
    xid = finding("kernel_log.xid", xid=79)
    findings = (finding("a.note", Severity.INFO), xid, xid, xid.model_copy(update={"device": 3}))
    assert "kernel_log.xid 79, kernel_log.xid 79 GPU 3, a.note" in node_list([node(findings=findings)], NOW, None)


@cases(
    ("ago_s", "said"),
    [(-5, "0 s"), (4, "4 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (86_400, "24 h"), (200_000, "2 d")],
)
def test_how_long_ago(ago_s, said):
    """In the unit that says most in few characters; a clock that is behind makes nothing negative."""
    assert seen(node(ago_s=ago_s), NOW) == said
    assert seen(node(ago_s=ago_s, left=True), NOW) == f"left {said}"


def test_devices_are_counted_by_model():
    """Simulated ones say so, once."""
    simulated = Device(index=0, uuid="s", model="Stand-in", simulated=True)
    assert devices(node(devices=(*H100, simulated))) == "8 x H100 80GB HBM3, 1 x Stand-in (simulated)"
    assert devices(node()) == "none"


def test_a_dry_run_is_marked():
    """With a star that the last line explains."""
    text = node_list([node(service=ServiceState.CORDONED, dry_run=True)], NOW, 80)
    assert "CORDONED*" in text
    assert text.endswith("* dry run: nothing was changed in any scheduler")


def test_what_is_wrong_with_many_is_wrapped():
    """A paragraph for each finding of the fleet."""
    text = fleet_findings([{"code": "fleet.x", "summary": "many nodes are slow " * 6}], 80)
    assert text.startswith("fleet.x: many nodes are slow")
    assert max(map(len, text.splitlines())) <= 80
