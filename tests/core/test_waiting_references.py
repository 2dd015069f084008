"""Which references wait for a node whose machine type is unknown."""

from pydantic import JsonValue
from tests.cases import cases

from muster.model import Device, Inventory
from muster.references import Reference, shipped, waiting
from muster.waiting_references import waiting_references

CHECKS = ("collective", "gemm", "storage")
FLOORS = ("a3-highgpu-8g", "a3-megagpu-8g", "a3-ultragpu-8g", "a4-highgpu-8g", "a4x-highgpu-4g")


def node(model: str | None = None, *, simulated: bool = False, machine_type: str | None = None) -> Inventory:
    devices = () if model is None else (Device(index=0, uuid="GPU-0", model=model, simulated=simulated),)
    return Inventory(devices=devices, machine_type=machine_type)


def row(check: str = "storage", metric: str = "read_gbps", **when: JsonValue) -> Reference:
    return Reference(check=check, metric=metric, when=when, fail_below=1.0, source="a test")


@cases(
    ("inventory", "expected"),
    [
        (node("NVIDIA B200"), ("collective busbw_gbps (a4-highgpu-8g)", "collective latency_us (a4-highgpu-8g)")),
        (node("NVIDIA H200"), ("collective busbw_gbps (a3-ultragpu-8g)", "collective latency_us (a3-ultragpu-8g)")),
        (node("NVIDIA H100 80GB HBM3"), ("collective busbw_gbps (a3-megagpu-8g, a3-highgpu-8g)",)),
        (node("NVIDIA GB200"), ("collective busbw_gbps (a4x-highgpu-4g)",)),
        (node("NVIDIA A100-SXM4-80GB"), ()),
        (node("NVIDIA GeForce RTX 4090"), ()),
        (node("NVIDIA B200", machine_type="a4-highgpu-8g"), ()),
        (node("NVIDIA B200", machine_type="our own"), ()),
        (node("NVIDIA B200", simulated=True), ()),
        (node(), ()),
    ],
)
def test_shipped_floors_wait_for_the_nodes_that_they_may_be_about(inventory, expected):
    """A node without GPUs, or with other GPUs, does not wait for them; a node of a known machine type never waits."""
    assert waiting_references(inventory, shipped(), CHECKS) == expected


@cases(
    ("reference", "model", "waits"),
    [
        (row(machine_type="our own"), None, True),
        (row(machine_type=["one", "two"]), None, True),
        (row(machine_type="our own", gpu_model="NVIDIA L4"), None, False),
        (row(machine_type="our own", gpu_model="NVIDIA L4"), "NVIDIA L4", True),
        (row(machine_type="our own", gpu_model="NVIDIA L4"), "NVIDIA A100", False),
        (row(machine_type="our own", size_bytes={"at_least": 1}), None, True),
        (row("gemm", machine_type="our own", backend="cuda"), None, False),
        (row(gpu_model="NVIDIA L4"), "NVIDIA L4", False),
        (row("fabric", machine_type="our own"), None, False),
    ],
)
def test_an_operators_reference_waits_where_nothing_rules_it_out(reference, model, waits):
    """By the devices of the node; not for a check that the node does not have."""
    assert bool(waiting_references(node(model), [reference], CHECKS)) is waits


MEASURED = {"backend": "nccl", "collective": "all_gather", "nodes": 2, "size_bytes": 1 << 30}


@cases(
    ("facts", "rows", "found"),
    [
        (MEASURED, (), 7),
        ({**MEASURED, "machine_type": "a4-highgpu-8g"}, (), 0),
        ({**MEASURED, "machine_type": "our own"}, (), 0),
        ({**MEASURED, "nodes": 3}, (), 0),
        ({**MEASURED, "backend": "gloo"}, (), 0),
        (MEASURED, (row("collective", "busbw_gbps"),), 2),
    ],
)
def test_references_wait_for_a_measurement_that_meets_all_their_other_conditions(facts, rows, found):
    """Unless an operator's reference applies to the metric anyway."""
    assert len(waiting([*shipped(), *rows], "collective", facts)) == found
