"""The resident child, in a real process: what it answers, and what happens when it does not."""

import asyncio
import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from muster.check import Idleness, IdleProbe, Reservation
from muster.model import Device, Inventory, MachineType, MachineTypeSource, Measurement, Verdict
from muster_agent.runs import child, probes_and_reservations, process_control
from muster_agent.runs import resident as resident_module
from muster_agent.runs.resident import ResidentChild

GPU = Device(index=0, uuid="GPU-0", model="pretended")


def raising(_own: frozenset[int]) -> Idleness:
    raise RuntimeError("cannot tell")


def sleeping(_own: frozenset[int]) -> Idleness:
    time.sleep(60)
    return Idleness.IDLE


def saying(*answers: Any) -> list[IdleProbe]:
    return [IdleProbe(name=str(answer), probe=partial(constant, answer)) for answer in answers]


def constant(answer: Any, _own: frozenset[int]) -> Any:
    return answer


async def pid_of(resident: ResidentChild) -> int:
    """The child's process id. The launcher may report it later than the child answers its first question."""
    async with asyncio.timeout(30):
        while resident.pid is None:
            await asyncio.sleep(0.01)
    return resident.pid


IDLE, BUSY, UNKNOWN = Idleness.IDLE, Idleness.BUSY, Idleness.UNKNOWN

IDLENESS = [
    ([], IDLE, ""),
    (saying(IDLE), IDLE, ""),
    (saying(IDLE, BUSY, UNKNOWN), BUSY, "BUSY"),
    (saying(IDLE, UNKNOWN), UNKNOWN, "UNKNOWN"),
    ([*saying(IDLE), IdleProbe(name="raises", probe=raising)], UNKNOWN, "raises: cannot tell"),
    ([*saying(IDLE), IdleProbe(name="late", probe=sleeping)], UNKNOWN, "late: no answer within 3 s"),
    ([*saying(BUSY), IdleProbe(name="late", probe=sleeping)], BUSY, "BUSY"),
    (saying(IDLE, "resting"), UNKNOWN, "resting: 'resting' is not a valid Idleness"),
]


@pytest.mark.parametrize(("probes", "expected", "why"), IDLENESS)
async def test_idleness_is_what_all_probes_say(running, monkeypatch, probes, expected, why):
    """IDLE only if every probe says so, BUSY if one does; a probe that raises or is late makes it UNKNOWN."""
    monkeypatch.setattr(resident_module, "PROBE_TIMEOUT_S", 30.0)
    monkeypatch.setattr(probes_and_reservations, "ANSWER_WITHIN_S", 3.0)  # a busy machine may need 0.9 s to begin
    async with running(hooks={"muster_idle_probes": lambda: probes}) as runs:
        seen = await runs.resident.idleness(frozenset(), afresh=True)
        assert (seen.idleness, seen.why) == (expected, why)
        assert await pid_of(runs.resident)


async def test_why_idleness_is_unknown_is_logged_once_as_long_as_it_stays_so(running, capsys):
    """Twice a second would be no news; when it comes back after an answer it is."""
    reasons = iter(["no answer", "no answer", "", "no answer"])

    def probe(_own: frozenset[int]) -> Idleness:
        if reason := next(reasons):
            raise RuntimeError(reason)
        return IDLE

    async with running(hooks={"muster_idle_probes": lambda: [IdleProbe(name="slurm", probe=probe)]}) as runs:
        for _ in range(4):
            await runs.resident.idleness(frozenset(), afresh=True)
    assert capsys.readouterr().out.count("slurm: no answer") == 2


async def test_probes_learn_which_processes_are_our_own(running):
    """A probe gets the process ids of current runs and of the resident child itself."""

    def probe(own: frozenset[int]) -> Idleness:
        return IDLE if own == {7, os.getpid()} else BUSY

    async with running(hooks={"muster_idle_probes": lambda: [IdleProbe(name="own", probe=probe)]}) as runs:
        await runs.resident.inventory()
        assert (await runs.resident.idleness(frozenset({7}), afresh=True)).idleness is IDLE


