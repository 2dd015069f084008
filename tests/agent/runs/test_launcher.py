"""The launcher process itself: what it survives, and that nothing outlives the daemon."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from muster.config import Config, Settings
from muster.model import Measurement, Verdict
from muster.plugins import Plugins
from muster_agent.runs import child
from muster_agent.runs.launcher import LauncherLost, launch

DAEMON = """
    import asyncio, os, subprocess, time
    from muster.check import Check, Idleness, IdleProbe, Params
    from muster.config import Config, Settings
    from muster.hookspecs import hookimpl
    from muster.model import Inventory, Measurement
    from muster.plugins import Plugins, collect_checks
    from muster.wire.messages import PluginInfo
    from muster_agent.runs.launcher import launch
    from muster_agent.runs.resident import ResidentChild
    from muster_agent.runs.runner import Order, Runner, Surroundings

    def escape():
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
        os.wait()

    def measure(params, context):
        subprocess.Popen(["sleep", "600"])
        escape()
        context.progress("busy")
        time.sleep(600)

    class Throwaway:
        @hookimpl
        def muster_checks(self):
            return [Check(name="busy", summary="", scope="NODE", params=Params, measure=measure,
                          judge=lambda m, r: [], timeout_s=600)]

        @hookimpl
        def muster_inventory(self):
            subprocess.Popen(["sleep", "600"])
            escape()
            return Inventory()

    plugins = Plugins(Config(Settings()))
    plugins.add(PluginInfo(name="throwaway", distribution=None, version=None, status="loaded"), Throwaway)
    checks = collect_checks(plugins)
    launcher = launch(plugins, checks)

    async def main():
        resident = ResidentChild(launcher, None)
        await resident.inventory()
        around = Surroundings(node="n", devices=(), expected_gpus=None, references=(), memory_limit_bytes=None)
        runner = Runner(launcher, resident, around, lambda event: print("event", flush=True))
        for run in ("a", "b"):
            await runner.start(Order(run=run, check=checks["busy"], params=Params(), timeout_s=600))
        await asyncio.sleep(600)

    asyncio.run(main())
"""


@pytest.fixture
def daemon(tmp_path):
    """A daemon in a process of its own, with two runs and the resident child, each of which has forked children."""
    program = [sys.executable, "-c", textwrap.dedent(DAEMON)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        assert [process.stdout.readline() for _ in range(2)] == ["event\n"] * 2
        yield psutil.Process(process.pid)
        process.kill()


def everything_below(process: psutil.Process) -> list[psutil.Process]:
    return process.children(recursive=True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "SIGTERM"])
def test_nothing_outlives_the_daemon(daemon, tmp_path, number):
    """When the daemon dies, launcher, resident child, runs, all of their escaped descendants and files go with it."""
    below = everything_below(daemon)
    assert len(below) == 1 + 3 * 3  # the launcher; three children with a child and an escaped one each
    daemon.send_signal(number)
    _, left = psutil.wait_procs(below, timeout=5)
    assert left == []
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_signal_does_not_stop_the_launcher(daemon):
    """SIGINT and SIGTERM to the launcher are ignored: the daemon decides, and may still have runs to report."""
    [launcher] = daemon.children()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        launcher.send_signal(number)
    time.sleep(0.1)
    assert launcher.is_running()
    assert os.getsid(launcher.pid) == launcher.pid


async def test_children_are_the_first_to_go_and_leave_no_core(running, check):
    """A child may take no more than its memory limit, writes no core file and is the kernel's first victim."""

    def measure(_params, _context):
        import resource  # noqa: PLC0415 -- looked at in the child only

        return Measurement(
            facts={
                "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
                "data": resource.getrlimit(resource.RLIMIT_DATA)[0],
                "score": int(Path("/proc/self/oom_score_adj").read_text(encoding="ascii")),
                "leads": os.getsid(0) == os.getpgid(0) == os.getpid(),
            }
        )

    looking = check(measure)
    async with running(looking, memory_limit_bytes=1 << 33) as runs:
        facts = (await runs.run(looking)).run.facts
    assert facts == {"core": 0, "data": 1 << 33, "score": 1000, "leads": True}


async def test_a_fork_that_fails_is_a_finding(running, check, monkeypatch):
    """When the kernel refuses another process, the run says so and the launcher goes on."""
    parent = os.getpid()
    real_fork = os.fork

    def fork() -> int:
        if os.getpid() != parent:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return real_fork()

    monkeypatch.setattr(os, "fork", fork)
    looking = check(lambda _params, _context: Measurement())
    async with running(looking) as runs:
        run = (await runs.run(looking)).run
        assert psutil.Process(runs.launcher.pid).is_running()
    assert [finding.code for finding in run.findings] == ["run.exited"]
    assert "cannot fork" in run.findings[0].summary


async def test_without_its_launcher_the_daemon_fails_loudly(running, check):
    """When the launcher is killed, its children die, their runs end as UNKNOWN, and nothing can be started any more."""

    def measure(_params, context):
        context.progress("busy")
        time.sleep(600)

    busy = check(measure)
    async with running(busy) as runs:
        await runs.start(busy)
        await runs.until("busy")
        below = everything_below(psutil.Process(runs.launcher.pid))
        os.kill(runs.launcher.pid, signal.SIGKILL)
        ended = await runs.ended()
        assert ended.run.verdict is Verdict.UNKNOWN
        assert "launcher" in ended.run.findings[0].summary
        assert psutil.wait_procs(below, timeout=5)[1] == []
        with pytest.raises(LauncherLost):
            await runs.start(busy)


async def test_a_hundred_children_at_once(launched):
    """Requests and answers do not get lost when many children come and go at the same time."""
    launcher = launched()

    async def one():
        spawned = await launcher.spawn(child.RUN, memory_limit_bytes=None)
        spawned.kill()
        ending = await spawned.gone()
        return ending.status

    try:
        assert await asyncio.gather(*(one() for _ in range(100))) == [signal.SIGKILL] * 100
    finally:
        launcher.detach()
    assert psutil.Process(launcher.pid).children() == []


async def test_who_waits_for_the_end_of_a_child_does_not_wait_forever(launched):
    """Once nobody listens to the launcher any more, no end is told and nothing new can be started."""
    launcher = launched()
    spawned = await launcher.spawn(child.RUN, memory_limit_bytes=None)
    waiting = asyncio.create_task(spawned.gone())
    await asyncio.sleep(0)
    launcher.detach()
    async with asyncio.timeout(30):
        assert (await waiting).status is None
    with pytest.raises(LauncherLost):
        await launcher.spawn(child.RUN, memory_limit_bytes=None)


def test_closing_waits_until_the_launcher_is_gone():
    """After close() there is no launcher process, not even a dead one."""
    with launch(Plugins(Config(Settings())), {}) as launcher:
        assert psutil.pid_exists(launcher.pid)
    assert not psutil.pid_exists(launcher.pid)
