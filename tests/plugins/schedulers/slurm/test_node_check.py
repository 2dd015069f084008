"""The example of a prolog and epilog under a real Slurm: which nodes get a job, and which Slurm drains."""

import re
import subprocess
import sys

import pytest

TIMED_OUT = 124
"""The exit code of `timeout` (GNU coreutils) for a command that it ended."""

LOGGER = """#!/bin/sh
printf '%s\\n' "$@" >>'{log}'
"""


@pytest.fixture
def install():
    """Installs the example for a cluster, with a system log in a file: `install(slurm, drain_on="2 3")`."""

    def one(slurm, **changed):
        logger = slurm.directory / "bin" / "logger"
        logger.parent.mkdir(exist_ok=True)
        logger.write_text(LOGGER.format(log=system_log(slurm)))
        logger.chmod(0o755)
        scontrol = logger.parent / "scontrol"
        scontrol.write_text(f"""#!/bin/sh\nSLURM_CONF='{slurm.env["SLURM_CONF"]}' exec /usr/bin/scontrol "$@"\n""")
        scontrol.chmod(0o755)
        paths = {"PATH": f"{logger.parent}:/usr/sbin:/usr/bin:/sbin:/bin", "scontrol": scontrol}
        return slurm.example("node-check", **paths, **changed)

    return one


@pytest.fixture(scope="module")
def guarded_cluster(new_slurm):
    """A cluster with those lines in slurm.conf that the example asks for."""
    example = new_slurm().example("node-check").read_text(encoding="utf-8")
    lines = "\n".join(re.findall(r"^# {5}(\w+=\S+)$", example, flags=re.MULTILINE))
    lines = lines.replace("/etc/slurm/muster-node-check", "{directory}/node-check")
    lines = lines.replace("SchedulerParameters=", "SchedulerParameters=batch_sched_delay=0,sched_interval=1,")
    assert lines.count("{directory}") == 2
    with new_slurm(lines) as slurm:
        yield slurm


@pytest.fixture
def guarded(guarded_cluster, install):
    """That cluster with nodes that are healthy and in service."""
    install(guarded_cluster)
    system_log(guarded_cluster).unlink(missing_ok=True)
    yield guarded_cluster
    for node in ("gpu1", "gpu2"):
        guarded_cluster.mend(node)
        guarded_cluster.run("scontrol", "update", f"NodeName={node}", "State=RESUME")


def system_log(slurm):
    return slurm.directory / "system.log"


def stand_in(slurm, text):
    """A program in the place of muster."""
    path = slurm.directory / "stand-in"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def call(script):
    return subprocess.run([script], env={"SLURM_JOB_ID": "17"}, capture_output=True, timeout=60, check=False).returncode


def test_a_healthy_node_runs_the_job(guarded, tmp_path):
    """And nothing is written to the log."""
    job = guarded.sbatch("--nodes=1", f"--output={tmp_path / 'out'}", "--wrap=echo from $SLURMD_NODENAME")
    assert guarded.ended(job)["JobState"] == "COMPLETED"
    assert (tmp_path / "out").read_text() == "from gpu1\n"
    assert not system_log(guarded).exists()


def test_a_faulty_node_is_drained_and_the_job_runs_elsewhere(guarded, tmp_path, eventually):
    """The job goes back into the queue, where it waits for Slurm's two minutes or for an operator."""
    guarded.put_fault("gpu1", kind="ecc")
    job = guarded.sbatch("--nodes=1", f"--output={tmp_path / 'out'}", "--wrap=echo from $SLURMD_NODENAME")
    eventually(lambda: guarded.node("gpu1")["State"] == "IDLE+DRAIN", "the drain")
    assert guarded.node("gpu1")["Reason"].startswith("ECC UE GPU0: simulated.ecc_uncorrected; ")
    assert "; reset the GPU; SIM-gpu1-0; " in guarded.node("gpu1")["Reason"]
    assert " (muster-node-check) [" in guarded.node("gpu1")["Reason"]
    assert "simulated.ecc_uncorrected on device 0" in system_log(guarded).read_text()
    eventually(lambda: guarded.job(job)["JobState"] == "PENDING", "the requeue")
    guarded.scontrol("update", f"JobId={job}", "StartTime=now")
    assert guarded.ended(job)["JobState"] == "COMPLETED"
    assert (tmp_path / "out").read_text() == "from gpu2\n"


def test_a_node_that_a_job_leaves_faulty_is_drained(guarded, tmp_path, eventually):
    """The job itself ends as it would have."""
    spoil = f"""echo '[{{"kind": "ecc"}}]' >{guarded.directory}/$SLURMD_NODENAME.faults"""
    job = guarded.sbatch("--nodes=1", f"--output={tmp_path / 'out'}", f"--wrap={spoil}")
    ended = guarded.ended(job)
    assert ended["JobState"] == "COMPLETED"
    eventually(lambda: "DRAIN" in guarded.node(ended["NodeList"])["State"], "the drain")
    assert guarded.node(ended["NodeList"])["Reason"].startswith("ECC UE GPU0: simulated.ecc_uncorrected; ")


@pytest.mark.parametrize(
    ("text", "code", "drains"),
    [
        ("exit 1", 1, False),
        ("exit 2", 2, True),
        ("exit 3", 3, False),
        ("echo 'no such setting' >&2; exit 64", 64, False),
        ("exit 69", 69, False),
        ("sleep 60", 124, False),
        ("trap '' TERM; while :; do sleep 1; done", 137, False),
    ],
)
def test_only_a_failed_check_drains(new_slurm, install, text, code, drains):
    """What could not be found out, or a muster that is set up wrongly or hangs, is logged and lets the job through."""
    slurm = new_slurm()
    script = install(slurm, muster=stand_in(slurm, text), deadline_s="0.2", grace_s="0.2")
    assert call(script) == drains
    assert f"by hand, job 17: exit code {code}\n" in system_log(slurm).read_text()
    assert ("no such setting" in system_log(slurm).read_text()) == (code == 64)


def test_a_muster_that_is_not_installed_lets_the_job_through(new_slurm, install):
    """Slurm may know a node before muster does."""
    slurm = new_slurm()
    assert call(install(slurm, muster="/nowhere/muster")) == 0
    assert "exit code 127" in system_log(slurm).read_text()


def test_an_operator_may_be_stricter(new_slurm, install):
    """One who does not want a job where the check cannot tell adds UNKNOWN."""
    slurm = new_slurm()
    assert call(install(slurm, muster=stand_in(slurm, "exit 3"), drain_on='"2 3"')) == 1


def test_the_suite_that_comes_with_muster_ends_before_the_deadline(new_slurm, install):
    """On this machine, whatever it finds here."""
    slurm = new_slurm()
    slurm.settings.write_text(f"node = 'here'\ndata_dir = '{slurm.directory}'\n")
    call(install(slurm, muster=stand_in(slurm, f"exec '{sys.executable}' -m muster \"$@\"")))
    said = system_log(slurm).read_text() if system_log(slurm).exists() else ""
    assert "Traceback" not in said
    assert f"exit code {TIMED_OUT}" not in said
