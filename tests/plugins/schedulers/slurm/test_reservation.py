"""Keeping the work of a real Slurm off a node while it is tested, beside drains of all other kinds."""

import asyncio
import re
import shutil
import time
from functools import partial

import pytest

from muster import Transition
from muster.config import Config, Settings
from muster_agent.runs.resident import RESERVATION_TIMEOUT_S
from muster_plugins.schedulers.slurm import plugin
from muster_plugins.schedulers.slurm.plugin import muster_reservations, muster_transition
from muster_plugins.schedulers.slurm.reservation import HeldByOthers
from muster_plugins.schedulers.slurm.scontrol import Failed

TEST = "muster-test: collective in group 5f1c"


def reservation(here="gpu1", **slurm):
    settings = Settings.model_validate({"node": here, "plugins": {"slurm": {"reserve": True, **slurm}}})
    (only,) = muster_reservations(Config(settings))
    return only


def reserve(why="collective in group 5f1c"):
    reservation().reserve(why)


def release():
    reservation().release()


async def tell(after, id):
    """What the coordinator does meanwhile."""
    settings = Settings.model_validate({"plugins": {"slurm": {"actor": {"enabled": True}}}})
    told = {"id": id, "node": "gpu1", "before": "IN_SERVICE", "after": after, "reason": "ecc", "at": 1.0}
    await muster_transition(Config(settings), Transition.model_validate(told))


def stands(nodes):
    """Whether the node is drained, and the reason without who wrote it and when.

    Without a reason if it gets work: there Slurm 22.05 forgets the reason, and Slurm 24.11 keeps it.
    """
    node = nodes.node("gpu1")
    reason = re.sub(r" \[\S+@\S+\]$", "", node.get("Reason", ""))
    return "DRAIN" in node["State"], "" if node["State"].startswith("IDLE") and "DRAIN" not in node["State"] else reason


def test_a_job_waits_until_the_test_has_ended(nodes, eventually):
    """From when the reservation is made; other nodes get work."""
    reserve()
    assert stands(nodes) == (True, TEST)
    jobs = {node: nodes.sbatch(f"--nodelist={node}", "--wrap", "sleep 600") for node in ("gpu1", "gpu2")}
    eventually(lambda: nodes.job(jobs["gpu2"])["JobState"] == "RUNNING", "the job elsewhere")
    assert nodes.job(jobs["gpu1"])["JobState"] == "PENDING"
    release()
    eventually(lambda: nodes.job(jobs["gpu1"])["JobState"] == "RUNNING", "the job that waits")
    assert stands(nodes) == (False, "")


def test_what_a_killed_agent_has_left_is_taken_over(nodes):
    """With the new reason, or given back; both can be repeated."""
    for why in ("collective in group 5f1c", "gemm"):
        reserve(why)
        assert stands(nodes) == (True, f"muster-test: {why}")
    for _ in range(2):
        release()
        assert stands(nodes) == (False, "")


def test_an_operators_drain_keeps_us_off(nodes):
    """And is not released, also when it comes while we test."""
    nodes.scontrol("update", "NodeName=gpu1", "State=DRAIN", "Reason=bad fan")
    with pytest.raises(HeldByOthers, match=r"gpu1 is IDLE\+DRAIN: bad fan \(root@"):
        reserve()
    release()
    assert stands(nodes) == (True, "bad fan")
    nodes.scontrol("update", "NodeName=gpu1", "State=UNDRAIN")
    reserve()
    nodes.scontrol("update", "NodeName=gpu1", "State=DRAIN", "Reason=worse fan")
    release()
    assert stands(nodes) == (True, "worse fan")


async def test_a_node_that_is_out_of_service_stays_out(nodes):
    """Its drain serves the test as well, and outlives it."""
    await tell("PROBATION", "1-7")
    await in_thread(reserve)
    await in_thread(release)
    assert stands(nodes) == (True, "muster: retest: ecc [1-7]")


async def test_a_node_that_is_taken_out_while_it_is_tested_stays_out(nodes):
    """The end of the test changes nothing."""
    await in_thread(reserve)
    await tell("CORDONED", "1-7")
    await in_thread(release)
    assert stands(nodes) == (True, "muster: ecc [1-7]")


async def test_a_node_that_is_uncordoned_while_it_is_tested_waits_for_the_end(nodes):
    """Of the test, which alone keeps it out."""
    await in_thread(reserve)
    await tell("IN_SERVICE", "1-7")
    assert stands(nodes) == (True, TEST)
    await in_thread(release)
    assert stands(nodes) == (False, "")


