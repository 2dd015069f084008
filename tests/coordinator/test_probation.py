"""A node on probation takes part in a sweep with its healthy neighbours, over a real broker."""

import json

import pytest

from muster.model import Finding, Severity

LOST = Finding(code="gemm.device_lost", summary="gone", severity=Severity.ERROR)


@pytest.fixture
def more_settings(tmp_path):
    """A quarantine that is in force and tests nodes with partners before they come back."""
    script = tmp_path / "actor"
    script.write_text("#!/bin/sh\ncat > /dev/null\n")
    script.chmod(0o755)
    return {
        "MUSTER_QUARANTINE__MODE": "enforce",
        "MUSTER_QUARANTINE__BUDGET__SHARE": "50%",
        "MUSTER_QUARANTINE__RETURNING": json.dumps({"wait_s": 0.0, "pause_s": 0.0, "passes": 1, "partners": 1}),
        "MUSTER_PLUGINS__SCRIPT__ACTOR": json.dumps({"path": str(script), "can_cordon": True}),
    }


async def test_a_sweep_with_partners_clears_a_node(coordinator, nodes, eventually):
    """First what had found it runs again, then the sweep, and that is a round; then the node is back."""

    async def until(state):
        await eventually(lambda: coordinator.get("/api/v1/nodes/n1/case")["state"] == state)

    async with nodes(coordinator, "n1", "n2", "n3") as them:
        for node in them.values():
            await node.report("gemm")
        await until("IN_SERVICE")
        await them["n1"].report("gemm", "FAIL", findings=(LOST,))
        await until("CORDONED")
        for _ in range(2):
            await them["n1"].report("gemm")
        await until("IN_SERVICE")
    sweep = await eventually(
        lambda: next((it for it in coordinator.get("/api/v1/sweeps")["items"] if it["ended_at"]), None)
    )
    assert ("n1" in sweep["cleared_nodes"], len(sweep["nodes"])) == (True, 3)
    story = [entry["kind"] for entry in reversed(coordinator.get("/api/v1/nodes/n1/story")["items"])]
    trial = story[story.index("run_requested") :]
    assert [kind for kind in trial if kind in ("run_requested", "test", "sweep_begun", "cleared")] == [
        "run_requested",
        "test",
        "sweep_begun",
        "cleared",
        "test",
        "test",
    ]
