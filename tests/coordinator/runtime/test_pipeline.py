import asyncio
import contextlib
import sqlite3
from typing import Any

import pytest
import structlog
from tests.coordinator.views.pages.page_sweeps import sweep

from muster.alarm import Alarm, AlarmKind
from muster.config import Settings
from muster.model import Run, Verdict
from muster.wire.messages import Ack, Presence, Report, Start
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    Announce,
    AppendStory,
    PresenceSeen,
    ReportSeen,
    SaveSweep,
    SendAck,
    SendCommand,
    StoreRuns,
    Ticked,
)
from muster_coordinator.model.nodes import Misconduct, StoryEntry
from muster_coordinator.model.quarantine_events import SendAlarm
from muster_coordinator.runtime.pipeline import (
    BACKLOG,
    BACKLOG_BYTES,
    BATCH_S,
    GATHER_S,
    LEAST_BACKLOG,
    PRESSING,
    OutgoingCommand,
    Pipeline,
    most_waiting,
    outgoing,
)
from muster_coordinator.store.database import WriteFailed
from muster_coordinator.store.runs_view import RunFilter
from muster_coordinator.store.store import Store


@pytest.fixture
async def store(data_dir):
    store = await Store.open(Settings(data_dir=data_dir))
    yield store
    await store.close()


@pytest.fixture
def pipeline(store):
    return Pipeline(Fleet(name="f", epoch=1), store, clock=lambda: 1000.0)


@contextlib.asynccontextmanager
async def running(pipeline, outlet):
    task = asyncio.create_task(pipeline.run(outlet))
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def run(seq: int, node="n1") -> Run:
    return Run(
        id=f"{node}-{seq}",
        node=node,
        check="gemm",
        verdict=Verdict.PASS,
        started_at=1000.0,
        duration_s=1.0,
        seq=seq,
        cause="schedule",
    )


def store_and_ack(seq: int, node="n1") -> list:
    return [StoreRuns(node, "s", seq, (run(seq, node),)), ack(seq, node), Announce("run", run(seq, node))]


def ack(through: int, node="n1", stream="s", gap=False) -> SendAck:
    return SendAck(node, Ack(id="a", sent_at=1.0, stream=stream, stored_through=through, gap=gap))


def order(group: str) -> SendCommand:
    return SendCommand("n1", Start(id=group, sent_at=1.0, epoch=1, expires_at=2.0, group=group))


ALARM = SendAlarm(alarm=Alarm(kind=AlarmKind.ACTION, subject="slurm", text="slurm drains no node", since=0.0))


def stored_runs(path):
    with contextlib.closing(sqlite3.connect(path / "muster.db")) as connection:
        return connection.execute("SELECT count(*) FROM runs").fetchone()[0]


async def test_nothing_is_said_before_it_is_stored(pipeline, tmp_path):
    """When an ack goes out, another reader of the database finds the run already."""
    seen = []

    def outlet(command):
        seen.append((command, stored_runs(tmp_path)))

    async with running(pipeline, outlet):
        for seq in range(1, 4):
            await asyncio.wait_for(pipeline.submit(store_and_ack(seq)).wait(), 20)
    said = [(command.ack.stored_through, found) for command, found in seen if isinstance(command, SendAck)]
    assert said == [(1, 1), (2, 2), (3, 3)]


async def test_a_failed_commit_ends_the_pipeline_and_nothing_is_said(pipeline, store):
    """What could not be stored is not acknowledged."""
    said: list[OutgoingCommand] = []
    broken = StoreRuns("n1", "s", 1, (run(1).model_copy(update={"duration_s": None}),))
    pipeline.submit([broken, ack(1)])
    with pytest.raises(Exception, match="NOT NULL"):
        await asyncio.wait_for(pipeline.run(said.append), 20)
    assert said == []


