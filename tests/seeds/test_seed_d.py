"""Nodes of GKE that come and go, with RDMA between them and Ray on top: what it offers, and what it does badly.

Not held here: RDMA itself, which a test machine has not. tests/deploy has the manifests for RDMA networks, Kueue and
Ray, and tests/plugins/schedulers/kubernetes/whole plays through how workers of Ray get to accepted nodes.
"""

import pytest
from benchmarks.free_ports import free_address, free_port
from tests.waiting import wait_for

from muster.client import Client
from muster.errors import Unavailable
from muster_plugins.shared.nccl import transport as nccl_transport
from muster_plugins.shared.nccl.environment import profiles

QUIET = {"disabled": ["nvml", "kernel_log", "host", "fabric"]}
"""What would look at the machine that the tests run on."""


class Cluster:
    """A coordinator, and agents that are started and ended as their nodes come and go."""

    def __init__(self, start, directory):
        self._start, self._directory = start, directory
        self._broker, api = (free_address() for _ in range(2))
        self.client = Client(f"http://{api}")
        settings = {"broker": {"listen": self._broker}, "http": {"listen": api}, "data_dir": str(directory / "c")}
        self._coordinator = start("coordinator", settings=settings)

    def add(self, node, plugins):
        """Starts the agent of a node that looks at its devices all the time."""
        settings = {
            "node": node,
            "broker": {"url": f"mqtt://{self._broker}"},
            "agent": {"listen": "127.0.0.1:0", "spread_s": 0, "heartbeat_s": 0.5},
            "data_dir": str(self._directory / node),
            "plugins": plugins | {"disabled": [*QUIET["disabled"], "gemm", "memory", "training"]},
        }
        return self._start("agent", settings=settings)

    def answers(self):
        """Whether the coordinator can be asked yet."""
        assert self._coordinator.runs, self._coordinator.ended().err
        try:
            return self.client.get("nodes")
        except Unavailable:
            return None

    def node(self, name):
        """The node as the coordinator sees it; None as long as it has not come."""
        nodes = {node["name"]: node for node in self.client.get("nodes")["items"]}
        return nodes.get(name)

    def until(self, name, **state):
        """The node, once it is in this state."""

        def reached():
            node = self.node(name)
            return node if node and all(node[field] == value for field, value in state.items()) else None

        return wait_for(reached, f"{name} to be {state}")


@pytest.fixture(scope="module")
def cluster(start, tmp_path_factory):
    """A cluster without nodes: the pool has been scaled to zero."""
    made = Cluster(start, tmp_path_factory.mktemp("cluster"))
    wait_for(made.answers, "the coordinator to answer")
    assert made.client.get("nodes")["items"] == []
    return made


@pytest.fixture(scope="module")
def one_host(job, with_torch):
    """A collective between two nodes that say that they are two, and are processes on this host."""
    step = {"section": "COLLECTIVE", "check": "collective", "params": {"size_bytes": 4096, "device": "cpu"}}
    return job([step], [{"plugins": QUIET}] * 2)


# What it offers


def test_the_profile_of_a3_ultra_is_that_of_a4_with_its_own_tuner():
    """Only A4 has a least number of channels."""
    ours, a4 = profiles()["gib-a3u"].environment, dict(profiles()["gib-a4"].environment)
    del a4["NCCL_MIN_NCHANNELS"]
    assert ours == a4 | {"NCCL_TUNER_CONFIG_PATH": "/usr/local/gib/configs/tuner_config_a3u.txtpb"}


def test_a_node_takes_part_as_soon_as_it_is_there_and_may_leave_again(cluster, simulated):
    """Nobody has listed it before, its end is no failure, and it is welcome again."""
    agent = cluster.add("flex", simulated(2))
    cluster.until("flex", health="HEALTHY", lost=False)
    assert agent.terminated().code == 0
    gone = cluster.until("flex", lost=True)
    assert (gone["health"], gone["last_health"], gone["findings"]) == ("UNKNOWN", "HEALTHY", [])
    cluster.add("flex", simulated(2))
    cluster.until("flex", health="HEALTHY", lost=False)


def test_a_new_node_is_not_in_service_before_it_has_passed(cluster, simulated):
    """One with a fault never is; a good one is as soon as its checks have had their say."""
    cluster.add("broken", simulated(1, {"kind": "ecc", "device": 0}))
    cluster.add("good", simulated(1))
    cluster.until("good", health="HEALTHY", service="IN_SERVICE")
    assert cluster.until("broken", health="FAILED")["service"] == "ACCEPTING"
    story = cluster.client.get("nodes", "broken", "story")["items"]
    assert [entry["text"] for entry in story if entry["kind"] == "service"] == []


@pytest.mark.parametrize(
    ("network", "expected"),
    [("NET/gIB/0/GDRDMA", []), ("NET/Socket/0", [("collective.wrong_transport", "ERROR")])],
)
def test_between_nodes_rdma_must_be_used(judge, network, expected):
    """What NCCL logs is the proof; within a node it may take another way."""
    line = "a3u:1:2 [0] NCCL INFO Channel 00/0 : {} via {}"
    seen = nccl_transport.count([line.format("0[0] -> 1[1]", "P2P/CUMEM"), line.format("7[7] -> 8[0] [send]", network)])
    facts = nccl_transport.facts(profiles()["gib-a3u"].transport, seen, seen)
    facts |= {"backend": "nccl", "nodes": 2, "world_size": 16, "missing": [], "same_host": [], "simulated": False}
    assert judge("collective", {}, facts) == expected


# What it does badly


def test_two_nodes_on_one_host_are_found_out(one_host):
    """Each rank knows the host that it runs on, whatever its node is called."""
    runs = one_host[0].runs("collective")
    assert [run["facts"]["same_host"] for run in runs] == [["node-0", "node-1"]] * 2
    assert {finding["code"] for finding in runs[0]["findings"]} >= {"collective.same_host"}


def test_on_gpus_that_is_no_measurement_of_the_network(judge):
    """Bandwidth as between hosts proves nothing there."""
    facts = {"backend": "nccl", "nodes": 2, "missing": [], "same_host": ["a", "b"], "simulated": False}
    assert judge("collective", {"busbw_gbps": 330.0}, facts) == [("collective.same_host", "UNKNOWN")]


@pytest.mark.parametrize(("busbw_gbps", "expected"), [(330.0, []), (120.0, [("collective.slow", "ERROR")])])
def test_bandwidth_is_held_against_a_floor(judge, busbw_gbps, expected):
    """Of two A3 Ultra nodes, for large messages."""
    facts = {"backend": "nccl", "collective": "all_gather", "nodes": 2, "machine_type": "a3-ultragpu-8g"}
    facts |= {"size_bytes": 8 << 30, "missing": [], "same_host": [], "simulated": False}
    assert judge("collective", {"busbw_gbps": busbw_gbps}, facts) == expected


def test_the_number_of_nodes_is_that_of_the_job(one_host):
    """It stands in no file."""
    assert {run["facts"]["nodes"] for run in one_host[0].runs("collective")} == {2}


def test_nobody_waits_without_end_for_a_node_that_does_not_come(command):
    """The others are told which it is, and end with an error."""
    step = {"section": "COLLECTIVE", "check": "collective"}
    ended = command(
        *("check", "run", "--suite", "walk", "--join-within-s", "1"),
        settings={"plugins": QUIET, "suites": {"walk": {"steps": [step]}}},
        RANK="0",
        WORLD_SIZE="3",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(free_port()),
    )
    assert ended.code == 69
    assert "did not connect within 1 s: 1, 2" in ended.err
