"""A suite carried out by real processes of a job, started as torchrun, srun or an operator would."""

import json
import os
import socket
import subprocess
import sys
import time

import pytest
from benchmarks.free_ports import free_port
from tests.muster_process import TORCH, Recorded, run_muster
from tests.waiting import wait_for

pytestmark = pytest.mark.torch

SETTINGS = """
[plugins]
disabled = ["nvml", "kernel_log", "host", "fabric", "storage", "dcgm", "nccl_tests", "script", "memory"]

[plugins.simulated]
enabled = true
devices = 2
faults = {faults}

[suites.mini]
steps = [
    {{ section = "ENV", check = "simulated" }},
    {{ section = "COLLECTIVE", check = "collective", quick = true, params = {{ size_bytes = 65536 }} }},
]

[suites.train]
steps = [{{ section = "TRAIN", check = "training", params = {{ warmup = 0, iterations = 4 }} }}]
"""


@pytest.fixture
def master_port() -> int:
    return free_port()


@pytest.fixture
def start(tmp_path, master_port):
    """Starts a process of the job: `start(rank, size, node="a", faults="[]")`; all are ended at the end.

    It runs the suite, or the checks of `what`.
    """
    started = []

    def one(
        rank: int,
        size: int,
        *options: str,
        node: str = "",
        faults: str = "[]",
        what: tuple[str, ...] = ("--suite", "mini"),
        **environment: str,
    ):
        config = tmp_path / f"{rank}.toml"
        config.write_text(SETTINGS.format(faults=faults))
        job = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(master_port)}
        arguments = ["check", "run", *what, "--config", str(config), *options]
        env = {**os.environ, **job, "MUSTER_NODE": node or f"node-{rank}", **environment}
        process = Recorded(*arguments, env=env, imports=TORCH)
        started.append(process)
        return process

    yield one
    for process in started:
        process.drop()


def ended(process) -> tuple[int, str, str]:
    done = process.ended(120)
    return done.returncode, done.stdout, done.stderr


def test_all_processes_of_a_job_take_part_and_rank_0_reports(start, tmp_path):
    """Two nodes with two devices each: one group of four ranks, one report, the same exit code everywhere."""
    leader = start(0, 2, "--report-dir", str(tmp_path / "out"))
    member = start(1, 2)
    code, out, err = ended(leader)
    assert (code, ended(member)[:2]) == (0, (0, "")), err
    assert "== RESULT" in out
    told = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [node["name"] for node in told["nodes"]] == ["node-0", "node-1"]
    assert [[run["node"] for run in step["runs"]] for step in told["steps"]] == [["node-0", "node-1"]] * 2
    collective = told["steps"][1]["runs"]
    assert {run["facts"]["world_size"] for run in collective} == {4}
    assert len({run["group"] for run in collective}) == 1


def test_a_process_per_device_brings_one_rank_each(start):
    """As torchrun starts them: what concerns the node is measured once, by its first process."""
    local = {"LOCAL_WORLD_SIZE": "2"}
    leader = start(0, 2, "--json", node="a", LOCAL_RANK="0", **local)
    member = start(1, 2, node="a", LOCAL_RANK="1", **local)
    code, out, err = ended(leader)
    assert (code, ended(member)[0]) == (0, 0), err
    (simulated, collective) = json.loads(out)["steps"]
    assert len(simulated["runs"]) == 1
    assert [run["facts"]["world_size"] for run in collective["runs"]] == [2, 2]
    assert sorted(run["facts"]["device"] for run in collective["runs"]) == [0, 1]


def test_the_report_names_the_device_that_is_unlike_the_others_of_the_job(start):
    """Its node has only two, which contradict each other; the other nodes tell which of them is wrong."""
    what = ("--suite", "train")
    leader = start(0, 3, "--json", what=what)
    start(1, 3, what=what)
    start(2, 3, what=what, faults='[{ kind = "corrupt", device = 1 }]')
    code, out, err = ended(leader)
    assert code == 3, err
    (step,) = json.loads(out)["steps"]
    found = [
        (run["node"], each["code"], each["device"])
        for run in step["runs"]
        for each in run["findings"]
        if each["severity"] != "INFO"
    ]
    assert found == [("node-2", "training.disagreement", None), ("node-2", "run.result_differs", 1)]


COLLECTIVE = ("collective", "--param", "size_bytes=65536", "--quick")


def test_a_group_check_by_its_name_takes_all_processes_of_the_job(start):
    """As a suite does. Rank 0 prints the run of each node, and other checks run once on each node."""
    leader = start(0, 2, "--json", what=("simulated", "collective"))
    member = start(1, 2, what=("simulated", "collective"))
    code, out, err = ended(leader)
    assert (code, ended(member)[:2]) == (0, (0, "")), err
    runs = [(run["check"], run["node"], run["facts"].get("world_size")) for run in json.loads(out)["items"]]
    assert runs == [
        ("simulated", "node-0", None),
        ("simulated", "node-1", None),
        ("collective", "node-0", 4),
        ("collective", "node-1", 4),
    ]


