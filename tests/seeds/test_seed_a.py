"""The A4 testbed on GKE, which measures NCCL over gIB: what it offers, and what it does badly, on two nodes of our own.

Not held here: all that only GPUs can tell. Images, chart, manifests and the sweep as a JobSet are tested in
tests/deploy, the topology from the metadata of GCE in tests/plugins/machines, the upload to a bucket in tests/faults.
"""

from dataclasses import replace

import pytest
import yaml
from benchmarks.free_ports import free_port
from tests.faults.fleet import TIGHT, Fleet

from muster.model import Inventory, Topology
from muster_coordinator.evidence.node import Node
from muster_coordinator.sweeps.planning import in_topology_order
from muster_plugins.checks.collective.check import GroupParams
from muster_plugins.checks.nccl_tests.output import parse_text
from muster_plugins.shared.collectives.table import SizeRow, metrics
from muster_plugins.shared.nccl import transport as nccl_transport
from muster_plugins.shared.nccl.environment import profiles

SECRET = "hf_do_not_tell_anybody"

OWN = {"NCCL_MIN_NCHANNELS": "16"}
"""What the operator sets over the profile."""

PEAK_GBPS = 1000.0

GIB_A4 = {
    "NCCL_NET": "gIB",
    "NCCL_CROSS_NIC": "0",
    "NCCL_NET_GDR_LEVEL": "PIX",
    "NCCL_P2P_NET_CHUNKSIZE": "131072",
    "NCCL_NVLS_CHUNKSIZE": "524288",
    "NCCL_IB_ADAPTIVE_ROUTING": "1",
    "NCCL_IB_QPS_PER_CONNECTION": "4",
    "NCCL_IB_TC": "52",
    "NCCL_IB_FIFO_TC": "84",
    "NCCL_MIN_NCHANNELS": "32",
    "NCCL_TUNER_CONFIG_PATH": "/usr/local/gib/configs/tuner_config_a4.txtpb",
}

MI, GI = 1 << 20, 1 << 30


def collective(**params):
    return {"section": "COLLECTIVE", "check": "collective", "params": params}


@pytest.fixture
def two_agents(tmp_path, new_mosquitto, mischief, with_torch):
    """A fleet of two agents with a simulated device each."""
    with new_mosquitto() as broker:
        fleet = Fleet(tmp_path, broker, mischief, nodes=("n1", TIGHT))
        del fleet.agents[TIGHT].settings["agent"]["memory_limit_gib"]
        fleet.set_right()
        yield fleet
        fleet.end()


@pytest.fixture(scope="module")
def two_nodes(job, simulated, with_torch):
    """A small message, then a sweep with the profile of A4, over a node with two devices and one with one."""
    steps = [
        collective(size_bytes="1M", iterations=3),
        collective(begin_bytes="1K", end_bytes="64K", iterations=3, profile="gib-a4"),
    ]
    nodes = [
        {"plugins": simulated(devices) | {"collective": {"environment": OWN, "peak_gbps": PEAK_GBPS}}}
        for devices in (2, 1)
    ]
    return job(steps, nodes, HF_TOKEN=SECRET, NCCL_AUTH_TOKEN=SECRET)


@pytest.fixture(scope="module")
def sweep(two_nodes):
    """The facts of the sweep at rank 0."""
    return two_nodes[0].runs("collective")[2]["facts"]


# What it offers


def test_the_images_are_built_by_cloud_build_on_the_base_of_a4(root):
    """On 32 processors within two hours; base and tag can be replaced."""
    build = yaml.safe_load((root / "docker" / "cloudbuild.yaml").read_text())
    assert (build["options"]["machineType"], build["timeout"]) == ("E2_HIGHCPU_32", "7200s")
    assert build["substitutions"]["_BASE"].endswith("pytorch-gpu-nemo-nccl:nemo25.04-gib1.0.6-A4")
    assert "_TAG" in build["substitutions"]


