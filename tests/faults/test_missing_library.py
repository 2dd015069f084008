"""A rollout that takes the NVML library away from nodes that must have eight GPUs drains none of them.

The agents are real, and so is the scheduler's executable, which keeps a book about what it was told.
"""

import pytest
from tests.faults.desk import Desk
from tests.faults.fleet import OF_THIS_HOST, Fleet

NODE = "n3"
NODES = (NODE, "n4")
OTHERS = [plugin for plugin in OF_THIS_HOST if plugin != "nvml"]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    return Desk(tmp_path_factory.mktemp("desk"))


@pytest.fixture
def accepted(tmp_path_factory, new_mosquitto, desk, tmp_path, eventually):
    """Two nodes in service with simulated devices, in enforce, with a budget that would let both go."""
    with new_mosquitto() as broker:
        fleet = Fleet(tmp_path_factory.mktemp("fleet"), broker, desk.path, nodes=NODES)
        fleet.coordinator.settings["quarantine"] = {
            "mode": "enforce",
            "budget": {"share": "100%", "domain_share": "100%", "per_minute": 6000},
            "mass_event": {"nodes": 100},
        }
        fleet.coordinator.settings["plugins"] = {"script": {"actor": {"path": str(desk.scheduler), "can_cordon": True}}}
        fleet.start_coordinator()
        for agent in fleet.agents.values():
            agent.start()
        for node in NODES:
            eventually(lambda node=node: service(fleet, node) == "IN_SERVICE", f"{node} to be in service")
        yield fleet
        fleet.end()


def service(fleet, node):
    status, _, answer = fleet.ask("GET", f"/api/v1/nodes/{node}")
    return answer["service"] if status == 200 else None


def take_the_library_away(fleet, node, directory):
    """Starts the agent again on real devices: none answers, as the loader finds a file that is no library."""
    agent = fleet.agents[node]
    agent.stop()
    (directory / "libnvidia-ml.so.1").write_bytes(b"")
    agent.settings["expected_gpus"] = 8
    agent.settings["checks"] = {"nvml": {"interval_s": 0.5}}
    agent.settings["plugins"] = {"disabled": OTHERS, "nvml": {"pci_root": str(directory / "pci")}}
    agent.env["LD_LIBRARY_PATH"] = str(directory)
    agent.start()


def found(run):
    return [(finding["code"], finding["severity"]) for finding in run["findings"]]


@pytest.mark.torch
def test_nodes_without_the_library_stay_in_service(accepted, desk, tmp_path, eventually):
    """Each check that could ask no GPU says so once, as UNKNOWN; the policy requires nothing and no actor is called."""
    for node in NODES:
        take_the_library_away(accepted, node, tmp_path)
    for node in NODES:
        eventually(lambda node=node: accepted.runs(node, "nvml"), f"nvml on {node}")
        assert found(accepted.runs(node, "nvml")[0]) == [("nvml.library_missing", "UNKNOWN")]
    for check in ("gemm", "memory", "training"):
        assert found(accepted.run(NODE, check)) == [(f"{check}.not_asked", "UNKNOWN")]
    for node in NODES:
        case = accepted.api.get("nodes", node, "case")
        assert (case["state"], case["requirement"], case["upcoming"]) == ("IN_SERVICE", None, None)
        assert desk.book("called", node, "CORDONED") == []