def test_processes_with_other_parameters_are_refused(start):
    """They would measure something else; both say so."""
    leader = start(0, 2, what=COLLECTIVE)
    member = start(1, 2, what=("collective", "--param", "size_bytes=4096"))
    code, _, err = ended(leader)
    assert (code, ended(member)[0]) == (64, 69)
    assert "these ranks have another version of the suite or its settings: 1" in err


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"RANK": "0"}, "WORLD_SIZE is not set; a job gives RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"),
        ({"WORLD_SIZE": "2"}, "RANK is not set"),
        ({"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, "rank 2 does not exist in a job"),
        ({"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "1"}, "MASTER_ADDR is not set"),
        ({"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a"}, "MASTER_PORT is not set"),
        ({"RANK": "0", "WORLD_SIZE": "two"}, "WORLD_SIZE is 'two', which is not a number; see --alone"),
    ],
)
def test_a_group_check_in_half_a_job_is_refused(job, words):
    """It would run alone and pass. With --alone it does, and other checks never take part in a job."""
    known = {"MUSTER_PLUGINS__SIMULATED__ENABLED": "true", "MUSTER_PLUGINS__DISABLED": '["nvml"]'}
    env = {**os.environ, **known, **job}
    done = run_muster("check", "run", "collective", env=env)
    assert (done.returncode, words in done.stderr, done.stdout) == (64, True, ""), done.stderr
    assert run_muster("check", "run", "simulated", env=env).returncode == 0


def test_without_a_job_a_group_check_takes_the_devices_of_the_node(tmp_path):
    """One device has nobody to exchange with, and the run says so."""
    for devices, expected in ((1, "SKIPPED"), (2, "PASS")):
        config = tmp_path / f"{devices}.toml"
        config.write_text(SETTINGS.format(faults="[]").replace("devices = 2", f"devices = {devices}"))
        done = Recorded("check", "run", *COLLECTIVE, "--config", str(config), "--json", imports=TORCH).ended(120)
        (run,) = json.loads(done.stdout)["items"]
        assert (done.returncode, run["verdict"]) == (0, expected)
        reasons = [finding["summary"] for finding in run["findings"] if finding["code"] == "run.skipped"]
        assert [reason.partition(":")[0] for reason in reasons] == (
            ["a collective over one rank measures nothing"] if devices == 1 else []
        )


@pytest.fixture
def torchrun(tmp_path):
    """Runs the suite, or the checks of `what`, by the real torchrun, with two processes."""

    def run(
        *options: str, settings: str = "", suite: str = "mini", what: tuple[str, ...] = (), gpus: int = 2
    ) -> subprocess.CompletedProcess[str]:
        config = tmp_path / "muster.toml"
        config.write_text(settings + SETTINGS.format(faults="[]").replace("devices = 2", f"devices = {gpus}"))
        return _by_torchrun(*(what or ("--suite", suite)), "--config", str(config), "--json", *options)

    return run


def _by_torchrun(*options: str) -> subprocess.CompletedProcess[str]:
    muster = [sys.executable, "-m", "muster", "check", "run", *options]
    torchrun = Recorded(  # forked, since it takes as long to import as all that it starts
        *("--standalone", "--nproc-per-node", "2", "--no-python", *muster),
        env={**os.environ, "OMP_NUM_THREADS": "1", "MUSTER_NODE": "a"},
        imports=TORCH,
        module="torch.distributed.run",
    )
    done = torchrun.ended(120)
    if "PyTorch was build without libuv support" in done.stderr:  # "build" is torch's own word
        pytest.skip("torchrun itself cannot start: this torch was built without libuv, as Debian's is")
    return done


def test_torchrun_itself_starts_a_group_check(torchrun):
    """Two processes on a node without GPUs are two ranks over gloo, and the bandwidth is that between them.

    The real one holds MASTER_PORT for itself, which is any free port.
    """
    done = torchrun(what=COLLECTIVE, gpus=0)
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["items"]
    assert [(run["verdict"], run["facts"]["world_size"], run["facts"]["rank"]) for run in runs] == [
        ("PASS", 2, 0),
        ("PASS", 2, 1),
    ]
    assert all(run["facts"]["backend"] == "gloo" and run["metrics"]["busbw_gbps"] > 0 for run in runs)


def _result(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    """The exit code, and the verdict of the report."""
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["verdict"]


ALL_TOO_HOT = """
[[reference]]
check = "simulated"
metric = "temperature_headroom_c"
warn_below = 1e6
source = "asks for too much"
"""
READINGS = """
references_file = "{references}"

[suites.readings]
steps = [{{ section = "ENV", check = "simulated" }}]
"""
"""A suite that runs without torch, as its import takes longest."""


def test_a_warning_is_no_crash_for_torchrun(torchrun, tmp_path):
    """It reports every exit code but 0 as a crash with a "Root Cause"; --fail-on fail gives it a 0."""
    (tmp_path / "references.toml").write_text(ALL_TOO_HOT)
    settings = READINGS.format(references=tmp_path / "references.toml")
    done = torchrun(settings=settings, suite="readings")
    assert _result(done) == (1, "WARN")
    assert "Root Cause" in done.stderr
    done = torchrun("--fail-on", "fail", settings=settings, suite="readings")
    assert _result(done) == (0, "WARN")
    assert "Root Cause" not in done.stderr


def test_a_fault_on_one_node_is_told_for_that_node(start):
    """The exit code is that of the whole job, on every node."""
    leader = start(0, 2, "--json")
    member = start(1, 2, faults='[{ kind = "ecc", device = 1 }]')
    code, out, err = ended(leader)
    assert (code, ended(member)[0]) == (2, 2), err
    (simulated, _) = json.loads(out)["steps"]
    assert [(run["node"], run["verdict"]) for run in simulated["runs"]] == [("node-0", "PASS"), ("node-1", "FAIL")]


def test_a_process_that_dies_is_named_and_the_others_end(start):
    """It is killed while its ranks hang; its step is UNKNOWN, and the run of the others is ended at once."""
    leader = start(0, 2, "--json")
    member = start(1, 2, faults='[{ kind = "hang", check = "collective" }]')
    wait_for(lambda: "collective: started\n" in leader.stderr, "the step to start")
    member.kill()
    code, out, err = ended(leader)
    assert code == 3, err
    (_, collective) = json.loads(out)["steps"]
    codes = {run["node"]: {finding["code"] for finding in run["findings"]} for run in collective["runs"]}
    assert codes == {"node-0": {"run.preempted"}, "node-1": {"run.lost"}}


def test_processes_that_do_not_come_are_named(start):
    """Nobody waits for ever: of three, two are missing."""
    code, _, err = ended(start(0, 3, "--join-within-s", "1"))
    assert code == 69
    assert "of 3 processes, these ranks did not connect within 1 s: 1, 2" in err


def test_a_leader_that_does_not_come_is_told(start):
    """The message says where it was looked for."""
    code, _, err = ended(start(1, 2, "--join-within-s", "1"))
    assert code == 69
    assert "the process with rank 0 cannot be reached at 127.0.0.1 port" in err


def test_a_port_that_is_taken_is_told(start, master_port):
    """The message names the variable that chooses it."""
    with socket.create_server(("0.0.0.0", master_port)):
        code, _, err = ended(start(0, 2))
    assert code == 69
    assert "see MASTER_PORT" in err


def test_another_version_of_the_suite_is_refused(start, tmp_path):
    """Processes that would run something else do not take part."""
    leader = start(0, 2)
    other = tmp_path / "other.toml"
    other.write_text(SETTINGS.format(faults="[]").replace("65536", "32768"))
    member = start(1, 2, "--config", str(other))
    code, _, err = ended(leader)
    assert code == 64
    assert "these ranks have another version of the suite or its settings: 1" in err
    assert ended(member)[0] == 69


def test_more_processes_than_devices_are_refused(start):
    """Some of them would have no device to work on."""
    local = {"LOCAL_WORLD_SIZE": "3"}
    leader, *members = (start(rank, 3, node="a", LOCAL_RANK=str(rank), **local) for rank in range(3))
    code, _, err = ended(leader)
    assert code == 64
    assert "a has 3 processes for 2 devices: start one for each node, or one for each device" in err
    assert [ended(member)[0] for member in members] == [69, 69]


def test_alone_leaves_the_job_out(start):
    """A shell inside a pod of a job has its environment, but not its other processes."""
    code, out, err = ended(start(0, 2, "--alone", "--json"))
    assert code == 0, err
    assert [run["facts"].get("world_size") for step in json.loads(out)["steps"] for run in step["runs"]] == [None, 2]


def test_garbage_and_strangers_are_sent_away(start, master_port):
    """Whoever does not say who it is, or takes a rank that is there, changes nothing."""
    leader = start(0, 2, "--json")
    for said in (
        b"GET / HTTP/1.1\r\n\r\n",
        b'{"kind": "hello"}\n',
        b'{"kind": "go", "step": 0}\n',
        b"\x00" * 100 + b"\n",
    ):
        assert _answer(master_port, said) == b""
    member = start(1, 2)
    code, _, err = ended(leader)
    assert (code, ended(member)[0]) == (0, 0), err


def _answer(port: int, said: bytes) -> bytes:
    """What comes back before the connection is closed, once the leader listens."""
    deadline = time.monotonic() + 60
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=60)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "the leader does not listen"
            time.sleep(0.02)
    with connection:
        connection.sendall(said)
        return connection.recv(100)
