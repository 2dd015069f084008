"""Each of these runs real processes: a run ends as it should, whatever its check does, and leaves nothing behind."""

import asyncio
import contextlib
import ctypes
import faulthandler
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from muster.check import Params, Scope, Skip
from muster.model import Device, Finding, Json, Measurement, Severity, Verdict
from muster.references import Reference, judge_value
from muster_agent.runs import forking, process, runner


class Size(Params):
    n: int = 3


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def nothing(_params, _context):
    return Measurement()


async def test_a_run_measures_judges_and_reports(running, check):
    """The Run holds metrics, facts, params and what judge found with the reference that applies to the facts."""

    def measure(params, context):
        return Measurement(metrics={"speed": params.n, "odd": float("nan")}, facts={"node": context.node})

    def judge(measurement, references):
        return judge_value(measurement.metrics["speed"], references.get("speed"), code="throwaway.slow")

    rows = tuple(
        Reference(check="throwaway", metric="speed", fail_below=10, source="here", when={"node": node})
        for node in ("node-1", "elsewhere")
    )
    device = Device(index=0, uuid="GPU-0", model="pretended", simulated=True)
    slow = check(measure, judge=judge, params=Size)
    async with running(slow, references=rows, devices=(device,)) as runs:
        ended = await runs.run(slow, run="run-7", cause="me")
    run = ended.run
    assert (run.id, run.node, run.check, run.cause, run.simulated) == ("run-7", "node-1", "throwaway", "me", True)
    assert run.verdict is Verdict.FAIL
    assert [finding.code for finding in run.findings] == ["throwaway.slow"]
    assert run.metrics == {"speed": 3, "odd": None}
    assert run.params == {"n": 3}
    assert [rank.rank for rank in ended.ranks] == [0]


async def test_what_no_reference_judges_is_said(running, check):
    """A note that names what should be judged, was measured and has no reference; nothing is made up for it."""

    def measure(_params, _context):
        return Measurement(metrics={"speed": 1.0, "each": [None, 2.0], "known": 3.0, "empty": [None], "other": 4.0})

    row = Reference(check="throwaway", metric="known", fail_below=1, source="here")
    judged = ("speed", "each", "known", "empty", "absent")
    silent = check(measure, judged=judged)
    async with running(silent, references=(row,)) as runs:
        run = (await runs.run(silent)).run
    (finding,) = run.findings
    assert (run.verdict, finding.code, finding.severity) == (Verdict.PASS, "run.not_judged", Severity.INFO)
    assert finding.evidence == {"metrics": ["speed", "each"]}


async def test_a_group_says_it_once_for_each_node(running, check, places):
    """Not every rank on the node names what has no reference."""

    def measure(_params, context):
        context.rendezvous()
        return Measurement(metrics={"speed": 1.0})

    group = check(measure, scope=Scope.GROUP, judged=("speed",))
    async with running(group) as runs:
        run = await runs.start(group, places=places(2))
        await runs.until("ready")
        runs.runner.go(run)
        ended = await runs.ended()
    assert [finding.code for finding in ended.run.findings] == ["run.not_judged"]


async def test_a_skipped_run_has_nothing_to_judge(running, check):
    """Where nothing was measured, nothing is missing."""

    def measure(_params, _context):
        raise Skip("nothing here")

    skipping = check(measure, judged=("speed",))
    async with running(skipping) as runs:
        run = (await runs.run(skipping)).run
    assert [finding.code for finding in run.findings] == ["run.skipped"]


async def test_the_context_tells_about_the_surroundings(running, check):
    """A check sees node, devices, expected GPUs, its deadline and an empty scratch directory that is removed."""

    def measure(_params, context):
        (context.scratch / "file").write_text("x")
        context.progress("half way")
        facts: Json = {
            "scratch": str(context.scratch),
            "files": [path.name for path in context.scratch.iterdir()],
            "around": [context.node, len(context.devices), context.expected_gpus, context.timeout_s],
            "stdin": str(Path("/proc/self/fd/0").readlink()),
        }
        return Measurement(facts=facts)

    looking = check(measure)
    device = Device(index=0, uuid="GPU-0", model="pretended")
    async with running(looking, devices=(device,), expected_gpus=2) as runs:
        ended = await runs.run(looking, timeout_s=7.0)
    assert ended.run.verdict is Verdict.PASS
    assert ended.run.facts["around"] == ["node-1", 1, 2, 7.0]
    assert ended.run.facts["files"] == ["file"]
    assert ended.run.facts["stdin"] == "/dev/null"
    assert not Path(ended.run.facts["scratch"]).parent.exists()
    assert runs.progress == ["half way"]


@pytest.mark.parametrize("resident", [False, True])
async def test_without_room_for_a_scratch_directory_the_run_fails_and_nothing_else(running, check, resident):
    """As on a disk that is full; with room again, the next run is as good as any."""
    looking = check(lambda _params, _context: Measurement(), resident=resident)
    async with running(looking) as runs:
        runs.launcher.scratch.rmdir()
        runs.launcher.scratch.write_text("in the way")
        assert [finding.code for finding in (await runs.run(looking)).run.findings] == ["run.raised"]
        runs.launcher.scratch.unlink()
        assert (await runs.run(looking)).run.verdict is Verdict.PASS


