"""The processes of a run: what they inherit, what they leave behind, and what is kept of their output."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.alive import is_alive

from muster.model import Measurement, Severity, Verdict


def forks_twice_and_escapes() -> int:
    """Starts a daemon in the classic way: fork, setsid, fork. Returns its process id."""
    told, tell = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(tell, str(os.getpid()).encode())
            time.sleep(60)
        os._exit(0)
    os.wait()
    return int(os.read(told, 20))


@pytest.mark.parametrize("resident", [False, True], ids=["own process", "resident"])
async def test_processes_that_a_run_leaves_behind_are_killed_and_named(running, check, resident):
    """Children, and grandchildren that fled into their own session, do not outlive the run; PASS stays PASS."""

    def measure(_params, _context):
        ordinary = subprocess.Popen(["sleep", "60"])
        return Measurement(facts={"pids": [ordinary.pid, forks_twice_and_escapes()]})

    messy = check(measure, resident=resident)
    async with running(messy) as runs:
        run = (await runs.run(messy)).run
        assert not any(is_alive(pid) for pid in run.facts["pids"])
    assert run.verdict is Verdict.PASS
    assert [(finding.code, finding.severity) for finding in run.findings] == [("run.leftovers", Severity.INFO)]
    assert "sleep" in run.findings[0].evidence["names"]


async def test_leftovers_of_one_run_do_not_cost_another_its_life(running, check):
    """While one run's leftovers are killed, the children of a run that goes on are spared."""

    def measure(_params, context):
        escaped = forks_twice_and_escapes()
        context.progress(str(escaped))
        time.sleep(60)

    def messy(_params, _context):
        return Measurement(facts={"pid": forks_twice_and_escapes()})

    steady, mess = check(measure, name="steady"), check(messy, name="mess")
    async with running(steady, mess) as runs:
        await runs.start(steady, run="steady")
        while not runs.progress:
            runs.progress.append((await runs.events.get()).text)
        escaped = (await runs.run(mess)).run.facts["pid"]
        assert not is_alive(escaped)
        assert is_alive(int(runs.progress[0]))
        runs.runner.stop("steady", "enough")
        await runs.ended()
        assert not is_alive(int(runs.progress[0]))


async def test_only_the_end_of_the_output_is_kept(running, check):
    """A check that prints without end costs 4 KiB of memory, not more."""

    def measure(_params, _context):
        for number in range(100_000):
            print("line", number)
        sys.exit(1)

    chatty = check(measure)
    async with running(chatty) as runs:
        output = (await runs.run(chatty)).run.findings[0].evidence["output"]
    assert len(output) <= 4096
    assert output.endswith("line 99999\n")


def held_by(pid: int) -> set[str]:
    """What the descriptors of a process refer to."""
    held = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that lists the directory
            held.add(str(descriptor.readlink()))
    return held


async def test_a_child_inherits_nothing_of_other_runs(running, check):
    """A child holds stdin, stdout, stderr and its control socket; what the launcher and other runs use is closed."""

    def measure(_params, _context):
        return Measurement(facts={"held": [*held_by(os.getpid())]})

    def waits(_params, context):
        context.progress("there")
        time.sleep(60)

    looking, waiting = check(measure, name="looking"), check(waits, name="waiting")
    async with running(looking, waiting) as runs:
        before = held_by(os.getpid())
        await runs.start(waiting, run="waiting")
        await runs.until("there")
        [other] = psutil.Process(runs.launcher.pid).children()
        foreign = (held_by(other.pid) | held_by(runs.launcher.pid)) - before - {"/dev/null"}
        held = set((await runs.run(looking)).run.facts["held"])
    assert foreign
    assert not held & foreign


async def test_signals_are_as_in_a_fresh_process(running, check):
    """SIGINT, SIGTERM, SIGHUP and SIGCHLD have their default action, and no wakeup descriptor is set."""

    def measure(_params, _context):
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
        return Measurement(facts={"default": [signal.getsignal(number) == signal.SIG_DFL for number in numbers]})

    looking = check(measure)
    async with running(looking) as runs:
        assert (await runs.run(looking)).run.facts == {"default": [True] * 4}
