"""The list of nodes: what is wrong first, in lines that fit a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import cases

from muster.model import Device, Health, ServiceState, Severity
from muster.transition import Cause
from muster_coordinator.evidence.health import present_health
from muster_coordinator.model.nodes import NodeFinding, NodeView
from muster_coordinator.store import disk_budget
from muster_coordinator.views.node_list import (
    _DRY_RUN_NOTE,
    EARLY_DAYS,
    HEALTH_ORDER,
    MOST_FINE,
    SERVICE_ORDER,
    SEVERITY_ORDER,
    _urgency,
    database_warning,
    devices,
    fleet_findings,
    health,
    load_warning,
    node_list,
    seen,
)
from muster_coordinator.views.node_summary import node_summary

NOW = 1_800_000_000.0


def finding(code, severity=Severity.ERROR, device=None, **evidence):
    said = {"code": code, "device": device, "summary": "it is bad", "severity": severity, "evidence": evidence}
    return NodeFinding.model_validate({**said, "check": "c", "run": "r", "since": NOW})


def node(name="n1", state=Health.HEALTHY, service=ServiceState.IN_SERVICE, *, ago_s=4.0, **values):
    known = {"lost": False, "devices": (), "findings": (), **values}
    now = present_health(state, lost=known["lost"])
    view = NodeView(name=name, health=now, last_health=state, service=service, last_seen=NOW - ago_s, **known)
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


def test_a_summary_is_listed_as_the_whole_node():
    """The list shows the same for both: older coordinators serve whole nodes only."""
    found = (finding("kernel_log.xid", device=3, xid=79), finding("gemm.slow", Severity.WARNING, tflops=1.5))
    simulated = Device(index=8, uuid="8", model="Stand-in", simulated=True)
    whole = [
        node("a", Health.FAILED, findings=found, devices=(*H100, simulated)),
        node("b", lost=True, dry_run=True),
        node("c", left=True, lost=True),
    ]
    short = [node_summary(NodeView.model_validate(view)).model_dump(mode="json") for view in whole]
    assert node_list(short, NOW, 200) == node_list(whole, NOW, 200)
    assert "8 x H100 80GB HBM3, 1 x Stand-in (simulated)" in node_list(short, NOW, None)


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


def test_many_fine_nodes_are_counted():
    """A thousand lines would hide the three that matter; a node with a finding is not fine."""
    fine = [node(f"n{number:03}") for number in range(MOST_FINE + 1)]
    wrong = [
        node("bad", Health.FAILED),
        node("out", service=ServiceState.CORDONED),
        node("odd", findings=(finding("a.b"),)),
    ]
    text = node_list([*fine, *wrong], NOW, 80, shows_all=False)
    assert (names(text)[:3], len(text.splitlines())) == (["bad", "out", "odd"], 5)
    assert text.splitlines()[-1] == "21 nodes are HEALTHY and IN_SERVICE; --all lists them"
    assert node_list(fine, NOW, 80, shows_all=False) == "21 nodes are HEALTHY and IN_SERVICE; --all lists them"
    assert len(node_list(fine[1:], NOW, 80, shows_all=False).splitlines()) == MOST_FINE + 1
    assert len(node_list(fine, NOW, 80).splitlines()) == MOST_FINE + 2


def test_sorted_nodes_keep_their_order():
    """The coordinator has sorted them by what the list does not have."""
    assert names(node_list([node("b"), node("a", Health.FAILED)], NOW, 80, is_sorted=True)) == ["b", "a"]


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
    """With the number of an XID, which says what it is, and all GPUs that have it."""
    xid = finding("kernel_log.xid", xid=79)
    findings = (finding("a.note", Severity.INFO), xid, xid, xid.model_copy(update={"device": 3}))
    assert "XID 79, XID 79 GPU3, a.note" in node_list([node(findings=findings)], NOW, None)
    slow = [finding("gemm.slow").model_copy(update={"device": gpu}) for gpu in (0, 5)]
    assert "gemm.slow GPU0,5" in node_list([node(findings=slow)], NOW, None)


@cases("evidence", [{"xid": 79}, {"sxid": 12028}, {"xid": 48, "sxid": 1}])
@cases("device", [None, 3])
def test_an_error_of_the_driver_has_the_same_name_as_everywhere(evidence, device):
    """In Slurm's reason, the Events and `muster quarantine list`; the list does not import what writes it there."""
    found = finding("kernel_log.xid", **evidence).model_copy(update={"device": device})
    assert node_list([node(findings=[found])], NOW, None).endswith(f"  {Cause.of(found, 'kernel_log').full}")


def test_a_number_that_is_none_stays_out_of_the_list():
    """An agent may put anything into the evidence."""
    text = node_list([node(findings=[finding("kernel_log.xid", xid="79" * 99)])], NOW, None)
    assert text.endswith("  kernel_log.xid")


WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=12)
NODE_NAMES = st.one_of(
    st.builds("gke-{}-{}-{}".format, WORDS, WORDS, st.from_regex(r"[0-9a-f]{8}-[0-9a-z]{4}", fullmatch=True)),
    st.builds(
        "ip-10-{}-{}-{}.us-west-2.compute.internal".format,
        *[st.integers(0, 255)] * 3,  # as on EC2
    ),
    st.builds("{}-{:04}".format, WORDS, st.integers(0, 9999)),
    st.builds(".".join, st.lists(WORDS, min_size=4, max_size=6)),
)
CODES = ["kernel_log.xid", "nvml.row_remap_pending", "training_ddp.loss_not_falling", "host.clock_unsynchronised"]


