"""A preflight by real processes, as a job would start it on its nodes."""

import json
import os

import pytest
from benchmarks.free_ports import free_port
from tests.cases import cases
from tests.muster_process import TORCH, Recorded, run_muster
from tests.waiting import wait_for

from muster.acceptance import AcceptanceReport, contradictions

SETTINGS = """
[plugins]
disabled = ["nvml", "kernel_log", "host", "fabric", "storage", "dcgm", "nccl_tests", "script", "memory"]

[plugins.simulated]
enabled = true
devices = 1
faults = {faults}

[suites.preflight]
steps = [
    {{ section = "ENV", check = "simulated" }},
    {{ section = "COLLECTIVE", check = "collective", quick = true, params = {{ size_bytes = 65536 }} }},
]

[suites.alone]
steps = [{{ section = "ENV", check = "simulated" }}]
"""
WRONG_BITS = '[{ kind = "corrupt" }]'
BROKEN_MEMORY = '[{ kind = "ecc" }]'
NO_GROUP = ("--suite", "alone")


@pytest.fixture
def start(tmp_path):
    """Starts the process of a node: `start(rank, size, *options, faults="[]")`; all are ended at the end."""
    started, port = [], free_port()

    def one(rank: int, size: int, *options: str, faults: str = "[]") -> Recorded:
        config = tmp_path / f"{rank}.toml"
        config.write_text(SETTINGS.format(faults=faults))
        job = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        files = ("--env-file", str(tmp_path / f"{rank}.env"), "--nodes-file", str(tmp_path / "nodes"))
        arguments = ["preflight", "--config", str(config), *files, *options]
        env = {**os.environ, **job, "MUSTER_NODE": f"node-{rank}"}
        started.append(Recorded(*arguments, env=env, imports=TORCH))
        return started[-1]

    yield one
    for process in started:
        process.drop()


def ended(*processes: Recorded) -> tuple[list[int], str, str]:
    """The exit codes of all, and what the first has printed."""
    done = [process.ended(120) for process in processes]
    return [each.returncode for each in done], done[0].stdout, done[0].stderr


def report_of(directory, name="preflight"):
    return AcceptanceReport.model_validate_json((directory / f"{name}.json").read_bytes())


@pytest.mark.torch
def test_the_bad_node_is_named_and_the_others_go_on(start, tmp_path):
    """Even if it is the one with rank 0. It passes alone, and fails with each partner; the others take its place."""
    options = ("--need", "2", "--report-dir", str(tmp_path))
    leader = start(0, 3, *options, faults=WRONG_BITS)
    codes, _, err = ended(leader, *(start(rank, 3, "--need", "2") for rank in (1, 2)))
    assert codes == [2, 0, 0], err
    told = report_of(tmp_path)
    assert [(each.node, each.decision, each.reason) for each in told.conclusions] == [
        ("node-0", "REJECTED", "collective did not pass with node-1 nor with node-2"),
        ("node-1", "GO", ""),
        ("node-2", "GO", ""),
    ]
    assert told.cause == "node-0: collective did not pass with node-1 nor with node-2"
    assert [(step.section, [run.node for run in step.runs]) for step in told.steps] == [
        ("ENV", ["node-0", "node-1", "node-2"]),
        ("PAIRS", ["node-0", "node-1"]),
        ("PAIRS", ["node-0", "node-2"]),
        ("PAIRS", ["node-1", "node-2"]),
        ("COLLECTIVE", ["node-1", "node-2"]),
    ]
    assert [*contradictions(told)] == []
    assert (tmp_path / "nodes").read_text() == "node-1\nnode-2\n"
    assert (tmp_path / "2.env").read_text() == (
        "GANG_RANK=1\nGANG_SIZE=2\nGANG_ADDRESS=127.0.0.1\nGANG_NODES=node-1,node-2\n"
    )
    assert not (tmp_path / "0.env").exists()