async def test_a_child_that_is_kept_only_while_it_is_asked_comes_and_goes(running, monkeypatch):
    """An agent at rest has no memory for it; the next question starts it again, without a pause."""
    monkeypatch.setattr(resident_module, "LINGER_S", 0.05)
    async with running() as runs:
        keeping = asyncio.create_task(runs.resident.keep_only_while_asked())
        assert (await runs.resident.idleness(frozenset(), afresh=True)).idleness is IDLE
        assert await pid_of(runs.resident)
        async with asyncio.timeout(30):
            while runs.resident.pid is not None:
                await asyncio.sleep(0.01)
        assert (await runs.resident.idleness(frozenset(), afresh=True)).idleness is IDLE
        keeping.cancel()


def reserving(book: Path, nap_s: float = 0.0) -> Reservation:
    """A reservation that is the file `book`, and takes its time to be made."""

    def reserve(reason: str) -> None:
        book.write_text(f"{os.getpid()} {reason}")
        time.sleep(nap_s)

    return Reservation(name="book", reserve=reserve, release=lambda: book.unlink(missing_ok=True))


async def test_reservations_are_made_and_given_back(running, tmp_path):
    """By the child, which has what that takes."""
    book = tmp_path / "book"
    async with running(hooks={"muster_reservations": lambda: [reserving(book)]}) as runs:
        assert runs.launcher.reserves
        assert await runs.resident.reserve("a sweep") is None
        assert book.read_text() == f"{await pid_of(runs.resident)} a sweep"
        assert await runs.resident.give_back() is None
        assert not book.exists()


async def test_a_reservation_that_does_not_answer_may_have_been_made(running, tmp_path, monkeypatch):
    """So it counts as not made, and can be given back all the same, by the child that comes after."""
    monkeypatch.setattr(resident_module, "RESERVATION_TIMEOUT_S", 0.5)
    monkeypatch.setattr(resident_module, "FIRST_PAUSE_S", 0.0)
    book = tmp_path / "book"
    async with running(hooks={"muster_reservations": lambda: [reserving(book, nap_s=60)]}) as runs:
        assert "did not answer within 0.5 s" in (await runs.resident.reserve("a sweep") or "")
        assert book.exists()
        assert await runs.resident.give_back() is None
        assert not book.exists()


async def test_without_reservations_there_is_nothing_to_make(running):
    """Whoever decides is told, and saves the question."""
    async with running() as runs:
        assert not runs.launcher.reserves


async def test_the_inventory_comes_from_the_first_plugin_that_can_tell(running):
    """What muster_inventory gives reaches the daemon."""
    inventory = Inventory(devices=(GPU,), software={"driver": "1"})
    async with running(hooks={"muster_inventory": lambda: inventory}) as runs:
        assert await runs.resident.inventory() == inventory


async def test_all_plugins_say_what_they_know_of_the_machine_type(running):
    """The one with the inventory, too; one that raises takes nothing from the others."""
    cloud = MachineType(name="a4-highgpu-8g", source=MachineTypeSource.CLOUD, said_by="Google Cloud")
    inventory = Inventory(devices=(GPU,), machine_type="ours")
    hooks = {"muster_inventory": lambda: inventory, "muster_machine_types": lambda: iter([cloud])}
    async with running(hooks=hooks) as runs:
        found = await runs.resident.inventory()
    own = MachineType(name="ours", source=MachineTypeSource.PLUGIN, said_by="throwaway")
    assert (found.devices, found.machine_types) == ((GPU,), (cloud, own))
    async with running(hooks={"muster_inventory": lambda: inventory, "muster_machine_types": broken}) as runs:
        assert (await runs.resident.inventory()).machine_types == (own,)


async def test_labels_of_plugins_come_with_the_inventory(running):
    """What the plugin with the inventory says has precedence, and labels that Kubernetes would refuse are left out."""
    inventory = Inventory(devices=(GPU,), labels={"a": "1"})
    hooks = {"muster_inventory": lambda: inventory, "muster_labels": lambda: {"a": "2", "b": "3"}}
    async with running(hooks=hooks) as runs:
        assert (await runs.resident.inventory()).labels == {"a": "1", "b": "3"}
    async with running(hooks={**hooks, "muster_labels": lambda: {"b": "<3>"}}) as runs:
        assert await runs.resident.inventory() == inventory


def broken() -> Inventory:
    raise RuntimeError("no driver")


