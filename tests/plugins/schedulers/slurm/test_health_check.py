"""The example of a HealthCheckProgram under a real Slurm, which calls the example of a prolog."""

import re

import pytest


@pytest.fixture(scope="module")
def checked(new_slurm):
    """A cluster that checks its idle nodes every ten seconds; what the example asks for in slurm.conf otherwise.

    Slurm starts the next check of a node without waiting for the last: where one takes seconds, more often piles up.
    """
    example = new_slurm().example("health-check").read_text(encoding="utf-8")
    lines = "\n".join(re.findall(r"^# {5}(\w+=\S+)$", example, flags=re.MULTILINE))
    lines = lines.replace("/etc/slurm/muster-health-check", "{directory}/health-check")
    lines = lines.replace("HealthCheckInterval=300", "HealthCheckInterval=10")
    assert lines.count("=") == 3
    slurm = new_slurm(lines)
    install(slurm)
    with slurm:
        yield slurm


def install(slurm):
    """Both scripts, for a cluster that is not where Slurm is by default, with a system log in a file."""
    programs = slurm.directory / "bin"
    programs.mkdir()
    log = f"""echo "$SLURMD_NODENAME: $*" >>'{slurm.directory}/system.log'"""
    scontrol = f"""SLURM_CONF='{slurm.env["SLURM_CONF"]}' exec /usr/bin/scontrol "$@\""""
    for name, text in (("logger", log), ("scontrol", scontrol)):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    paths = {"PATH": f"{programs}:/usr/bin:/bin", "scontrol": programs / "scontrol"}
    slurm.example("health-check", node_check=slurm.example("node-check", deadline_s="50", **paths))


def system_log(slurm):
    path = slurm.directory / "system.log"
    return path.read_text() if path.exists() else ""


def test_a_faulty_node_is_drained_while_no_job_uses_it(checked, eventually):
    """Others stay, and what was found is in the system log."""
    checked.put_fault("gpu1", kind="ecc")
    eventually(lambda: "DRAIN" in checked.node("gpu1")["State"], "the drain")
    assert checked.node("gpu1")["Reason"].startswith("ECC UE GPU0: simulated.ecc_uncorrected; ")
    assert "; reset the GPU; SIM-gpu1-0; " in checked.node("gpu1")["Reason"]
    assert " (muster-node-check) [" in checked.node("gpu1")["Reason"]
    assert checked.node("gpu2")["State"] == "IDLE"
    assert "health_check, job none: exit code 2\n" in system_log(checked)
    assert "simulated.ecc_uncorrected on device 0" in system_log(checked)


def test_the_reason_of_whoever_was_first_stays(checked, eventually):
    """Also when the check goes on to fail."""
    checked.scontrol("update", "NodeName=gpu2", "State=DRAIN", "Reason=bad fan")
    checked.put_fault("gpu2", kind="ecc")
    eventually(lambda: system_log(checked).count("gpu2: --tag") > 1, "two checks, of which one has ended")
    assert checked.node("gpu2")["Reason"].startswith("bad fan [")