def test_messages_go_from_2_mib_to_16_gib_by_doubling():
    """As the testbed writes the sizes, and a single small one to look for errors with."""
    sweep = GroupParams.model_validate({"begin_bytes": "2M", "end_bytes": "16G", "factor": 2})
    assert sweep.sizes(default=0) == [2 * MI << doubled for doubled in range(14)]
    assert GroupParams.model_validate({"size_bytes": "1M"}).sizes(default=0) == [MI]


def test_a_sweep_runs_over_all_nodes(two_nodes, sweep):
    """Both steps have been measured, with every element right."""
    runs = two_nodes[0].runs("collective")
    assert [run["metrics"]["wrong_elements"] for run in runs] == [0.0] * 4
    assert [row["size"] for row in sweep["report"]["results"]] == [1024 << doubled for doubled in range(7)]


def test_the_profile_of_a4_is_as_published():
    """Every variable of it."""
    assert profiles()["gib-a4"].environment == GIB_A4


def test_single_values_of_the_profile_can_be_replaced(sweep):
    """The result shows with which environment it was measured."""
    shown = {name: sweep["environment"].get(name) for name in GIB_A4}
    assert shown == GIB_A4 | OWN


@pytest.mark.parametrize(
    ("logged", "expected"),
    [
        ("via NET/gIB/0/GDRDMA", []),
        ("via NET/Socket/0", [("collective.wrong_transport", "ERROR")]),
        ("via P2P/CUMEM", [("collective.transport_unknown", "UNKNOWN")]),
    ],
)
def test_what_nccl_logs_proves_the_transport(judge, logged, expected):
    """Another network than gIB is an error, and no network at all no proof."""
    seen = nccl_transport.count([f"gpu1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] {logged}"])
    facts = nccl_transport.facts("NET/gIB", seen, seen)
    facts |= {"backend": "nccl", "nodes": 2, "world_size": 16, "missing": [], "same_host": [], "simulated": False}
    assert judge("collective", {}, facts) == expected


def test_without_a_word_of_nccl_nothing_is_proved(two_nodes):
    """These nodes have gloo: gIB was asked for and not seen, which is no pass."""
    codes = [finding["code"] for finding in two_nodes[0].runs("collective")[2]["findings"]]
    assert "collective.transport_unknown" in codes
    assert [node.code for node in two_nodes] == [3, 3]


