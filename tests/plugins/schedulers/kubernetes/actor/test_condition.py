"""The conditions of a node tell its health, whatever is decided about its service."""

import pytest
import structlog
from benchmarks.kubernetes_standin.faults import Fault
from tests.cases import cases

from muster import HealthFinding, NodeHealthReport
from muster.config import Config, Settings
from muster.errors import Unavailable
from muster.plugins import collect_checks, load
from muster_plugins.schedulers.kubernetes import plugin
from muster_plugins.schedulers.kubernetes.components import COMPONENTS, component_of
from muster_plugins.schedulers.kubernetes.conditions import conditions
from muster_plugins.schedulers.kubernetes.node import NodeCondition

AT = 1_800_000_000.0
NOW, LATER, SINCE = "2027-01-15T08:00:00Z", "2027-01-15T08:03:00Z", "2026-12-24T18:00:00Z"
UUID = "GPU-5c1d2e3f-1111-2222-3333-444455556666"
BUS = {"code": "nvml.xid", "device": 3, "uuid": UUID, "xid": 79, "summary": "XID 79, GPU has fallen off the bus"}
ECC = {"code": "nvml.ecc_uncorrected", "device": 0, "uuid": UUID, "summary": "2 uncorrected memory errors"}


def finding(about=BUS, severity="ERROR", action="REBOOT_NODE"):
    return HealthFinding.model_validate({**about, "severity": severity, "action": action})


def report(health="HEALTHY", *findings, node="n1", at=AT, **more):
    return NodeHealthReport(node=node, at=at, health=health, findings=findings, **more)


def told(health, *findings, by_component=False, before=(), **more):
    """Status and reason, by type."""
    known = {condition.type: condition for condition in before}
    said = conditions(report(health, *findings, **more), known, by_component=by_component)
    return {each["type"]: (each["status"], each["reason"]) for each in said}


@cases(
    ("health", "findings", "status", "reason"),
    [
        ("HEALTHY", [], "True", "Healthy"),
        ("DEGRADED", [finding(severity="WARNING")], "True", "Degraded"),
        ("SUSPECT", [finding()], "False", "Xid79"),
        ("FAILED", [finding(ECC), finding()], "False", "NvmlEccUncorrected"),
        ("FAILED", [finding({"code": "kernel_log.sxid", "sxid": 12028})], "False", "Sxid12028"),
        ("FAILED", [finding({"code": "script.nhc.disk-full"})], "False", "ScriptNhcDiskFull"),
        ("FAILED", [finding({"code": "9.lives"})], "False", "Finding9Lives"),
        ("FAILED", [], "False", "Failed"),
        ("UNKNOWN", [finding(severity="UNKNOWN")], "Unknown", "NotMeasured"),
    ],
)
def test_the_condition_is_the_health(health, findings, status, reason):
    """False only where something is broken; the reason is the worst finding."""
    assert told(health, *findings) == {"MusterHealthy": (status, reason)}


@pytest.mark.parametrize("health", ["HEALTHY", "FAILED"])
def test_a_silent_node_is_neither_healthy_nor_broken(health):
    """Nobody knows how it is."""
    assert set(told(health, finding(), by_component=True, is_silent=True).values()) == {("Unknown", "AgentSilent")}


def test_the_message_says_the_cause_first():
    """With the UUID and what to do."""
    (said,) = conditions(report("FAILED", finding(), finding(ECC)), {}, by_component=False)
    assert said["message"] == (
        f"XID 79 GPU3: GPU has fallen off the bus; reboot the node; {UUID}; +1 more: nvml.ecc_uncorrected GPU0"
    )


def test_without_a_finding_the_message_says_what_is_missing():
    """A new node is not measured, and an operator sees by which checks."""
    (said,) = conditions(report("UNKNOWN", reasons=("not measured yet: host",)), {}, by_component=False)
    assert (said["status"], said["message"]) == ("Unknown", "not measured yet: host")


@pytest.mark.parametrize(
    ("before", "health", "since"),
    [(None, "FAILED", NOW), ("True", "FAILED", NOW), ("False", "FAILED", SINCE), ("True", "DEGRADED", SINCE)],
)
def test_the_condition_holds_since_its_status_has_changed(before, health, since):
    """As tools expect that wait for so long before they repair a node; the heartbeat is that of the report."""
    known = NodeCondition.model_validate({"type": "MusterHealthy", "status": before or "", "lastTransitionTime": SINCE})
    (said,) = conditions(report(health, finding()), {known.type: known} if before else {}, by_component=False)
    assert (said["lastHeartbeatTime"], said["lastTransitionTime"]) == (NOW, since)