async def test_a_database_that_cannot_be_written_ends_the_pipeline_with_a_sentence(pipeline, tmp_path):
    """The disk is full, say: nothing is said, and what ends the daemon is an error for people."""
    said: list[OutgoingCommand] = []
    with contextlib.closing(sqlite3.connect(tmp_path / "muster.db")) as connection:
        connection.execute("DROP TABLE streams")
    pipeline.submit(store_and_ack(1))
    with pytest.raises(WriteFailed, match="the database cannot be written"):
        await asyncio.wait_for(pipeline.run(said.append), 20)
    assert said == []


async def test_what_needs_no_storing_goes_through_in_order(pipeline):
    """Commands without anything to store come out as they went in."""
    said: list[OutgoingCommand] = []
    commands = [order("a"), Announce("run", run(1)), ALARM, order("b")]
    async with running(pipeline, said.append):
        await asyncio.wait_for(pipeline.submit(commands).wait(), 20)
    assert said == commands


async def test_what_waits_is_committed_together(pipeline, store):
    """A thousand reports that wait cost one commit and one ack for each node."""
    said: list[OutgoingCommand] = []
    for seq in range(1, 501):
        pipeline.submit(store_and_ack(seq))
        pipeline.submit(store_and_ack(seq, "n2"))
    assert pipeline.backlog == 3000
    async with running(pipeline, said.append):
        await asyncio.wait_for(pipeline.submit(()).wait(), 20)
    acks = [command for command in said if isinstance(command, SendAck)]
    assert [(it.node, it.ack.stored_through) for it in acks] == [("n1", 500), ("n2", 500)]
    assert sum(isinstance(command, Announce) for command in said) == 1000
    assert (await store.saved()).streams == {("n1", "s"): 500, ("n2", "s"): 500}


async def test_whoever_feeds_too_much_waits(pipeline):
    """With a large backlog `take` returns only after a commit."""
    pipeline.submit([order("a")] * (BACKLOG + 1))
    waiting = asyncio.create_task(pipeline.take(()))
    await asyncio.sleep(0)
    assert not waiting.done()
    async with running(pipeline, lambda _command: None):
        await asyncio.wait_for(waiting, 20)
    assert pipeline.backlog == 0


async def test_events_go_to_the_fleet_with_the_time(pipeline, monkeypatch):
    """Feeding asks the fleet at once, with the clock's time, and queues what it answers."""
    asked = []
    entry = StoryEntry(id="e", at=1.0, node="n1", kind="health", text="t")

    def handle(event, now):
        asked.append((event, now))
        return [AppendStory(entry)]

    monkeypatch.setattr(pipeline.fleet, "handle", handle)
    pipeline.feed(Ticked())
    assert asked == [(Ticked(), 1000.0)]
    assert pipeline.backlog == 1


@pytest.mark.parametrize(
    ("commands", "left"),
    [
        ([], []),
        ([ack(1), ack(2)], [ack(2)]),
        ([ack(1), order("a"), ack(2)], [order("a"), ack(2)]),
        ([ack(1), ack(1, "n2"), ack(1, stream="t")], [ack(1), ack(1, "n2"), ack(1, stream="t")]),
        ([ack(2), ack(2, gap=True)], [ack(2, gap=True)]),
        ([StoreRuns("n1", "s", 1, (run(1),)), order("a")], [order("a")]),
    ],
)
def test_only_the_last_ack_of_a_stream_is_sent(commands, left):
    """An ack covers those before it; everything else keeps its place."""
    assert outgoing(commands) == left


async def test_the_store_is_asked_only_for_what_it_holds(pipeline, store):
    """An empty flush touches no table."""
    async with running(pipeline, lambda _command: None):
        await asyncio.wait_for(pipeline.submit([order("a")]).wait(), 20)
    assert (await store.runs(RunFilter(), 1, None)).items == ()