async def test_plugins_prepare_the_run_and_one_that_cannot_is_named(running, check):
    """muster_prepare_run is called in the child; when it raises, the run measures but is UNKNOWN."""

    def prepare(context):
        os.environ["PREPARED"] = context.node
        raise ValueError("no such thing")

    looking = check(lambda _params, _context: Measurement(facts={"prepared": os.environ["PREPARED"]}))
    async with running(looking, hooks={"muster_prepare_run": prepare}) as runs:
        ended = await runs.run(looking)
    assert ended.run.facts == {"prepared": "node-1"}
    assert ended.run.verdict is Verdict.UNKNOWN
    assert [finding.code for finding in ended.run.findings] == ["plugins.failed"]
    assert "no such thing" in ended.run.findings[0].summary
    assert "PREPARED" not in os.environ


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
        assert not any(alive(pid) for pid in children)
        assert runs.runner.own_pids() == frozenset()
    assert ended.verdict is Verdict.SKIPPED
    assert [(finding.code, finding.summary) for finding in ended.findings] == [
        ("run.preempted", "stopped: work arrived")
    ]


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
        assert not any(alive(pid) for pid in run.facts["pids"])
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
        assert not alive(escaped)
        assert alive(int(runs.progress[0]))
        runs.runner.stop("steady", "enough")
        await runs.ended()
        assert not alive(int(runs.progress[0]))


async def test_a_process_that_cannot_be_killed_is_given_up_and_named(running, check, monkeypatch):
    """When SIGKILL does not help for PATIENCE_S, the run ends as run.unkillable and the next one works."""
    real_kill = process.kill
    monkeypatch.setattr(forking, "PATIENCE_S", 0.3)
    monkeypatch.setattr(process, "kill", lambda _pids: None)  # in the launcher: as if the processes were in state D
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
    monkeypatch.setattr(process, "out_of_memory_kills", lambda: next(counts))
    dying = check(kills_itself)
    async with running(dying) as runs:
        run = (await runs.run(dying)).run
    assert [finding.code for finding in run.findings] == ["run.out_of_memory"]


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


def meets(_params, context):
    meeting = context.rendezvous()
    names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT GLOO_SOCKET_IFNAME"
    variables = " ".join(os.environ[name] for name in names.split())
    listens = meeting.listen_fd is not None
    return Measurement(metrics={"rank": meeting.rank}, facts={"listens": listens, "variables": variables})


async def test_the_ranks_of_a_run_share_its_memory(running, check, places):
    """Each gets an equal part of the limit, so that a hostile peer cannot make all of them together exceed it."""
    group = check(
        lambda _params, _context: Measurement(facts={"data": [*resource.getrlimit(resource.RLIMIT_DATA)]}),
        scope=Scope.GROUP,
    )
    async with running(group, memory_limit_bytes=3 << 30) as runs:
        ended = await runs.run(group, places=places(3), group="group-1")
        assert [rank.facts["data"] for rank in ended.ranks] == [[1 << 30, 1 << 30]] * 3
        alone = await runs.run(group)
        assert alone.run.facts["data"] == [3 << 30, 3 << 30]


async def test_the_ranks_of_a_group_wait_for_each_other_and_for_go(running, check, places):
    """RanksReady comes when every rank waits, nothing ends before go, and rank 0 alone has the listening socket."""
    group = check(meets, scope=Scope.GROUP)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    async with running(group) as runs:
        run = await runs.start(group, listener=listener, places=places(2, port), group="group-1")
        assert listener.fileno() == -1
        await runs.until("ready")
        assert runs.events.empty()
        runs.runner.go(run)
        ended = await runs.ended()
    assert ended.run.verdict is Verdict.PASS
    assert (ended.run.group, ended.run.metrics) == ("group-1", {"rank": 0})
    assert [rank.facts["listens"] for rank in ended.ranks] == [True, False]
    assert ended.ranks[1].facts["variables"] == f"1 2 1 2 127.0.0.1 {port} lo"


async def test_a_group_run_is_as_bad_as_its_worst_rank(running, check, places):
    """Findings of all ranks are joined and the worst verdict stands; that a rank was killed is a finding."""

    def measure(_params, context):
        if context.rendezvous().rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return Measurement()

    def judge(_measurement, _references):
        return [Finding(code="throwaway.note", summary="fine", severity=Severity.INFO)]

    group = check(measure, scope=Scope.GROUP, judge=judge)
    async with running(group) as runs:
        run = await runs.start(group, places=places(2))
        runs.runner.go(run)
        ended = await runs.ended()
    assert ended.run.verdict is Verdict.UNKNOWN
    assert [finding.code for finding in ended.run.findings] == ["throwaway.note", "run.killed"]
    assert [rank.verdict for rank in ended.ranks] == [Verdict.PASS, Verdict.UNKNOWN]


