"""An acceptance under a real Slurm: srun starts it on every node, and an sbatch script is the example that we give."""

import json
import signal
import subprocess

import pytest
from tests.coordinator.conftest import running_coordinator

RUN = ("check", "run", "--suite", "full")
LOOK = ("check", "run", "--suite", "prolog")
ONE_PER_NODE = ("--nodes=2", "--ntasks-per-node=1")
ONE_PER_DEVICE = ("--nodes=2", "--ntasks-per-node=2")


def report(directory, name="report"):
    return json.loads((directory / f"{name}.json").read_text())


@pytest.fixture
def started(slurm):
    """An srun whose collective hangs on all nodes, at the time when it does."""
    for node in ("gpu1", "gpu2"):
        slurm.put_fault(node, kind="hang", check="collective")
    command = ["srun", *ONE_PER_NODE, slurm.muster, *RUN]
    with subprocess.Popen(command, env=slurm.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as srun:
        assert srun.stdout is not None
        assert any(line == "collective: started\n" for line in srun.stdout)
        yield srun
        srun.kill()
    slurm.run("scancel", "--me")


@pytest.mark.torch
def test_a_process_per_node_takes_all_devices_of_its_node(slurm, tmp_path):
    """Rank 0 alone reports, and for both nodes."""
    as_documented = ("--gpus-per-node=2", "--exclusive", "--cpu-bind=none")
    done = slurm.srun(*ONE_PER_NODE, *as_documented, slurm.muster, *RUN, "--report-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("== RESULT") == 1
    told = report(tmp_path)
    assert [node["name"] for node in told["nodes"]] == ["gpu1", "gpu2"]
    (_, collective) = told["steps"]
    assert [(run["node"], run["facts"]["world_size"]) for run in collective["runs"]] == [("gpu1", 4), ("gpu2", 4)]


@pytest.mark.torch
def test_a_process_per_device_brings_one_rank_each(slurm, tmp_path):
    """What concerns a node is still measured once for it."""
    done = slurm.srun(*ONE_PER_DEVICE, slurm.muster, *RUN, "--report-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    (simulated, collective) = report(tmp_path)["steps"]
    assert [run["node"] for run in simulated["runs"]] == ["gpu1", "gpu2"]
    devices = [(run["node"], run["facts"]["device"]) for run in collective["runs"]]
    assert devices == [("gpu1", 0), ("gpu1", 1), ("gpu2", 0), ("gpu2", 1)]


def test_processes_that_slurm_spreads_unevenly_are_refused(slurm):
    """Without --ntasks-per-node, Slurm fills the first node: three processes for two devices."""
    done = slurm.srun("--nodes=2", "--ntasks=4", slurm.muster, *LOOK)
    assert "gpu1 has 3 processes for 2 devices" in done.stderr
    assert done.returncode > 3


def test_a_fault_on_one_node_is_the_exit_code_of_srun(slurm, tmp_path):
    """And the report says which node it is."""
    slurm.put_fault("gpu2", kind="ecc")
    done = slurm.srun(*ONE_PER_NODE, slurm.muster, *LOOK, "--report-dir", tmp_path)
    assert done.returncode == 2, done.stderr
    assert [run["verdict"] for run in report(tmp_path)["steps"][0]["runs"]] == ["PASS", "FAIL"]


def test_a_node_with_too_few_gpus_fails(slurm):
    """That the others have theirs changes nothing."""
    slurm.put_fault("gpu2", kind="missing")
    done = slurm.srun(*ONE_PER_NODE, slurm.muster, *LOOK, "--expect-gpus", 2)
    assert done.returncode == 2, done.stderr
    assert "gpu2: ERROR simulated.devices_missing" in done.stdout


def test_an_srun_that_is_terminated_leaves_nothing_running(slurm, started, eventually):
    """Neither on the first node nor on the others."""
    started.terminate()
    assert started.wait(60) != 0
    eventually(lambda: not slurm.tasks(), "the end of all processes")


def test_an_srun_that_is_interrupted_twice_leaves_nothing_running(slurm, started, eventually):
    """At the first Ctrl-C, srun only says what goes on."""
    started.send_signal(signal.SIGINT)
    assert any("one more within 1 sec to abort" in line for line in started.stdout)
    started.send_signal(signal.SIGINT)
    assert started.wait(60) != 0
    eventually(lambda: not slurm.tasks(), "the end of all processes")


def test_a_job_that_is_cancelled_ends_by_itself(slurm, started, eventually):
    """It does so within KillWait, and says that it was told to."""
    slurm.run("scancel", "--me")
    out, _ = started.communicate(timeout=60)
    assert "Killed" not in out
    assert "Exited with exit code 143" in out or "Terminated" in out
    eventually(lambda: not slurm.tasks(), "the end of all processes")


def test_a_node_that_is_lost_is_named(slurm, started, eventually):
    """The others end their part at once instead of waiting for it."""
    victim = next(task for task in slurm.tasks() if task.environ()["SLURM_PROCID"] == "1")
    victim.kill()
    out, _ = started.communicate(timeout=60)
    assert "gpu2: UNKNOWN run.lost" in out
    eventually(lambda: not slurm.tasks(), "the end of all processes")


def batch(slurm, directory, script):
    """Runs the script for nodes with as many GPUs as Slurm has given out; the job's exit code, log and report."""
    job = slurm.sbatch(f"--chdir={directory}", "--gpus-per-node=2", script)
    code = slurm.ended(job)["ExitCode"]
    log = (directory / f"muster-acceptance-{job}.log").read_text()
    return code, log, report(directory, f"muster-acceptance-{job}")


@pytest.mark.torch
def test_the_batch_script_accepts_nodes(slurm, tmp_path):
    """The example as it stands."""
    code, log, told = batch(slurm, tmp_path, slurm.example("acceptance.sbatch"))
    assert code == "0:0", log
    assert "== RESULT" in log
    assert [node["name"] for node in told["nodes"]] == ["gpu1", "gpu2"]


@pytest.fixture
def coordinator(tmp_path):
    """A coordinator that keeps reports."""
    with running_coordinator(tmp_path / "coordinator") as running:
        yield running


def test_the_batch_script_sends_its_report(slurm, coordinator, tmp_path):
    """One for the job, to the coordinator that stands at its top."""
    where = {"coordinator": coordinator.url, "token_file": str(tmp_path / "coordinator" / "api_token")}
    code, log, told = batch(slurm, tmp_path, slurm.example("acceptance.sbatch", suite="prolog", **where))
    (kept,) = coordinator.get("/api/v1/acceptance")["items"]
    assert (code, kept["nodes"], kept["verdict"]) == ("0:0", 2, told["verdict"]), log
    assert f"sent: {coordinator.url}/acceptance/{kept['id']}" in log


def test_the_batch_script_ends_with_the_code_of_the_worst_node(slurm, tmp_path):
    """Slurm's accounting shows it, and a job that depends on this one does not start."""
    slurm.put_fault("gpu2", kind="ecc")
    code, log, told = batch(slurm, tmp_path, slurm.example("acceptance.sbatch", suite="prolog"))
    assert (code, told["verdict"]) == ("2:0", "FAIL"), log
