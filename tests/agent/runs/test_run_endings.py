"""How a run ends: by a crash, an error, its deadline, a stop or the end of the agent. Each test runs real processes."""

import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from tests.alive import is_alive

from muster.check import Skip
from muster.model import Measurement, Verdict
from muster_agent.runs import launcher_process, process_control, runner


def nothing(_params, _context):
    return Measurement()


def raises(_params, _context):
    raise RuntimeError("the driver said no")


def skips(_params, _context):
    raise Skip("no GPU here")


def hangs(_params, _context):
    print("about to hang", flush=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        time.sleep(60)


def exits(_params, _context):
    print("leaving", file=sys.stderr)
    sys.exit(3)


def exits_hard(_params, _context):
    os._exit(4)


def write_to_daemon(context, text: bytes) -> None:
    """What a check that looks through its own descriptors could do."""
    context._line._control.sendall(text)


def talks_nonsense(_params, context):
    write_to_daemon(context, b"what\n")
    time.sleep(60)


def talks_without_end(_params, context):
    piece = b"x" * 65536
    while True:
        write_to_daemon(context, piece)


def talks_another_language(_params, context):
    write_to_daemon(context, b'{"result": {"rank": "first"}}\n')
    time.sleep(60)


def talks_off_topic(_params, context):
    write_to_daemon(context, b'{"weather": "fine"}\n')
    time.sleep(60)


def allocates(_params, _context):
    held = []
    while True:
        held.append(bytearray(16 << 20))


def kills_itself(_params, _context):
    print("goodbye", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def crashes(_params, _context):
    faulthandler.disable()  # pytest's would write to the terminal
    ctypes.string_at(0)


def returns_nothing(_params, _context):
    return None


OUTCOMES = [
    (raises, "run.raised", Verdict.UNKNOWN, "the driver said no"),
    (skips, "run.skipped", Verdict.SKIPPED, "no GPU here"),
    (exits, "run.exited", Verdict.UNKNOWN, "leaving"),
    (exits_hard, "run.exited", Verdict.UNKNOWN, "code 4"),
    (talks_nonsense, "run.garbage", Verdict.UNKNOWN, "not JSON"),
    (talks_without_end, "run.garbage", Verdict.UNKNOWN, "1048576 bytes"),
    (talks_another_language, "run.garbage", Verdict.UNKNOWN, "rank: "),
    (talks_off_topic, "run.garbage", Verdict.UNKNOWN, "protocol: "),
    (allocates, "run.out_of_memory", Verdict.UNKNOWN, "MemoryError"),
    (kills_itself, "run.killed", Verdict.UNKNOWN, "goodbye"),
    (crashes, "run.killed", Verdict.UNKNOWN, "SIGSEGV"),
    (returns_nothing, "run.raised", Verdict.UNKNOWN, "NoneType"),
]


@pytest.mark.parametrize("resident", [False, True], ids=["own process", "resident"])
async def test_whatever_a_check_does_becomes_a_finding_and_the_runner_goes_on(running, check, monkeypatch, resident):
    """Every kind of misbehaviour ends as its finding with evidence, nothing is left, and the next run works."""
    monkeypatch.setattr("muster_agent.runs.resident.FIRST_PAUSE_S", 0.0)
    bad = [check(measure, name=measure.__name__, resident=resident) for measure, *_ in OUTCOMES]
    good = check(nothing, name="good", resident=resident)
    async with running(*bad, good, memory_limit_bytes=process_size() + (256 << 20)) as runs:
        for one, (_, code, verdict, text) in zip(bad, OUTCOMES, strict=True):
            run = (await runs.run(one)).run
            assert ([finding.code for finding in run.findings], run.verdict) == ([code], verdict), run
            assert text in run.findings[0].model_dump_json()
            assert (await runs.run(good)).run.verdict is Verdict.PASS
        await runs.runner.close()
        assert psutil.Process(runs.launcher.pid).children(recursive=True) == []


def process_size() -> int:
    return psutil.Process().memory_info().data


async def test_a_run_that_does_not_end_is_killed_at_its_deadline(running, check):
    """A run that hangs with every signal blocked ends as run.timeout, with its last words."""
    hanging = check(hangs)
    async with running(hanging) as runs:
        begun = time.monotonic()
        run = (await runs.run(hanging, timeout_s=0.5)).run
        assert time.monotonic() - begun < 1.5
    assert [finding.code for finding in run.findings] == ["run.timeout"]
    assert "about to hang" in run.findings[0].evidence["output"]
    assert run.verdict is Verdict.UNKNOWN


async def test_stop_frees_everything_within_a_second(running, check):
    """A stopped run, its children and its escaped children are gone within a second; it is SKIPPED, with the reason."""
    children: list[int] = []

    def measure(_params, context):
        ordinary = subprocess.Popen(["sleep", "60"])
        escaped = subprocess.Popen(["setsid", "--fork", "sh", "-c", "echo $$; exec sleep 60"], stdout=subprocess.PIPE)
        assert escaped.stdout
        context.progress(f"{os.getpid()} {ordinary.pid} {int(escaped.stdout.readline())}")
        time.sleep(60)

    busy = check(measure)
    async with running(busy) as runs:
        run = await runs.start(busy)
        while not runs.progress:
            runs.progress.append((await runs.events.get()).text)
        children = [int(pid) for pid in runs.progress[0].split()]
        assert set(children) <= runs.runner.own_pids()
        begun = time.monotonic()
        runs.runner.stop("no-such-run", "nobody cares")
        runs.runner.stop(run, "work arrived")
        ended = (await runs.ended()).run
        assert time.monotonic() - begun < 1.0
        assert not any(is_alive(pid) for pid in children)
        assert runs.runner.own_pids() == frozenset()
    assert ended.verdict is Verdict.SKIPPED
    assert [(finding.code, finding.summary) for finding in ended.findings] == [
        ("run.preempted", "stopped: work arrived")
    ]


async def test_a_process_that_cannot_be_killed_is_given_up_and_named(running, check, monkeypatch):
    """When SIGKILL does not help for PATIENCE_S, the run ends as run.unkillable and the next one works."""
    real_kill = process_control.kill
    monkeypatch.setattr(launcher_process, "PATIENCE_S", 0.3)
    monkeypatch.setattr(process_control, "kill", lambda _pids: None)  # as if they were in state D
    hanging, good = check(hangs, name="hanging"), check(nothing, name="good")
    async with running(hanging, good) as runs:
        run = (await runs.run(hanging, timeout_s=0.3)).run
        assert [finding.code for finding in run.findings] == ["run.timeout", "run.unkillable"]
        assert run.verdict is Verdict.UNKNOWN
        assert (await runs.run(good)).run.verdict is Verdict.PASS
        real_kill(run.findings[1].evidence["pids"])


async def test_sigkill_while_memory_ran_out_is_out_of_memory(running, check, monkeypatch):
    """A SIGKILL that nobody here sent counts as the kernel's when its count of such kills has risen."""
    counts = iter([4, 5])
    monkeypatch.setattr(process_control, "out_of_memory_kills", lambda: next(counts))
    dying = check(kills_itself)
    async with running(dying) as runs:
        run = (await runs.run(dying)).run
    assert [finding.code for finding in run.findings] == ["run.out_of_memory"]


async def test_close_kills_everything_within_two_seconds(running, check):
    """What still runs when the agent stops is SKIPPED, and no process is left."""
    hanging, resident = check(hangs), check(hangs, name="resident", resident=True)
    async with running(hanging, resident) as runs:
        await runs.start(hanging)
        await runs.start(resident)
        begun = time.monotonic()
        await runs.runner.close()
        assert time.monotonic() - begun < 2.0
        assert {(await runs.ended()).run.verdict, (await runs.ended()).run.verdict} == {Verdict.SKIPPED}
        assert psutil.Process(runs.launcher.pid).children(recursive=True) == []


async def test_a_rank_that_cannot_be_killed_does_not_keep_the_agent_from_stopping(running, check, monkeypatch):
    """Stopping and closing, which follow each other, each wait for it as long as they may and no longer."""
    monkeypatch.setattr(launcher_process, "PATIENCE_S", 1.0)
    monkeypatch.setattr(process_control, "kill", lambda _pids: None)  # as if they were in state D
    monkeypatch.setattr(runner, "CLOSE_S", 0.1)
    hanging = check(hangs)
    async with running(hanging) as runs:
        await runs.start(hanging)
        begun = time.monotonic()
        await runs.runner.stop_all()
        await runs.runner.close()
        assert time.monotonic() - begun < 1.0
