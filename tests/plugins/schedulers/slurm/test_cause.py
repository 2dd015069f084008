"""Slurm's list of reasons names the fault, as a real coordinator has decided."""

import asyncio
import json
from functools import partial

import pytest
from tests.coordinator.conftest import connected, running_coordinator

from muster.model import Action, Finding, Severity

DEVICES = 4
BUS = Finding(
    code="nvml.xid",
    summary="XID 79, GPU has fallen off the bus",
    severity=Severity.ERROR,
    action=Action.REBOOT_NODE,
    device=3,
    evidence={"xid": 79},
)
SETTINGS = {
    "mode": "enforce",
    "budget": {"share": "50%", "per_minute": 6000},
    "returning": {"pause_s": 3600.0, "passes": 2},
}


@pytest.fixture
def coordinator(nodes, tmp_path):
    """A coordinator that drains nodes of the cluster, and lets a node pause between two rounds of tests."""
    slurm = {"MUSTER_PLUGINS__SLURM__ACTOR": json.dumps({"enabled": True})}
    quarantine = {f"MUSTER_QUARANTINE__{name.upper()}": as_variable(value) for name, value in SETTINGS.items()}
    with running_coordinator(tmp_path / "coordinator", **slurm, **quarantine) as running:
        yield running


def as_variable(value):
    return value if isinstance(value, str) else json.dumps(value)


def is_done(coordinator, node, state):
    """Whether a node is in that state, and Slurm has it so."""
    case = coordinator.get(f"/api/v1/nodes/{node}/case")
    return case["state"] == state and case["outcomes"].get("slurm", {}).get("effect") == "DONE"


def listed(nodes, most):
    """The one reason in Slurm's list, so many characters of it."""
    return nodes.run("sinfo", "-R", "-h", "-o", f"%{most}E").stdout.strip()


async def test_the_list_of_reasons_names_the_fault(nodes, coordinator, eventually):
    """By its number, its GPU and that GPU's UUID, and also while the node is tested again."""

    async def becomes(node, state):
        await asyncio.to_thread(eventually, partial(is_done, coordinator, node, state), f"{node} to be {state}")

    async with connected(coordinator, "gpu1", "gpu2", devices=DEVICES) as agents:
        for name, agent in agents.items():
            await agent.report("nvml")
            await becomes(name, "IN_SERVICE")
        await agents["gpu1"].report("nvml", "FAIL", findings=(BUS,))
        await becomes("gpu1", "CORDONED")
        assert listed(nodes, 20) == "muster: XID 79 GPU3:"
        assert listed(nodes, 120).startswith(
            "muster: XID 79 GPU3: GPU has fallen off the bus; reboot the node; gpu1-3 ["
        )

        coordinator.ask("POST", "/api/v1/nodes/gpu1/release", {"by": "ann", "reason": "rebooted"})
        await becomes("gpu1", "PROBATION")
        assert listed(nodes, 20) == "muster: XID 79 GPU3,"
        assert listed(nodes, 60).startswith("muster: XID 79 GPU3, retest: GPU has fallen off the bus")
        told = [line for line in coordinator.log if line.get("event") == "transition_told"]
        causes = {line["after"]: line["causes"] for line in told}
        assert causes["CORDONED"] == "XID 79 GPU3: GPU has fallen off the bus; reboot the node; gpu1-3"
        assert causes["PROBATION"].startswith("XID 79 GPU3, retest: GPU has fallen off the bus")
        coordinator.ask("POST", "/api/v1/nodes/gpu1/release", {"by": "ann", "reason": "it is well", "untested": True})
        await becomes("gpu1", "IN_SERVICE")
