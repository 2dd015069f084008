"""Which hardware a node has: what it is compared with, and what is missing for its references."""

import pytest
from tests.cases import cases
from tests.coordinator.fleets import check, fleet, head, report, run, sweep
from tests.coordinator.recount import assert_counts

from muster.check import Scope, Worse
from muster.model import Device, Health, Inventory, MachineType, MachineTypeSource, Severity
from muster.wire.messages import InventoryReport
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import InventorySeen, LabelsSeen, SaveNode
from muster_coordinator.model.hardware_kind import HardwareKind
from muster_coordinator.model.nodes import NodeRecord, NodeView
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.sweeps.partners import draw_partners
from muster_coordinator.sweeps.planning import plan_sweep
from muster_coordinator.topology.selection import parse_selection
from muster_coordinator.views.node_health import health_report

GEMM = check("gemm", Scope.NODE).model_copy(update={"compared": {"tflops": Worse.LOWER}})
CHECKS = (GEMM, check("collective", Scope.GROUP))
LABEL = "node.kubernetes.io/instance-type"


def equipped(made: Fleet, node: str, model: str | None = None, at: float = 0.0, **more: object) -> None:
    """The node reports an inventory with one GPU of this model."""
    devices = () if model is None else (Device(index=0, uuid=f"GPU-{node}", model=model),)
    found = Inventory.model_validate({"devices": devices, **more})
    made.handle(InventorySeen(InventoryReport(**head(node), inventory=found, checks=CHECKS)), at)


def measured(made: Fleet, node: str, tflops: float, seq: int) -> None:
    """A run whose facts do not name the GPU, as those of many checks."""
    found = run(seq, node=node).model_copy(
        update={"id": f"{node}-{seq}", "metrics": {"tflops": [tflops]}, "facts": {"devices": [0]}}
    )
    made.handle(report(found, after=seq - 1), float(seq))


def seen(made: Fleet, node: str) -> NodeView:
    view = made.node(node, 1.0)
    assert view is not None
    return view


def codes(made: Fleet, node: str) -> list[str]:
    return [finding.code for finding in seen(made, node).findings]


FAST = [f"fast{number}" for number in range(12)]
SLOW = [f"slow{number}" for number in range(12)]


@pytest.mark.parametrize("machine_type", [None, "PowerEdge XE9680"])
def test_nodes_with_gpus_of_two_models_are_compared_only_with_their_own_kind(machine_type: str | None) -> None:
    """Without a machine type, and where a maker sells one machine with either GPU: an A100 is no slow H100."""
    made = Fleet(name="test", epoch=7)
    for node in (*FAST, *SLOW):
        equipped(made, node, "NVIDIA H100" if node in FAST else "NVIDIA A100", machine_type=machine_type)
    for seq in range(1, 4):
        for node in (*FAST, *SLOW):
            measured(made, node, 700.0 if node in FAST else 250.0, seq)
    assert {seen(made, node).health for node in (*FAST, *SLOW)} == {Health.HEALTHY}
    views = made.baselines()
    assert sorted((view.when["gpu_models"], view.devices) for view in views) == [
        (["NVIDIA A100"], 12),
        (["NVIDIA H100"], 12),
    ]
    for seq in range(4, 7):
        measured(made, "fast7", 250.0, seq)
    assert codes(made, "fast7") == ["baseline.outlier"]
    assert_counts(made, 1.0)


def test_a_sweep_tells_nodes_with_gpus_of_two_models_apart() -> None:
    """So that nobody is convicted for what all nodes with this GPU do."""
    made = Fleet(name="test", epoch=7)
    equipped(made, "a", "NVIDIA H100")
    equipped(made, "b", "NVIDIA A100")
    equipped(made, "c", "NVIDIA A100", machine_type="a2")
    equipped(made, "d")
    plan = plan_sweep(sweep("s", strategy="whole"), made._registry.nodes, {})
    kinds = {site.node: site.hardware_kind for site in plan.sites}
    assert kinds == {"a": "NVIDIA H100", "b": "NVIDIA A100", "c": "a2 with NVIDIA A100", "d": None}


def test_partners_have_the_same_hardware() -> None:
    """Others only if there are too few: a healthy old node is a bad partner for a new one."""
    made = Fleet(name="test", epoch=7)
    for name in (*FAST[:4], *SLOW[:4]):
        equipped(made, name, "NVIDIA H100" if name in FAST else "NVIDIA A100")
    nodes = made._registry.nodes
    for node in nodes.values():
        node.health = Health.HEALTHY
    three, five = (draw_partners(nodes["slow0"], nodes, "collective", number, seed="s") for number in (3, 5))
    assert {node.name for node in three} == {*SLOW[1:4]}
    assert {*SLOW[1:4]} < {node.name for node in five}