def test_components_have_the_polarity_of_node_problem_detector():
    """True is a problem; a warning is none."""
    said = told("FAILED", finding(), finding(ECC, severity="WARNING"), by_component=True)
    assert said == {
        "MusterHealthy": ("False", "Xid79"),
        "MusterGpuProblem": ("True", "Xid79"),
        "MusterGpuMemoryProblem": ("False", "NoProblem"),
        "MusterNvlinkProblem": ("False", "NoProblem"),
        "MusterNetworkProblem": ("False", "NoProblem"),
        "MusterHostProblem": ("False", "NoProblem"),
    }
    assert told("UNKNOWN", by_component=True)["MusterGpuProblem"] == ("Unknown", "NotMeasured")


@cases(
    ("code", "number", "component"),
    [
        ("nvml.xid", 79, "MusterGpuProblem"),
        ("nvml.xid", 64, "MusterGpuMemoryProblem"),
        ("kernel_log.xid", 74, "MusterNvlinkProblem"),
        ("kernel_log.xid", 149, "MusterNvlinkProblem"),
        ("nvml.row_remap_failed", None, "MusterGpuMemoryProblem"),
        ("memory.corrupt", None, "MusterGpuMemoryProblem"),
        ("memory.host_slow", None, "MusterHostProblem"),
        ("kernel_log.sxid", None, "MusterNvlinkProblem"),
        ("nvml.fabric_not_joined", None, "MusterNvlinkProblem"),
        ("fabric.port_down", None, "MusterNetworkProblem"),
        ("kernel_log.nic_health", None, "MusterNetworkProblem"),
        ("collective.slow", None, "MusterNetworkProblem"),
        ("gemm.corrupt", None, "MusterGpuProblem"),
        ("dcgm.failed", None, "MusterGpuProblem"),
        ("kernel_log.off_the_bus", None, "MusterGpuProblem"),
        ("host.stuck_process", None, "MusterGpuProblem"),
        ("host.disk_full", None, "MusterHostProblem"),
        ("kernel_log.machine_check_uncorrected", None, "MusterHostProblem"),
        ("script.nhc.failed", None, "MusterHostProblem"),
    ],
)
def test_each_finding_has_one_component(code, number, component):
    """That which a technician would look at."""
    assert component_of(finding({"code": code, "xid": number})) == component


def test_what_gpu_checks_find_is_about_gpus():
    """Whatever they find: a new code does not silently become a problem of the host."""
    checks = collect_checks(load(Config(Settings())))
    found = {code for name in ("nvml", "gemm", "training", "dcgm") for code in checks[name].finds}
    components = {component_of(finding({"code": code})) for code in found}
    assert "MusterHostProblem" not in components
    assert components <= set(COMPONENTS)


# Against the API


def shown(standin, name="n1"):
    conditions = standin.node(name)["status"]["conditions"]
    return {it["type"]: (it["status"], it["reason"]) for it in conditions if it["type"].startswith("Muster")}


def requests(standin):
    return [(it.verb, it.path.removeprefix("/api/v1/nodes")) for it in standin.requests]


async def test_health_is_written_and_kept_alive(standin, coordinator):
    """A heartbeat is one request and moves only its own time."""
    await coordinator.show(report())
    (before,) = (it for it in standin.node("n1")["status"]["conditions"] if it["type"] == "MusterHealthy")
    standin.requests.clear()
    await coordinator.show(report(at=AT + 180))
    (after,) = (it for it in standin.node("n1")["status"]["conditions"] if it["type"] == "MusterHealthy")
    assert requests(standin) == [("patch", "/n1/status")]
    assert (before["status"], before["lastHeartbeatTime"]) == ("True", NOW)
    assert after == {**before, "lastHeartbeatTime": LATER}


async def test_a_survey_spares_the_question_who_a_node_is(standin, coordinator):
    """After it, each node takes one request."""
    await coordinator.survey()
    standin.requests.clear()
    await coordinator.show(report("FAILED", finding()))
    assert (requests(standin), shown(standin)) == ([("patch", "/n1/status")], {"MusterHealthy": ("False", "Xid79")})


async def test_the_service_state_does_not_touch_the_condition(standin, coordinator):
    """A cordon is no fault, and a fault no cordon."""
    await coordinator.show(report("FAILED", finding()))
    before = standin.node("n1")["status"]
    for after in ("CORDONED", "PROBATION", "IN_SERVICE", "HELD"):
        await coordinator.tell(after)
    assert standin.node("n1")["status"] == before


async def test_an_older_report_changes_nothing(coordinator, standin):
    """A heartbeat that was under way when the health changed comes too late."""
    await coordinator.show(report("FAILED", finding(), at=AT + 1))
    await coordinator.show(report(at=AT))
    assert shown(standin) == {"MusterHealthy": ("False", "Xid79")}