@pytest.mark.parametrize(
    ("go", "world_size"),
    [(True, 4), (True, 1), (False, 4)],
    ids=["after the meeting", "on one node", "before the meeting"],
)
async def test_a_rank_that_breaks_after_the_meeting_names_its_group(running, check, places, go, world_size):
    """Ranks of other nodes may be the cause. Before the meeting, or on one node, only this node can be."""

    def measure(_params, context):
        if go:
            context.rendezvous()
        os.kill(os.getpid(), signal.SIGKILL)

    group = check(measure, scope=Scope.GROUP)
    async with running(group) as runs:
        run = await runs.start(group, places=[replace(place, world_size=world_size) for place in places(1)])
        if go:
            runs.runner.go(run)
        ended = await runs.ended()
    (finding,) = ended.run.findings
    met = {"rank": 0, "world_size": 4, "rank_0": "127.0.0.1:1"}
    assert (finding.code, finding.evidence.get("met")) == ("run.killed", met if go and world_size > 1 else None)


async def test_the_timeout_of_a_group_starts_when_its_ranks_may_meet(running, check, places):
    """A rank that waits for a member that is never ready has not hung; the timeout applies after `go`."""

    def measure(_params, context):
        context.rendezvous()
        time.sleep(60)

    group = check(measure, scope=Scope.GROUP)
    async with running(group) as runs:
        run = await runs.start(group, places=places(1), group="g", timeout_s=0.3)
        await runs.until("ready")
        await asyncio.sleep(0.6)
        assert runs.events.empty()
        runs.runner.go(run)
        ended = await runs.ended()
    assert [finding.code for finding in ended.run.findings] == ["run.timeout"]


async def test_a_rank_that_breaks_before_the_rendezvous_ends_the_run(running, check, places):
    """The ranks that wait for one that will never come are stopped at once, and it is told whom they waited for."""

    def measure(_params, context):
        if os.environ["RANK"] == "1":
            raise RuntimeError("no device")
        context.rendezvous()
        return Measurement()

    group = check(measure, scope=Scope.GROUP)
    async with running(group) as runs:
        ended = await runs.run(group, places=places(2))
    assert ended.run.verdict is Verdict.UNKNOWN
    assert [finding.code for finding in ended.run.findings] == ["run.preempted", "run.raised"]
    assert "rank 1" in ended.run.findings[0].summary


async def test_a_stopped_group_is_skipped_even_where_a_rank_had_finished(running, check, places):
    """A stopped run claims nothing: what some of its ranks had measured already does not count."""

    def measure(_params, context):
        meeting = context.rendezvous()
        context.progress(f"rank {meeting.rank}")
        if meeting.rank == 1:
            time.sleep(60)
        return Measurement()

    group = check(measure, scope=Scope.GROUP)
    async with running(group) as runs:
        run = await runs.start(group, places=places(2))
        runs.runner.go(run)
        await runs.until("rank 0")
        await runs.until("rank 1")
        runs.runner.stop(run, "enough")
        ended = await runs.ended()
    assert ended.run.verdict is Verdict.SKIPPED
    assert {rank.verdict for rank in ended.ranks} == {Verdict.SKIPPED}


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
    monkeypatch.setattr(forking, "PATIENCE_S", 1.0)
    monkeypatch.setattr(process, "kill", lambda _pids: None)  # in the launcher: as if the processes were in state D
    monkeypatch.setattr(runner, "CLOSE_S", 0.1)
    hanging = check(hangs)
    async with running(hanging) as runs:
        await runs.start(hanging)
        begun = time.monotonic()
        await runs.runner.stop_all()
        await runs.runner.close()
        assert time.monotonic() - begun < 1.0


def all_reduce(_params, context):
    from datetime import timedelta  # noqa: PLC0415 -- as in a plugin, only the child imports what torch needs

    import torch  # noqa: PLC0415 -- see above
    from torch import distributed  # noqa: PLC0415 -- see above

    meeting = context.rendezvous()
    store = distributed.TCPStore(  # type: ignore[attr-defined] # torch leaves it out of __all__
        meeting.master_addr,
        meeting.master_port,
        meeting.world_size,
        is_master=meeting.rank == 0,
        master_listen_fd=meeting.listen_fd,
        timeout=timedelta(seconds=20),
        wait_for_workers=False,
        use_libuv=False,  # Debian's torch has none
    )
    rank, size, timeout = meeting.rank, meeting.world_size, timedelta(seconds=20)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=timeout)
    numbers = torch.full((4,), float(rank + 1))
    distributed.all_reduce(numbers)
    distributed.barrier()
    distributed.destroy_process_group()
    return Measurement(metrics={"sum": numbers.sum().item()})


@pytest.mark.torch
async def test_torch_meets_on_the_socket_that_was_handed_over(running, check, places):
    """Two gloo ranks reduce a tensor over the listening socket that rank 0 got from the daemon."""
    group = check(all_reduce, scope=Scope.GROUP, timeout_s=60.0)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    async with running(group) as runs:
        run = await runs.start(group, listener=listener, places=places(2, port))
        await runs.until("ready")
        runs.runner.go(run)
        ended = await runs.ended()
    assert ended.run.verdict is Verdict.PASS, ended.run.findings
    assert [rank.metrics for rank in ended.ranks] == [{"sum": 12.0}, {"sum": 12.0}]