async def test_it_is_calm_until_much_waits_and_again_when_that_is_stored(pipeline):
    """Also while what came is being written; some commands more or less are nothing to wait for."""
    said: list[OutgoingCommand] = []
    pipeline.submit(store_and_ack(1))
    await pipeline.calm(within_s=0)
    pipeline.submit([ALARM] * PRESSING)
    calm = asyncio.create_task(pipeline.calm(within_s=60))
    await asyncio.sleep(0)
    assert not calm.done()
    async with running(pipeline, said.append):
        await calm
    assert said.count(ALARM) == PRESSING


async def test_nobody_waits_for_calm_for_ever(pipeline):
    """Who has waited for long enough goes on all the same."""
    pipeline.submit([ALARM] * (PRESSING + 1))
    async with asyncio.timeout(5):
        await pipeline.calm(within_s=0.01)
    assert pipeline.backlog > PRESSING


def reported(seq: int, node: str, size: int = 100) -> ReportSeen:
    return ReportSeen(Report(sent_at=1.0, node=node, stream="s", after=0, runs=(run(seq, node),)), size)


async def test_a_message_that_makes_the_fleet_fail_is_dropped(store, pipeline, monkeypatch):
    """It is counted and becomes a finding of its node; later messages of other nodes are stored."""
    handle = pipeline.fleet.handle

    def fail(event, now):
        if isinstance(event, ReportSeen) and event.message.node == "n1":
            raise RuntimeError("a bug")
        return handle(event, now)

    monkeypatch.setattr(pipeline.fleet, "handle", fail)
    async with running(pipeline, lambda _: None):
        for node in ("n1", "n2"):
            await pipeline.take([PresenceSeen(Presence(sent_at=1.0, node=node, online=True))])
        with structlog.testing.capture_logs() as logs:
            for seq in (1, 2):
                await pipeline.take(reported(seq, node) for node in ("n1", "n2"))
        await pipeline.submit(()).wait()
    assert pipeline.failed == 2
    assert [(line["log_level"], line["event"]) for line in logs] == [("error", "message_failed")]
    found = {name: view.findings for name in ("n1", "n2") if (view := pipeline.fleet.node(name, 1000.0))}
    assert [finding.code for finding in found["n1"]] == [Misconduct.FAILED]
    assert Misconduct.FAILED not in [finding.code for finding in found["n2"]]
    assert [run.node for run in (await store.runs(RunFilter(), 10, None)).items] == ["n2", "n2"]


async def test_a_tick_that_fails_does_not_end_the_pipeline(pipeline, monkeypatch):
    """Each failure is counted."""

    def fail(event, now):
        raise RuntimeError("a bug")

    monkeypatch.setattr(pipeline.fleet, "handle", fail)
    for _ in range(3):
        pipeline.offer(Ticked())
    assert pipeline.failed == 3