def any_finding(code, xid, gpu, severity):
    evidence = {"xid": xid} if code == CODES[0] else {}
    return finding(code, severity, **evidence).model_copy(update={"device": gpu})


GPUS = st.none() | st.integers(0, 7)
FINDINGS = st.builds(any_finding, st.sampled_from(CODES), st.integers(1, 172), GPUS, st.sampled_from(Severity))
NODES = st.builds(
    node,
    NODE_NAMES,
    st.sampled_from(Health),
    st.sampled_from(ServiceState),
    ago_s=st.floats(0, 1e7),
    lost=st.booleans(),
    left=st.booleans(),
    dry_run=st.booleans(),
    devices=st.sampled_from([(), H100]),
    findings=st.lists(FINDINGS, max_size=4),
)


@given(st.lists(NODES, min_size=1, max_size=5))
def test_lines_fit_and_show_the_worst_finding(fleet):
    """With any names: at 80 columns the whole code and number are there, and no line is longer, however narrow."""
    lines = node_list(fleet, NOW, 80).splitlines()[1:]
    for shown, line in zip(sorted(fleet, key=_urgency), lines, strict=False):
        worst = min(shown["findings"], key=lambda each: SEVERITY_ORDER.index(each["severity"]), default=None)
        if worst is not None:
            assert (f"XID {worst['evidence']['xid']}" if worst["evidence"] else worst["code"]) in line
    for width in (10, 40, 80, 120):
        listed = node_list(fleet, NOW, width).removesuffix(f"\n{_DRY_RUN_NOTE}")
        assert max(map(len, listed.splitlines())) <= width


@cases(
    ("name", "shown"),
    [
        ("gke-prod-a3-highgpu-8g-pool-1-4f2a9c-x7fz", "gke-prod-a3-hig…a9c-x7fz"),
        ("ip-10-0-12-134.us-west-2.compute.internal", "ip-10-0-12-134.…internal"),
    ],
)
def test_what_says_least_gives_way_first(name, shown):
    """The devices, the former health, the time and the middle of names; so the finding is whole."""
    xid = finding("kernel_log.xid", xid=79).model_copy(update={"device": 3})
    long = finding("training_ddp.loss_not_falling")
    fleet = [node(name, lost=True, devices=H100, findings=(xid,)), node("n2", devices=H100)]
    assert node_list(fleet, NOW, 120).splitlines()[1].split("  ")[-1] == "XID 79 GPU3"
    assert "LOST (was HEALTHY)" in node_list(fleet, NOW, 120)
    header, first, _ = node_list(fleet, NOW, 80).splitlines()
    assert header.split() == ["NODE", "HEALTH", "SERVICE", "FINDINGS"]
    assert first == f"{name}  LOST     IN_SERVICE  XID 79 GPU3"
    assert node_list(fleet, NOW, 84).splitlines()[0].split() == ["NODE", "HEALTH", "SERVICE", "SEEN", "FINDINGS"]
    fleet = [node(name, lost=True, findings=(long, xid)), node("n2", devices=H100)]
    header, first, _ = node_list(fleet, NOW, 80).splitlines()
    assert header.split() == ["NODE", "HEALTH", "SERVICE", "FINDINGS"]
    assert "training_ddp.loss_not_falling," in first
    assert shown in node_list(fleet, NOW, 74)


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


@cases(
    ("fleet", "said"),
    [
        ({"database": {"used_gb": 15.0, "max_gb": 16.0, "days_left": 1.26}}, "database: reaches 16 GB in 1.3 days; "),
        ({"database": {"used_gb": 1.0, "max_gb": 16.0, "days_left": 40.0}}, ""),
        ({"database": {"used_gb": 1.0, "max_gb": 16.0, "days_left": None}}, ""),
        ({}, ""),
    ],
)
def test_the_list_warns_of_a_database_that_is_nearly_full(fleet, said):
    """Older coordinators say nothing of it."""
    warning = database_warning(fleet, 50)
    assert warning.startswith(said) if said else not warning
    assert all(len(line) <= 50 for line in warning.splitlines())


def test_the_list_warns_when_the_log_does():
    """The command does not import the store."""
    assert EARLY_DAYS == disk_budget.EARLY_DAYS


@pytest.mark.parametrize("load", [None, {}, {"advice": ""}])
def test_a_coordinator_that_keeps_up_says_nothing_about_it(load):
    """Neither does one of an earlier version, which has no such field."""
    assert load_warning({} if load is None else {"load": load}, 80) == ""


def test_an_overloaded_coordinator_says_so_below_the_list():
    """With what to change, in lines of the terminal's width."""
    warning = load_warning({"load": {"advice": "It defers 200 reports a second. Run checks less often."}}, 40)
    assert warning.splitlines() == [
        "coordinator: overloaded. It defers 200",
        "  reports a second. Run checks less",
        "  often.",
    ]
