"""Replaying a policy on a real database, beside a coordinator that holds it."""

import pytest

from muster.config import Settings
from muster.errors import Unavailable
from muster.model import Action, Finding, Run, Severity, Verdict
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.model.events import SaveSweep, StoreRuns
from muster_coordinator.model.sweep_records import FailedNode, SweepRecord, SweepState
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.policy_file import shipped_rows
from muster_coordinator.store.database import open_to_read
from muster_coordinator.store.replay import replay_stored
from muster_coordinator.store.store import Store

START = 1_800_000_000.0
POLICY = Policy(shipped_rows())


@pytest.fixture
def settings(tmp_path):
    return Settings(data_dir=tmp_path / "a data dir?")


@pytest.fixture
async def store(settings):
    store = await Store.open(settings)
    yield store
    await store.close()


def run(node, seq, code=None, **said):
    finding = code and Finding(code=code, summary="found", severity=Severity.ERROR, action=Action.REBOOT_NODE)
    usual = {
        "check": "nvml",
        "verdict": Verdict.FAIL if code else Verdict.PASS,
        "findings": (finding,) if finding else (),
        "started_at": START + seq,
    }
    return Run(id=f"{node}-{seq}", node=node, duration_s=1.0, seq=seq, **{**usual, **said})


def stored(*runs):
    return StoreRuns(runs[0].node, "s", runs[-1].seq, runs)


def sweep(id, at, **found):
    return SaveSweep(
        SweepRecord(
            id=id,
            state=SweepState.FINISHED,
            strategy="adaptive",
            check="collective",
            nodes=("n1", "n2"),
            created_at=START,
            ended_at=START + at,
            **found,
        )
    )


def convicted(name):
    return FailedNode(node=name, code="collective.slow", confidence=0.9, reasons=("slow with everyone",))


async def taken_out(settings, since=START, now=START + 5_000):
    engine = open_to_read(settings)
    assert engine is not None
    try:
        found = await replay_stored(engine, QuarantineSettings(), POLICY, since, now)
    finally:
        await engine.dispose()
    return {
        name: node.first and (node.first.at - START, node.first.requirement.row, node.times)
        for name, node in found.replay.by_node.items()
    }


async def test_runs_and_sweeps_are_replayed_in_order(settings, store):
    """By node; nodes about which nothing was found are not even looked at."""
    await store.write(
        [
            stored(run("good", 1), run("good", 2)),
            stored(run("lost", 1), run("lost", 2, "nvml.device_lost"), run("lost", 3)),
            stored(
                run("slow", 1, "gemm.slow", check="gemm"),
                run("slow", 2, verdict=Verdict.SKIPPED, check="gemm"),
                run("slow", 3, "gemm.slow", check="gemm", group="g1"),
                run("slow", 900, "gemm.slow", check="gemm"),
            ),
            sweep("s1", 500, failed_nodes=(convicted("n1"),), cleared_nodes=("n2",)),
            sweep("s2", 600, cleared_nodes=("n1",)),
            sweep("s3", 4_000, failed_nodes=(convicted("n1"),)),
        ]
    )
    assert await taken_out(settings) == {
        "lost": (3.0, "gpu-lost", 1),
        "slow": (901.0, "slow", 1),
        "n1": (500.0, "convicted", 2),
    }


async def test_more_runs_than_are_read_at_a_time(settings, store):
    """What stands between passes that come in other portions is found all the same."""
    runs = [run("n1", seq, "nvml.device_lost" if seq == 777 else None) for seq in range(1, 1001)]
    await store.write([stored(*runs)])
    assert await taken_out(settings) == {"n1": (778.0, "gpu-lost", 1)}


async def test_what_is_too_long_ago_does_not_count(settings, store):
    """Runs and sweeps before the period are left out."""
    await store.write([stored(run("n1", 1, "nvml.device_lost")), sweep("s1", 2, failed_nodes=(convicted("n2"),))])
    assert await taken_out(settings, since=START + 10) == {}


async def test_reading_changes_nothing(settings, store):
    """The database is read while the coordinator holds it, and whoever reads it cannot write."""
    await store.write([stored(run("n1", 1, "nvml.device_lost"))])
    engine = open_to_read(settings)
    assert engine is not None
    async with engine.connect() as connection:
        with pytest.raises(Exception, match="readonly database"):
            await connection.exec_driver_sql("DELETE FROM runs")
    await engine.dispose()
    await store.write([stored(run("n1", 2, "nvml.device_lost"))])
    assert list(await taken_out(settings)) == ["n1"]


async def test_a_database_that_nobody_has_open_is_read_as_well(settings):
    """As when the coordinator is stopped; it can start again afterwards."""
    for seq in (1, 2):
        store = await Store.open(settings)
        await store.write([stored(run("n1", seq, "nvml.device_lost"))])
        await store.close()
        assert await taken_out(settings) == {"n1": (2.0, "gpu-lost", 1)}


async def test_what_is_no_database_is_unavailable(settings):
    """With the reason that the database gives."""
    settings.data_dir.mkdir()
    (settings.data_dir / "muster.db").write_text("not a database, but long enough to be looked at as one" * 100)
    with pytest.raises(Unavailable, match="the database cannot be read: file is not a database"):
        await taken_out(settings)


def test_there_need_be_no_database(settings):
    """And none is made by asking."""
    assert open_to_read(settings) is None
    assert not settings.data_dir.exists()