async def test_intake_waits_when_many_bytes_wait_to_be_stored(pipeline):
    """A few large reports count as much as many small ones."""
    report = reported(1, "n1", BACKLOG_BYTES // 2)
    await asyncio.wait_for(pipeline.take([report, report]), 1)
    taking = asyncio.create_task(pipeline.take([report]))
    await asyncio.sleep(0.05)
    assert not taking.done()
    async with running(pipeline, lambda _: None):
        await asyncio.wait_for(taking, 10)


class HangingStore:
    """A store that writes only after `goes_on` is set."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()

    async def write(self, _commands) -> None:
        await self.goes_on.wait()


@pytest.mark.looptime
async def test_an_ended_sweep_counts_when_its_end_is_stored():
    """A page that asks for the list when the number changes finds the sweep, also after a slow commit."""
    store: Any = HangingStore()
    pipeline = Pipeline(Fleet(name="f", epoch=1), store, clock=lambda: 1000.0)
    async with running(pipeline, lambda _: None):
        pipeline.submit([SaveSweep(sweep("runs", ended_at=None)), SaveSweep(sweep("ended"))])
        await asyncio.sleep(10)
        assert pipeline.sweeps_ended == 0
        store.goes_on.set()
        await asyncio.sleep(1)
        assert pipeline.sweeps_ended == 1


@pytest.mark.looptime
async def test_the_pipeline_is_stuck_when_a_batch_hangs():
    """After two minutes, not after one, and not while nothing waits to be stored; it ends when storing continues."""
    store: Any = HangingStore()
    pipeline = Pipeline(Fleet(name="f", epoch=1), store, clock=lambda: 1000.0)
    async with running(pipeline, lambda _: None):
        await asyncio.sleep(1000)
        assert (pipeline.stuck_s, pipeline.is_stuck) == (0.0, False)
        pipeline.feed(Ticked())
        await asyncio.sleep(20)
        pipeline.feed(PresenceSeen(Presence(sent_at=1000.0, node="n1", online=True)))
        await asyncio.sleep(40)
        assert pipeline.stuck_s == pytest.approx(60.0)
        assert pipeline.backlog_age_s == pipeline.late_s == pytest.approx(40.0)
        assert not pipeline.is_stuck
        await asyncio.sleep(61)
        assert pipeline.is_stuck
        store.goes_on.set()
        await asyncio.sleep(1)
        assert (pipeline.stuck_s, pipeline.backlog_age_s, pipeline.is_stuck) == (0.0, 0.0, False)


class RememberingStore:
    """A store that only notes what is committed together, and when."""

    def __init__(self) -> None:
        self.commits: list[tuple[float, int]] = []

    async def write(self, commands) -> None:
        self.commits.append((asyncio.get_running_loop().time(), len(commands)))


async def commits_of(*fed: tuple[float, list]) -> list[tuple[float, int]]:
    """When the pipeline commits how many commands, if these are submitted at these times."""
    store: Any = RememberingStore()
    pipeline = Pipeline(Fleet(name="f", epoch=1), store, clock=lambda: 1000.0)
    async with running(pipeline, lambda _: None):
        began = asyncio.get_running_loop().time()
        for at, commands in fed:
            await asyncio.sleep(began + at - asyncio.get_running_loop().time())
            pipeline.submit(commands)
        await asyncio.sleep(1)
    return [(round(at - began, 3), count) for at, count in store.commits]


@pytest.mark.looptime
async def test_runs_that_change_nothing_are_committed_together():
    """They wait for others from the first one on, so that each waits for a bounded time."""
    assert await commits_of((0.0, store_and_ack(1)), (0.03, store_and_ack(2))) == [(GATHER_S, 6)]
    assert await commits_of((0.0, store_and_ack(1)), (0.5, store_and_ack(2))) == [(GATHER_S, 3), (0.5 + GATHER_S, 3)]


@pytest.mark.looptime
async def test_anything_else_is_committed_at_once_with_all_that_waits():
    """An order, a story, an alarm and a run that somebody waits for do not wait, and neither do many runs."""
    told = AppendStory(StoryEntry(id="e", node="n1", at=1.0, kind="found", text="", cause=None))
    requested = Announce("run", run(2).model_copy(update={"cause": "7-1"}))
    for urgent in (order("g"), ALARM, told, requested):
        assert await commits_of((0.0, store_and_ack(1)), (0.01, [urgent])) == [(0.01, 4)]
    many = [command for seq in range(1, PRESSING) for command in store_and_ack(seq)]
    assert await commits_of((0.0, many)) == [(0.0, len(many))]


@pytest.mark.parametrize(
    ("commands", "took_s", "most"),
    [
        (1, 0.0, BACKLOG),
        (10, 0.01, 250),  # quick; the next batch may be larger, and is cheaper for each
        (5_000, BATCH_S, BACKLOG),  # quick enough
        (5_000, 4 * BATCH_S, 1_250),  # a slow disk
        (1_250, BATCH_S, 1_250),
        (10, 60.0, LEAST_BACKLOG),  # a database that failed over
    ],
)
def test_fewer_commands_may_wait_while_storing_is_slow(commands, took_s, most):
    """So that an urgent finding waits for half a second of storing, not for as long as the backlog takes."""
    assert most_waiting(commands, took_s) == most