@pytest.fixture
def noted(nodes, eventually):
    """The cluster, with a reason beside a node that gets work: a reboot is to come when a job has ended."""
    job = nodes.sbatch("--nodelist=gpu1", "--wrap", "sleep 600")
    eventually(lambda: nodes.job(job)["JobState"] == "RUNNING", "a job that the reboot waits for")
    nodes.scontrol("reboot", "reason=new kernel", "gpu1")
    return nodes


async def test_what_was_written_beside_the_node_before_is_kept(noted):
    """While it is tested, after a test that was not ended, and when the coordinator takes the node out meanwhile."""
    for why in ("collective in group 5f1c", "gemm"):
        await in_thread(partial(reserve, why))
        assert stands(noted) == (True, f"muster-test: {why}; before: new kernel")
    await tell("CORDONED", "1-7")
    assert stands(noted) == (True, "muster: ecc; before: new kernel [1-7]")


async def in_thread(call):
    """As the agent calls it."""
    await asyncio.to_thread(call)


@pytest.fixture
def overtaken(nodes, tmp_path):
    """A scontrol before whose first change the coordinator takes the node out: `overtaken()`. It writes `calls`."""

    def write():
        path, real = tmp_path / "scontrol", shutil.which("scontrol")
        drain = f"{real} update NodeName=gpu1 State=DRAIN 'Reason=muster: ecc [1-7]' 'Comment=[muster:1-7]'"
        once = f"[ $1 != update ] || [ -e {tmp_path}/once ] || {{ touch {tmp_path}/once; {drain}; }}"
        path.write_text(f'#!/bin/sh\necho "$1" >>{tmp_path}/calls\n{once}\nexec {real} "$@"\n')
        path.chmod(0o755)
        return str(path)

    return write


@pytest.mark.parametrize("ours", ["reserve", "release"])
async def test_a_drain_that_comes_between_our_look_and_our_change_is_put_back(nodes, overtaken, ours, tmp_path):
    """The coordinator takes a node out just when its test has ended; nobody has let the node in again by hand.

    All that scontrol is asked for then fits into the deadline of a reservation, however long it takes.
    """
    if ours == "release":
        await in_thread(reserve)
    racing = reservation(scontrol=overtaken())
    await in_thread(partial(racing.reserve, "gemm") if ours == "reserve" else racing.release)
    assert stands(nodes) == (True, "muster: drained while it was tested [1-7]")
    asked = (tmp_path / "calls").read_text().split()
    assert len(asked) * plugin._TEST_TIMEOUT_S < RESERVATION_TIMEOUT_S, asked
    await in_thread(release)
    await tell("CORDONED", "1-7")
    assert stands(nodes) == (True, "muster: drained while it was tested [1-7]")
    await tell("IN_SERVICE", "1-8")
    assert stands(nodes) == (False, "")


async def test_a_drain_that_is_put_back_keeps_what_was_written_before(noted, overtaken):
    """Which the drain that got lost had kept, and our own before it."""
    await in_thread(reserve)
    await in_thread(reservation(scontrol=overtaken()).release)
    assert stands(noted) == (True, "muster: drained while it was tested; before: new kernel [1-7]")


def test_a_node_that_slurm_has_down_is_not_ours_to_bring_up(nodes):
    """Neither to test it nor when it went down under the test."""
    reserve()
    nodes.scontrol("update", "NodeName=gpu1", "State=DOWN", f"Reason={TEST}")
    release()
    assert nodes.node("gpu1")["State"].startswith("DOWN")
    assert stands(nodes) == (False, TEST)
    with pytest.raises(HeldByOthers, match="gpu1 is DOWN"):
        reserve()


def test_slurmctld_that_does_not_answer_costs_less_than_the_deadline(nodes):
    """All reservations of a node together have five seconds."""
    slurmctld = next(process for process in nodes.processes() if process.name() == "slurmctld")
    slurmctld.suspend()
    began = time.monotonic()
    with pytest.raises(Failed, match=r"slurmctld did not answer within 1\.2 s"):
        reserve()
    assert time.monotonic() - began < 5
    slurmctld.resume()


def test_a_name_that_slurm_does_not_know(nodes):
    """The name in Slurm can be set; what is wrong and where is said."""
    reservation("there", node="gpu1").reserve("gemm")
    assert stands(nodes) == (True, "muster-test: gemm")
    with pytest.raises(Failed, match=r"Slurm has no node there; set plugins\.slurm\.node"):
        reservation("there").reserve("gemm")


def test_it_is_off_unless_it_is_asked_for():
    """The idle probe alone changes nothing in Slurm."""
    settings = Settings.model_validate({"plugins": {"slurm": {"enabled": True}}})
    assert list(muster_reservations(Config(settings))) == []