async def test_a_node_that_was_created_again_gets_its_condition(standin, coordinator, kubectl):
    """Nothing is written on the one before."""
    await coordinator.show(report())
    await kubectl.delete("n1")
    standin.add_node("n1")
    await coordinator.show(report("FAILED", finding(), at=AT + 1))
    assert shown(standin) == {"MusterHealthy": ("False", "Xid79")}


async def test_a_survey_gives_a_node_that_was_created_again_its_condition(standin, coordinator, kubectl):
    """As it was told last, and once. A refusal is no trouble for the survey, nor for other nodes."""
    standin.add_node("n2")
    await coordinator.show(report("FAILED", finding()), report(node="n2"))
    await coordinator.survey()
    for name in ("n1", "n2"):
        await kubectl.delete(name)
        standin.add_node(name)
    standin.order(Fault.INTERNAL, verb="patch", path="/api/v1/nodes/n2/status")
    assert len((await coordinator.survey()).nodes) == 2
    assert (shown(standin), shown(standin, "n2")) == ({"MusterHealthy": ("False", "Xid79")}, {})
    standin.requests.clear()
    await coordinator.survey()
    assert "patch" not in dict(requests(standin))


async def test_a_node_that_has_opted_out_has_no_condition(standin, coordinator, kubectl):
    """Muster leaves it alone altogether."""
    await kubectl.label("n1", "muster.dev/opt-out", "true")
    await coordinator.show(report("FAILED", finding()))
    assert shown(standin) == {}


async def test_a_node_that_kubernetes_does_not_have_is_no_trouble(standin, coordinator):
    """The others get theirs."""
    await coordinator.show(report(node="elsewhere"), report())
    assert shown(standin) == {"MusterHealthy": ("True", "Healthy")}


async def test_what_is_refused_is_said_and_the_others_are_written(standin, coordinator):
    """So that it is told again. After three refusals the server is left alone."""
    standin.add_node("n2")
    standin.order(Fault.INTERNAL, verb="patch", path="/api/v1/nodes/n1/status")
    with pytest.raises(Unavailable, match="conditions of nodes: HTTP 500"):
        await coordinator.show(report(), report(node="n2"))
    assert (shown(standin), shown(standin, "n2")) == ({}, {"MusterHealthy": ("True", "Healthy")})
    standin.order(Fault.INTERNAL, verb="patch", path="*/status", times=3)
    with pytest.raises(Unavailable):
        await coordinator.show(*(report(node=node, at=AT + 1) for node in ("n1", "n2", "n1", "n2")))
    assert requests(standin)[-4:] == [("patch", f"/{node}/status") for node in ("n2", "n1", "n2", "n1")]


async def test_nodes_that_may_not_be_written_keep_no_others_from_it(standin, coordinator):
    """Each is refused for its own sake. The log says it once, with what to grant, and again after it was over."""
    names = ("n1", "n2", "n3", "n4")
    for name in names[1:]:
        standin.add_node(name)
    for name in names[:3]:
        standin.order(Fault.FORBIDDEN, verb="patch", path=f"/api/v1/nodes/{name}/status", times=2)
    with structlog.testing.capture_logs() as logged:
        for seconds in range(2):
            await coordinator.show(*(report(node=name, at=AT + seconds) for name in names))
        assert [shown(standin, name) for name in names] == [{}, {}, {}, {"MusterHealthy": ("True", "Healthy")}]
        (line,) = (line for line in logged if line["event"] == "condition_refused")
        assert (line["log_level"], line["node"]) == ("warning", "n1")
        assert "HTTP 403" in line["reason"]
        assert "grant it by RBAC: patch nodes/status" in line["reason"]
        await coordinator.show(*(report(node=name, at=AT + 2) for name in names))
        assert {name for name in names if shown(standin, name)} == set(names)
        standin.order(Fault.FORBIDDEN, verb="patch", path="*/status")
        await coordinator.show(report(at=AT + 3))
    assert [line["node"] for line in logged if line["event"] == "condition_refused"] == ["n1", "n1"]


async def test_conditions_by_component_come_and_go_with_the_setting(standin, coordinator, new_coordinator):
    """Server-side apply takes back what is no longer asked for."""
    more = new_coordinator({"kubeconfig": str(standin.kubeconfig()), "component_conditions": True})
    await more.show(report("FAILED", finding()))
    assert shown(standin)["MusterGpuProblem"] == ("True", "Xid79")
    assert set(shown(standin)) == {"MusterHealthy", *COMPONENTS}
    await coordinator.show(report("FAILED", finding(), at=AT + 1))
    assert set(shown(standin)) == {"MusterHealthy"}


async def test_a_plugin_that_is_no_actor_writes_nothing(standin, coordinator):
    """As on an agent, or where the settings do not name it. It need not be called again."""
    assert await plugin.muster_node_health(Config(Settings()), (report(),)) is False
    assert requests(standin) == []