def gone() -> Inventory:
    os._exit(3)


@pytest.mark.parametrize(("hook", "known"), [(broken, Inventory()), (lambda: None, Inventory()), (gone, None)])
async def test_without_an_inventory_there_are_no_devices(running, hook, known):
    """A hook that raises or cannot tell gives the empty inventory, one that takes the process with it no answer."""
    async with running(hooks={"muster_inventory": hook}) as runs:
        assert await runs.resident.inventory() == known


def pid(_params, _context):
    return Measurement(facts={"pid": os.getpid()})


def hangs(_params, _context):
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    print("calling the driver", flush=True)
    time.sleep(60)


async def test_resident_checks_share_one_process(running, check):
    """Run after run is carried out by the same child, with progress as usual."""

    def measure(_params, context):
        context.progress("there")
        return Measurement(facts={"pid": os.getpid()})

    cheap = check(measure, resident=True)
    async with running(cheap) as runs:
        pids = {(await runs.run(cheap)).run.facts["pid"] for _ in range(3)}
        assert pids == {await pid_of(runs.resident)}
    assert runs.progress == ["there"] * 3


class Bell:
    """A watch that returns whenever something is written into a pipe."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def watch(self) -> None:
        os.read(self._read, 1)

    def ring(self) -> None:
        os.write(self._write, b"!")


def deaf() -> None:
    raise RuntimeError("no events here")


async def test_a_watch_that_fires_is_told_between_and_during_questions(running, check, monkeypatch):
    """The child tells of it at once, also while a measurement goes on, and answers as ever."""
    monkeypatch.setattr(child, "WATCH_PAUSE_S", 0.0)
    bell = Bell()
    alerts: asyncio.Queue[str] = asyncio.Queue()
    seen = check(pid, name="seen", resident=True, watch=bell.watch)
    async with running(seen, watched=("seen",), alert=alerts.put_nowait) as runs:
        assert (await runs.run(seen)).run.verdict is Verdict.PASS
        for _ in range(3):
            bell.ring()
            async with asyncio.timeout(30):
                assert await alerts.get() == "seen"
        assert (await runs.run(seen)).run.facts["pid"] == await pid_of(runs.resident)


async def test_a_watch_that_fires_all_the_time_is_told_now_and_then(running, check, monkeypatch):
    """It rests each time, so that a storm of events occupies neither the child nor the agent."""
    monkeypatch.setattr(child, "WATCH_PAUSE_S", 3600.0)
    alerts: asyncio.Queue[str] = asyncio.Queue()
    stormy = check(pid, name="stormy", resident=True, watch=lambda: None)
    async with running(stormy, watched=("stormy",), alert=alerts.put_nowait) as runs:
        for _ in range(3):
            assert (await runs.run(stormy)).run.verdict is Verdict.PASS
        async with asyncio.timeout(30):
            assert await alerts.get() == "stormy"
        assert alerts.empty()


async def test_a_watch_that_raises_is_logged_and_the_check_goes_on(running, check, capsys):
    """Without a watch the check still has its cadence."""
    broken_watch = check(pid, name="seen", resident=True, watch=deaf)
    async with running(broken_watch, watched=("seen",)) as runs:
        assert (await runs.run(broken_watch)).run.verdict is Verdict.PASS
        assert (await runs.run(broken_watch)).run.verdict is Verdict.PASS
        async with asyncio.timeout(30):
            while "watch_failed" not in (told := capsys.readouterr().out):
                await asyncio.sleep(0.01)
    assert "no events here" in told


async def test_a_hang_is_a_finding_and_the_child_is_replaced_after_a_pause(running, check, monkeypatch):
    """No answer by the deadline: run.hung with the last output, and at once until the pause is over; then it starts."""
    monkeypatch.setattr(resident_module, "FIRST_PAUSE_S", 0.3)
    hanging, cheap = check(hangs, name="hanging", resident=True), check(pid, name="cheap", resident=True)
    async with running(hanging, cheap) as runs:
        before = (await runs.run(cheap)).run.facts["pid"]
        run = (await runs.run(hanging, timeout_s=0.3)).run
        assert ([finding.code for finding in run.findings], run.verdict) == (["run.hung"], Verdict.UNKNOWN)
        assert "calling the driver" in run.findings[0].evidence["output"]
        assert not psutil.pid_exists(before)
        at_once = (await runs.run(cheap)).run
        assert [finding.code for finding in at_once.findings] == ["run.hung"]
        assert (await runs.resident.idleness(frozenset(), afresh=True)).idleness is UNKNOWN
        await asyncio.sleep(0.3)
        after = (await runs.run(cheap)).run.facts["pid"]
        assert after != before


def test_the_pause_doubles_with_each_failure_up_to_a_minute():
    """A child that fails again and again is started ever less often."""
    assert [resident_module.pause_s(failures) for failures in (0, 1, 2, 5, 6, 1_000_000)] == [1, 2, 4, 32, 60, 60]


async def test_an_answer_ends_a_series_of_failures(running, check, monkeypatch):
    """Failures are counted in a row: after an answer the next pause is the first again."""
    failed_before: list[int] = []

    def no_pause(failures: int) -> float:
        failed_before.append(failures)
        return 0.0

    monkeypatch.setattr(resident_module, "pause_s", no_pause)
    dying = check(lambda _params, _context: os._exit(1), name="dying", resident=True)
    cheap = check(pid, name="cheap", resident=True)
    async with running(dying, cheap) as runs:
        for one in (dying, dying, dying, cheap, dying):
            await runs.run(one)
    assert failed_before == [0, 1, 2, 0]


async def test_a_child_that_cannot_be_killed_is_said_so_and_replaced(running, check, monkeypatch):
    """A child in an uninterruptible call stays; evidence names it and a new child takes over."""
    monkeypatch.setattr(resident_module, "FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr("muster_agent.runs.launcher_process.PATIENCE_S", 0.3)
    real_kill = process_control.kill
    monkeypatch.setattr("muster_agent.runs.process_control.kill", lambda _pids: None)
    hanging, cheap = check(hangs, name="hanging", resident=True), check(pid, name="cheap", resident=True)
    async with running(hanging, cheap) as runs:
        stuck = (await runs.run(hanging, timeout_s=0.3)).run.findings[0]
        assert stuck.code == "run.hung"
        [unkillable] = stuck.evidence["unkillable_pids"]
        assert psutil.pid_exists(unkillable)
        assert (await runs.run(cheap)).run.facts["pid"] != unkillable
        real_kill([unkillable, await pid_of(runs.resident)])
        await runs.resident.close()


async def test_stopping_a_resident_run_kills_the_child_at_once(running, check):
    """A stopped run is SKIPPED within a second, and the next one gets a fresh child without a pause."""
    hanging, cheap = check(hangs, name="hanging", resident=True), check(pid, name="cheap", resident=True)
    async with running(hanging, cheap) as runs:
        before = (await runs.run(cheap)).run.facts["pid"]
        run = await runs.start(hanging)
        await asyncio.sleep(0.05)
        begun = time.monotonic()
        runs.runner.stop(run, "work arrived")
        ended = (await runs.ended()).run
        assert time.monotonic() - begun < 1.0
        assert [finding.code for finding in ended.findings] == ["run.preempted"]
        assert (await runs.run(cheap)).run.facts["pid"] != before


async def test_a_run_that_waits_for_its_turn_can_be_stopped_alone(running, check):
    """Stopping a run that has not begun does not disturb the one that the child is at work on."""

    def slow(_params, context):
        context.progress("slow")
        time.sleep(0.3)
        return Measurement(facts={"pid": os.getpid()})

    first, second = check(slow, name="first", resident=True), check(pid, name="second", resident=True)
    async with running(first, second) as runs:
        await runs.start(first)
        await runs.until("slow")
        waiting = await runs.start(second)
        runs.runner.stop(waiting, "not needed")
        assert (await runs.ended()).run.verdict is Verdict.SKIPPED
        assert (await runs.ended()).run.verdict is Verdict.PASS


async def test_one_process_at_most(running, check):
    """Many questions at once are answered one after the other by a single child."""
    cheap = check(pid, resident=True)
    async with running(cheap) as runs:
        for _ in range(20):
            await runs.start(cheap)
        assert len({(await runs.ended()).run.facts["pid"] for _ in range(20)}) == 1
        assert len(psutil.Process(runs.launcher.pid).children()) == 1
