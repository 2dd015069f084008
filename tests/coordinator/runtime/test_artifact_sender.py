"""Documents reach the plugins that store them: again while they fail, and within bounds."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial

import pytest
import structlog
from tests.waiting import PATIENCE_S

from muster import hookimpl
from muster.config import Config, Settings
from muster.model import Run, Verdict
from muster.plugins import Plugins
from muster.transition import ActionOutcome, Effect
from muster.wire.messages import PluginInfo
from muster_coordinator.model.sweep_records import SweepRecord, SweepState
from muster_coordinator.runtime import artifact_sender
from muster_coordinator.runtime.artifact_sender import ArtifactSender
from muster_coordinator.store.database import DatabaseAway

SWEEP = SweepRecord(
    id="a1b2c3d4",
    state=SweepState.FINISHED,
    check="gemm",
    strategy="single",
    nodes=("n1",),
    created_at=86_400.0,
    ended_at=86_500.0,
)


class Shelf:
    """A plugin that stores documents, and fails `failures` times before."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.failures = 0
        self.calls = 0

    @hookimpl
    async def muster_artifacts(self, artifacts):
        self.calls += 1
        if self.failures:
            self.failures -= 1
            return ActionOutcome(effect=Effect.FAILED, detail="the bucket is away")
        self.keys += [artifact.key for artifact in artifacts]
        return ActionOutcome(effect=Effect.DONE, detail="stored")


class Unset:
    """A plugin whose settings name no store."""

    def __init__(self) -> None:
        self.calls = 0

    @hookimpl
    async def muster_artifacts(self):
        self.calls += 1


class Broken:
    """A plugin that raises."""

    @hookimpl
    async def muster_artifacts(self):
        raise OSError("no route")


def _itself(store):
    return store


@asynccontextmanager
async def sending(*stores, is_away=False):
    """A sender that runs for these plugins; the first read of a sweep fails if the database is away."""
    plugins = Plugins(Config(Settings()))
    for number, store in enumerate(stores):
        info = PluginInfo(name=f"p{number}", distribution=None, version=None, status="loaded")
        plugins.add(info, partial(_itself, store))

    reads = iter([DatabaseAway("the disk is full")])

    async def read_sweep(_id):
        if is_away and (error := next(reads, None)):
            raise error
        return SWEEP

    sender = ArtifactSender(plugins, read_sweep)
    running = asyncio.create_task(sender.run())
    try:
        yield sender
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def until(is_so):
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """Waits are a thousand times shorter."""
    monkeypatch.setattr(artifact_sender, "FIRST_RETRY_S", 0.001)
    monkeypatch.setattr(artifact_sender, "LONGEST_RETRY_S", 0.002)


def run(number, verdict, node="n1"):
    return Run(id=f"r{number}", node=node, check="gemm", verdict=verdict, started_at=86_400.0, duration_s=1.0)


async def test_a_sweep_that_ended_is_stored_as_record_and_as_report():
    """One that runs is not, and one without bandwidth has no table."""
    shelf = Shelf()
    async with sending(shelf) as sender:
        sender.note_sweep(SWEEP.model_copy(update={"ended_at": None}))
        sender.note_sweep(SWEEP)
        await until(lambda: shelf.keys)
    assert shelf.keys == [f"sweeps/1970-01-02/a1b2c3d4/report.{form}" for form in ("json", "txt")]


async def test_the_first_failure_of_a_check_is_stored():
    """Not each of a check that fails all day; after a pass, the next failure is the first again."""
    shelf = Shelf()
    verdicts = (Verdict.PASS, Verdict.FAIL, Verdict.FAIL, Verdict.WARN, Verdict.FAIL)
    async with sending(shelf) as sender:
        for number, verdict in enumerate(verdicts):
            sender.note_run(run(number, verdict))
        sender.note_run(run(9, Verdict.FAIL, node="n2"))
        await until(lambda: len(shelf.keys) == 3)
    assert shelf.keys == [
        "runs/1970-01-02/n1/gemm-r1.json",
        "runs/1970-01-02/n1/gemm-r4.json",
        "runs/1970-01-02/n2/gemm-r9.json",
    ]


async def test_a_store_that_is_away_gets_everything_later():
    """In order; the log says why, once."""
    shelf = Shelf()
    shelf.failures = 3
    with structlog.testing.capture_logs() as lines:
        async with sending(shelf) as sender:
            sender.note_run(run(1, Verdict.FAIL))
            sender.note_sweep(SWEEP)
            await until(lambda: len(shelf.keys) == 3)
    assert shelf.keys[0] == "runs/1970-01-02/n1/gemm-r1.json"
    told = [line for line in lines if line["event"] == "artifacts_not_stored"]
    assert [(line["plugin"], line["detail"]) for line in told] == [("p0", "the bucket is away")]
    assert sender.dropped == 0


async def test_a_sweep_is_read_again_when_the_database_is_back():
    """The coordinator goes on: others find out that its database is away."""
    shelf = Shelf()
    async with sending(shelf, is_away=True) as sender:
        sender.note_sweep(SWEEP)
        await until(lambda: shelf.keys)
    assert (len(shelf.keys), sender.dropped) == (2, 0)


async def test_documents_that_no_try_could_store_are_given_up_and_counted():
    """They do not keep the next ones from being stored."""
    shelf = Shelf()
    shelf.failures = artifact_sender.TRIES
    async with sending(shelf) as sender:
        sender.note_run(run(1, Verdict.FAIL))
        sender.note_run(run(2, Verdict.FAIL, node="n2"))
        await until(lambda: shelf.keys)
    assert (shelf.keys, sender.dropped) == (["runs/1970-01-02/n2/gemm-r2.json"], 1)


async def test_a_plugin_that_raises_delays_no_other():
    """And one that stores nothing is not asked again."""
    shelf, unset = Shelf(), Unset()
    async with sending(Broken(), shelf, unset) as sender:
        for number in range(3):
            sender.note_run(run(number, Verdict.FAIL, node=f"n{number}"))
        await until(lambda: len(shelf.keys) == 3)
        await until(lambda: unset.calls)
    assert unset.calls == 1


async def test_what_waits_is_bounded(monkeypatch):
    """Further documents are dropped and counted: the database has them."""
    monkeypatch.setattr(artifact_sender, "WAITING", 2)
    async with sending(Shelf()) as sender:
        for number in range(5):
            sender.note_run(run(number, Verdict.FAIL, node=f"n{number}"))
        assert sender.dropped == 3
