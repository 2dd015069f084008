"""Two coordinators that elect their leader with a Lease of Kubernetes, at a stand-in for its API server."""

import json
import signal

import pytest
from benchmarks.kubernetes_standin.child import Child
from tests.coordinator.takeover.conftest import reporting
from tests.coordinator.takeover.test_takeover import all_is_stored_once, ends_and_is_followed


@pytest.fixture
def more_settings(live, tmp_path_factory):
    """Both may use the Lease of one cluster."""
    with Child(tmp_path_factory.mktemp("kubernetes"), 0) as cluster:
        yield {
            "MUSTER_LEADER__LOCK": "kubernetes",
            "MUSTER_PLUGINS": json.dumps({"kubernetes": {"actor": {"kubeconfig": str(cluster.kubeconfig)}}}),
        }


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
async def test_another_one_leads_when_the_leader_ends_or_stands_still(fleet, eventually, number):
    """Within ten seconds; each run is stored once, and a leader that was paused does no harm when it goes on."""
    leader = await fleet.leader()
    async with reporting(leader, "n1", "n2") as nodes:
        await eventually(lambda: all(node.seq > 3 for node in nodes.values()))
        other = await ends_and_is_followed(fleet, leader, number)
        if number is signal.SIGSTOP:
            leader.process.send_signal(signal.SIGCONT)
            await eventually(lambda: leader.stands_by, 60)
        assert other.leads
        await all_is_stored_once(fleet, nodes, eventually)