@cases(
    ("kind", "text"),
    [
        (HardwareKind(), ""),
        (HardwareKind("a3"), "a3"),
        (HardwareKind(None, ("A100", "H100")), "A100 and H100"),
    ],
)
def test_a_kind_of_hardware_is_named_by_what_is_known(kind, text):
    """Machine type and models."""
    assert str(kind) == text


def test_the_label_at_the_scheduler_is_the_machine_type_of_an_agent_that_has_none() -> None:
    """For selections, comparisons and people; what the agent itself says goes before it."""
    made = fleet("a", "b")
    equipped(made, "a", "NVIDIA B200")
    equipped(made, "b", "NVIDIA B200", machine_type="ours")
    for node in ("a", "b"):
        made.handle(LabelsSeen("kubernetes", node, {LABEL: "a4-highgpu-8g"}), 1.0)
    view = seen(made, "a")
    assert (view.machine_type, [each.said_by for each in view.machine_types]) == ("a4-highgpu-8g", [LABEL])
    chosen = parse_selection("machine_type=a4-*").fitting(made.candidates(made.names), made.declared)
    assert list(chosen.nodes) == ["a"]
    assert_counts(made, 1.0)
    made.handle(LabelsSeen("kubernetes", "a", {}), 2.0)
    assert seen(made, "a").machine_type is None
    assert_counts(made, 2.0)


def test_references_that_wait_for_the_machine_type_are_a_finding_of_the_node() -> None:
    """It stands once, says what to set, changes no health, outlives a restart, and ends with the reason for it."""
    made = fleet("a")
    equipped(made, "a", "NVIDIA B200", waiting_references=["collective busbw_gbps (a4-highgpu-8g)"])
    for seq in range(1, 4):
        measured(made, "a", 1.0, seq)
    (finding,) = seen(made, "a").findings
    assert (finding.code, finding.severity, finding.check) == ("node.machine_type_unknown", Severity.UNKNOWN, "node")
    assert "collective busbw_gbps (a4-highgpu-8g); set agent.machine_type on the node" in finding.summary
    assert seen(made, "a").health is Health.HEALTHY
    assert health_report(seen(made, "a"), 1.0).findings == ()
    assert made.tally(1.0).codes == {"node.machine_type_unknown": 1}
    assert_counts(made, 1.0)

    record = NodeRecord.model_validate_json(made._registry.nodes["a"].record().model_dump_json())
    again = Fleet(name="test", epoch=8)
    again.restore(StoredFleet(nodes=(record,)), 5.0)
    assert codes(again, "a") == ["node.machine_type_unknown"]

    equipped(made, "a", "NVIDIA B200", machine_type="a4-highgpu-8g")
    assert codes(made, "a") == []
    assert_counts(made, 1.0)


def test_sources_that_disagree_are_a_finding_of_the_node() -> None:
    """The first one counts, and nobody has to guess that another one says something else."""
    made = fleet("a")
    cloud = MachineType(name="a4-highgpu-8g", source=MachineTypeSource.CLOUD, said_by="Google Cloud")
    equipped(made, "a", "NVIDIA B200", machine_type="a4-highgpu-8g", machine_types=[cloud])
    assert codes(made, "a") == []
    made.handle(LabelsSeen("kubernetes", "a", {LABEL: "a3-ultragpu-8g"}), 1.0)
    (finding,) = seen(made, "a").findings
    assert finding.code == "node.machine_type_disputed"
    assert f"a4-highgpu-8g (metadata server of Google Cloud), a3-ultragpu-8g (label {LABEL})" in finding.summary
    assert_counts(made, 1.0)


def test_a_stored_node_of_an_earlier_release_has_no_sources() -> None:
    """Its machine type counts as before."""
    made = fleet("a")
    equipped(made, "a", machine_type="ours")
    stored = made._registry.nodes["a"].record().model_dump(mode="json")
    for name in ("machine_types", "waiting_references"):
        del stored["inventory"][name]
    again = Fleet(name="test", epoch=8)
    commands = again.restore(StoredFleet(nodes=(NodeRecord.model_validate(stored),)), 5.0)
    assert not [command for command in commands if isinstance(command, SaveNode)]
    assert (seen(again, "a").machine_type, seen(again, "a").machine_types) == ("ours", ())
