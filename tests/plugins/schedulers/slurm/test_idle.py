"""Whether Slurm has given a node to anybody, asked of a real Slurm."""

import shutil
import time
from functools import partial

import pytest

from muster.check import Idleness, IdleProbe
from muster.config import Config, Settings
from muster_plugins.schedulers.slurm.idle import SqueueUnanswered
from muster_plugins.schedulers.slurm.plugin import muster_idle_probes
from muster_plugins.shared.programs import NotRun

IDLE, BUSY = Idleness.IDLE, Idleness.BUSY
OWN: frozenset[int] = frozenset()


def probes(**settings) -> list[IdleProbe]:
    return [*muster_idle_probes(Config(Settings.model_validate({"plugins": {"slurm": settings}})))]


def idleness(node: str, **settings) -> Idleness:
    (probe,) = probes(enabled=True, node=node, **settings)
    return probe.probe(OWN)


@pytest.fixture(scope="module")
def slurm(new_slurm):
    """A cluster of which a node can have several jobs at a time."""
    with new_slurm("SelectTypeParameters=CR_Core") as running:
        yield running


@pytest.fixture
def at(slurm, monkeypatch):
    """Asks about a node as an agent there would: `at("gpu1")`. No job is left afterwards."""
    monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
    yield idleness
    slurm.run("scancel", "--me")


@pytest.fixture
def job_on(slurm, eventually):
    """Starts a job that lasts on a node; gives its id once it runs."""

    def start(node: str, *options: str) -> str:
        job: str = slurm.sbatch(f"--nodelist={node}", *options, "--wrap", "sleep 600")
        eventually(lambda: slurm.job(job)["JobState"] == "RUNNING", f"job {job} to run")
        return job

    return start


def test_a_node_is_busy_while_a_job_has_it(at, job_on, slurm, eventually):
    """From its start to its end, and no other node with it."""
    assert at("gpu1") is IDLE
    job = job_on("gpu1")
    assert (at("gpu1"), at("gpu2")) == (BUSY, IDLE)
    slurm.run("scancel", job)
    eventually(lambda: at("gpu1") is IDLE, "an idle node")


def test_a_job_that_waits_has_no_node(at, slurm, eventually):
    """Also when it asks for this one."""
    job = slurm.sbatch("--nodelist=gpu1", "--begin=now+1hour", "--wrap", "sleep 600")
    eventually(lambda: slurm.job(job)["JobState"] == "PENDING", "a job that waits")
    assert at("gpu1") is IDLE


def test_a_suspended_job_keeps_its_node(at, job_on, slurm, eventually):
    """What it has in the GPUs' memory stays there, although sinfo calls the node idle."""
    job = job_on("gpu1")
    slurm.scontrol("suspend", job)
    eventually(lambda: slurm.job(job)["JobState"] == "SUSPENDED", "a suspended job")
    assert at("gpu1") is BUSY
    assert slurm.run("sinfo", "--noheader", "--nodes=gpu1", "--format=%T").stdout.strip() == "idle"


def test_a_job_that_its_user_has_stopped_keeps_its_node(at, job_on, slurm, eventually):
    """It still runs for Slurm, with a flag, and can go on at any time."""
    job = slurm.sbatch("--nodelist=gpu1", "--wrap", "srun sleep 600")
    eventually(lambda: slurm.run("squeue", "-h", "-s", "-j", job).stdout.count("sleep"), "a step that runs")
    slurm.run("scancel", "--signal=STOP", job)
    eventually(lambda: slurm.job(job)["JobState"] == "STOPPED", "a stopped job")
    assert at("gpu1") is BUSY


def test_a_job_that_was_put_back_into_the_line_has_no_node(at, job_on, slurm, eventually):
    """Where it ran before is of no interest."""
    job = job_on("gpu1", "--requeue")
    slurm.scontrol("requeuehold", job)
    eventually(lambda: at("gpu1") is IDLE, "an idle node")
    assert slurm.job(job)["JobState"] == "PENDING"


def test_what_people_like_to_see_hides_no_job(at, job_on, monkeypatch):
    """Filters for squeue come from the environment as well."""
    job_on("gpu1")
    for name, value in (("USERS", "nobody"), ("NAMES", "none"), ("STATES", "PENDING"), ("FORMAT", "%j")):
        monkeypatch.setenv(f"SQUEUE_{name}", value)
    monkeypatch.setenv("SLURM_CLUSTERS", "elsewhere")
    assert at("gpu1") is BUSY