@pytest.mark.torch
def test_a_node_that_is_lost_in_a_pair_is_replaced(start, tmp_path):
    """It hangs and is killed; its partner is paired again, and goes on with the spare."""
    leader = start(0, 3, "--need", "2", "--report-dir", str(tmp_path))
    lost, spare = start(1, 3, faults='[{ kind = "hang", check = "collective" }]'), start(2, 3)
    wait_for(lambda: "collective: started\n" in leader.stderr, "the pairs to start")
    lost.kill()
    codes, _, err = ended(leader, spare)
    assert codes == [0, 0], err
    assert (tmp_path / "nodes").read_text() == "node-0\nnode-2\n"
    assert report_of(tmp_path).cause == "node-1: collective: the process with rank 1 was lost during the run"


def test_a_failed_node_blocks_a_job_that_has_no_spare(start, tmp_path):
    """Both are told apart by their exit codes, and no file says that anything may start."""
    (tmp_path / "0.env").write_text("GANG_RANK=0\n")  # of an earlier preflight
    codes, out, _ = ended(start(0, 2, *NO_GROUP), start(1, 2, *NO_GROUP, faults=BROKEN_MEMORY))
    assert codes == [5, 2]
    assert "the job needs 2 nodes, and 1 passed" in out
    assert (tmp_path / "nodes").read_text() == ""
    assert not (tmp_path / "0.env").exists()


def test_a_spare_is_told_that_it_is_not_needed(start, tmp_path):
    """It has an exit code of its own."""
    options = (*NO_GROUP, "--need", "1")
    codes, _, err = ended(start(0, 2, *options), start(1, 2, *options))
    assert codes == [0, 4], err
    assert (tmp_path / "nodes").read_text() == "node-0\n"


def test_the_exit_code_may_be_that_of_the_job(start, tmp_path):
    """Then a failed node ends as the others do, and only its missing file says that nothing starts on it."""
    options = (*NO_GROUP, "--exit-for", "job", "--need")
    codes, _, err = ended(start(0, 2, *options, "1", faults=BROKEN_MEMORY), start(1, 2, *options, "1"))
    assert codes == [0, 0], err
    assert [(tmp_path / f"{rank}.env").exists() for rank in (0, 1)] == [False, True]
    codes, _, err = ended(start(0, 2, *options, "2", faults=BROKEN_MEMORY), start(1, 2, *options, "2"))
    assert codes == [2, 5], err
    assert [(tmp_path / f"{rank}.env").exists() for rank in (0, 1)] == [False, False]


def test_enough_nodes_go_on_without_one_that_never_comes(start, tmp_path):
    """After the time to join; the missing rank is named."""
    options = (*NO_GROUP, "--need", "2", "--join-within-s", "10")
    codes, _, err = ended(start(0, 3, *options), start(1, 3, *options))
    assert codes == [0, 0], err
    assert "preflight: leaves out these ranks, which did not connect: 2\n" in err
    assert (tmp_path / "nodes").read_text() == "node-0\nnode-1\n"


def test_without_enough_nodes_nothing_starts(start, tmp_path):
    """Those who came end with the code for what is not there."""
    codes, _, err = ended(start(0, 3, *NO_GROUP, "--join-within-s", "1"))
    assert codes == [69]
    assert "these ranks did not connect within 1 s: 1, 2" in err
    assert not (tmp_path / "nodes").exists()


@cases(
    "options, code, words",
    [
        ((), 0, "node-0  GO"),
        (("--need", "2"), 64, "--need 2 is more than the 1 node of the job"),
        (("--env-file", "/nowhere/env"), 69, "cannot write /nowhere/env: No such file or directory"),
        (("--nodes-file", "/proc/nodes"), 69, "cannot write /proc/nodes"),
    ],
)
def test_without_a_job_this_node_is_the_gang(tmp_path_factory, options, code, words):
    """Wrong options are refused in words."""
    config = tmp_path_factory.mktemp("one") / "muster.toml"
    config.write_text(SETTINGS.format(faults="[]"))
    env = {**os.environ, "MUSTER_NODE": "node-0"}
    done = run_muster("preflight", *NO_GROUP, "--config", str(config), *options, env=env)
    assert (done.returncode, words in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr


def test_json_has_the_conclusions(start):
    """For programs, and nothing else on stdout."""
    codes, out, err = ended(start(0, 2, *NO_GROUP, "--json"), start(1, 2, *NO_GROUP))
    assert codes == [0, 0], err
    assert [each["decision"] for each in json.loads(out)["conclusions"]] == ["GO", "GO"]