def test_the_table_is_that_of_nccl_tests_with_the_efficiency(sweep):
    """One row for each size; the share is that of the expected peak."""
    heading, units, *rows = sweep["table"].splitlines()
    assert heading.lstrip("# ").split() == [
        *("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "effic")
    ]
    assert units.split()[-1] == "(%)"
    first, result = rows[0].split(), sweep["report"]["results"][0]["in_place"]
    assert first[:5] == ["1024", "256", "float", "sum", "-1"]
    assert float(first[-1]) == pytest.approx(100 * result["bus_bw"] / PEAK_GBPS, abs=0.06)


def test_one_command_prints_the_table_of_a_sweep_over_sizes(two_agents, muster):
    """For the group of all nodes, as nccl-tests prints it: torch sums in place, and nothing else was measured."""
    asked = "sweep start --check collective --strategy whole --param begin_bytes=1K --param end_bytes=64K"
    done = muster(*asked.split(), *["--param", "iterations=2", "--wait", "--format", "nccl-tests"], env=two_agents.env)
    assert done.returncode == 0, done.stderr
    found = parse_text(done.stdout)
    assert [row.size_bytes for row in found.rows] == [1024 << power for power in range(7)]
    assert all(row.time_us > 0 and row.redop == "sum" and row.count == row.size_bytes // 4 for row in found.rows)
    assert (found.out_of_bounds, found.checked, found.unreadable) == (0, True, [])
    words = next(line.split() for line in done.stdout.splitlines() if line.lstrip().startswith("1024 "))
    assert words[5:9] == ["N/A"] * 4


def test_ranks_stand_in_the_order_of_the_topology():
    """Block, then rack, then host; the name decides nothing as long as these do."""
    places = {"a": ("b2", "r1", "h1"), "b": ("b1", "r2", "h1"), "c": ("b1", "r1", "h2"), "d": ("b1", "r1", "h1")}
    nodes = [
        Node(name, 0.0, 0.0, inventory=Inventory(topology=Topology(block=block, rack=rack, host=host)))
        for name, (block, rack, host) in places.items()
    ]
    assert [node.name for node in in_topology_order(nodes)] == ["d", "c", "b", "a"]


# What it does badly


@pytest.mark.parametrize(
    ("busbw_gbps", "expected"), [(344.0, []), (353.0, []), (180.0, [("collective.slow", "ERROR")])]
)
def test_a_bandwidth_gets_a_verdict(judge, busbw_gbps, expected):
    """Two A4 nodes at what has been published pass, and fail well below."""
    facts = {"backend": "nccl", "collective": "all_gather", "nodes": 2, "machine_type": "a4-highgpu-8g"}
    facts |= {"size_bytes": 8 * GI, "missing": [], "same_host": [], "simulated": False}
    assert judge("collective", {"busbw_gbps": busbw_gbps, "wrong_elements": 0.0}, facts) == expected


def test_small_messages_do_not_pull_the_bandwidth_down():
    """A healthy pair is judged by its plateau, not by the mean over a wide sweep, which is a third of it."""
    plain = SizeRow(size_bytes=0, count=0, redop="none", root=-1, time_us=1.0, algbw_gbps=0.0, busbw_gbps=0.0, wrong=0)
    measured = {MI: 4.0, 64 * MI: 90.0, GI: 330.0, 8 * GI: 344.0}
    rows = [replace(plain, size_bytes=size, busbw_gbps=busbw) for size, busbw in measured.items()]
    assert metrics(rows, world_size=16, peak_gbps=None)["busbw_gbps"] == 337.0


def test_no_secret_reaches_the_report(two_nodes):
    """Tokens in the environment are named where they concern NCCL, and never told."""
    assert all(SECRET not in node.out + node.err for node in two_nodes)
    assert two_nodes[0].runs("collective")[2]["facts"]["environment"]["NCCL_AUTH_TOKEN"] == "(removed)"


def test_no_image_holds_ssh_or_a_key(root):
    """Nodes talk through their agents, so that nobody needs to log in."""
    built = "\n".join((root / "docker" / name).read_text() for name in ("Dockerfile", "cloudbuild.yaml"))
    assert not [word for word in ("ssh", "id_rsa", "authorized_keys", "HF_TOKEN") if word in built]


def test_a_node_that_is_dead_is_named_within_the_deadline(command, simulated):
    """It does not hang the others."""
    ended = command(
        *("check", "run", "--suite", "walk", "--join-within-s", "1"),
        settings={"plugins": simulated(1), "suites": {"walk": {"steps": [collective(size_bytes=1024)]}}},
        RANK="0",
        WORLD_SIZE="2",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(free_port()),
    )
    assert ended.code == 69
    assert "did not connect within 1 s: 1" in ended.err


def test_every_check_has_a_deadline(checks):
    """Nothing is retried for ever."""
    assert all(0 < check.timeout_s < 86400 for check in checks.values())


def test_the_number_of_ranks_is_that_of_the_devices(sweep):
    """Nobody says it anywhere: two on one node and one on the other."""
    assert sweep["world_size"] == 3


def test_a_bandwidth_is_the_median_of_several_rounds_after_a_warm_up(checks):
    """Also when it has to be quick."""
    for params in (GroupParams(), GroupParams.model_validate(checks["collective"].quick)):
        assert params.iterations >= 3
        assert params.warmup >= 1