def test_elements_of_an_array_count_each(at, job_on, slurm, eventually, monkeypatch):
    """The agent's own is one of them only."""
    array = slurm.sbatch("--nodelist=gpu1", "--array=1-2", "--wrap", "sleep 600")
    eventually(lambda: slurm.run("squeue", "-h", "-t", "RUNNING", "-o", "%A").stdout.count("\n") == 2, "two elements")
    monkeypatch.setenv("SLURM_JOB_ID", array)
    assert at("gpu1") is BUSY


def test_the_job_that_the_agent_runs_in_is_no_foreign_work(at, job_on, monkeypatch):
    """Any other beside it is."""
    monkeypatch.setenv("SLURM_JOB_ID", job_on("gpu1"))
    assert at("gpu1") is IDLE
    job_on("gpu1")
    assert at("gpu1") is BUSY


def test_a_job_is_there_until_its_epilog_has_ended(new_slurm, monkeypatch, eventually):
    """COMPLETING: the node is still being cleaned up after it."""
    with new_slurm("Epilog={directory}/epilog") as slurm:
        monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
        epilog = slurm.directory / "epilog"
        epilog.write_text(f"#!/bin/sh\nwhile [ ! -e '{slurm.directory}/clean' ]; do sleep 0.1; done\n")
        epilog.chmod(0o755)
        job = slurm.sbatch("--nodelist=gpu1", "--wrap", "true")
        eventually(lambda: slurm.job(job)["JobState"] == "COMPLETING", "the epilog")
        assert idleness("gpu1") is BUSY
        (slurm.directory / "clean").touch()
        eventually(lambda: idleness("gpu1") is IDLE, "an idle node")


def test_no_answer_of_slurmctld_is_unknown_within_a_second(new_slurm, monkeypatch, eventually):
    """Nobody waits for the ten seconds that squeue has; when slurmctld answers again, so does the probe."""
    with new_slurm() as slurm:
        monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
        slurmctld = next(process for process in slurm.processes() if process.name() == "slurmctld")
        slurmctld.suspend()
        began = time.monotonic()
        with pytest.raises(SqueueUnanswered, match="slurmctld did not answer"):
            idleness("gpu1")
        assert time.monotonic() - began < 5
        slurmctld.resume()
        eventually(partial(_answers, "gpu1"), "an answer")


def test_squeue_without_an_answer_is_asked_again(at, tmp_path):
    """Slurm 24.11 forgets a call now and then, and answers the next one at once."""
    squeue = tmp_path / "squeue"
    squeue.write_text(f"#!/bin/sh\nmkdir '{tmp_path}/asked' 2>/dev/null && exec sleep 600\nexit 0\n")
    squeue.chmod(0o755)
    assert at("gpu1", squeue=str(squeue)) is IDLE


def test_what_squeue_says_while_it_waits_is_the_reason(at, tmp_path):
    """It waits a minute for a slurm.conf that is not there."""
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\necho 'cannot stat file /etc/slurm/slurm.conf, retrying' >&2\nexec sleep 600\n")
    squeue.chmod(0o755)
    with pytest.raises(SqueueUnanswered, match=r"within 0\.8 s: cannot stat file /etc/slurm/slurm\.conf, retrying$"):
        at("gpu1", squeue=str(squeue))


def _answers(node: str) -> bool:
    try:
        return idleness(node) is IDLE
    except SqueueUnanswered:
        return False


def test_an_unknown_node_is_not_idle(at):
    """What squeue says about it is the reason."""
    with pytest.raises(SqueueUnanswered, match=r"(?i)invalid node name"):
        at("gpu3")


def test_what_squeue_says_is_read_with_care(at):
    """An executable that is no squeue tells nothing about jobs, and one that is missing is named."""
    for squeue, said in ((shutil.which("echo"), "--all"), (shutil.which("false"), "ended with 1")):
        with pytest.raises(SqueueUnanswered, match=said):
            at("gpu1", squeue=squeue)
    with pytest.raises(NotRun, match="no-squeue"):
        at("gpu1", squeue="no-squeue")


def test_it_is_off_unless_it_is_enabled():
    """A node without Slurm is not asked about."""
    assert probes() == []
    (probe,) = probes(enabled=True, interval_s=5)
    assert probe.interval_s == 5
