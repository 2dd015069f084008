"""A database of an earlier muster is brought up to this one's schema with all that is in it."""

import itertools
import json
import sqlite3
from unittest.mock import Mock

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import func, select, text
from tests.coordinator.store.revisions import downgrade
from tests.coordinator.store.stored_records import make_node

from muster.config import Settings
from muster.errors import Unavailable
from muster.model import Run, ServiceState, Verdict
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.baseline_commands import SaveLevels
from muster_coordinator.model.baselines import LevelsRecord
from muster_coordinator.model.events import AppendStory, SaveGroup, SaveNode, SaveSweep, StoreRuns
from muster_coordinator.model.history import MetricFigures
from muster_coordinator.model.nodes import NodeRecord, StoryEntry
from muster_coordinator.model.sweep_records import GroupRecord, GroupState, RoundRecord, SweepRecord, SweepState
from muster_coordinator.store.database import DatabaseAway
from muster_coordinator.store.history import HistoryFilter, history
from muster_coordinator.store.migrations import NEWEST
from muster_coordinator.store.opening import open_database
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.store import Store
from muster_coordinator.store.summaries import Summary
from muster_coordinator.store.tables import ANNOUNCEMENTS, METADATA, SERIES, STORY

START = 1_800_000_000.0
RUN = Run(id="r1", node="n1", check="gemm", verdict=Verdict.PASS, started_at=START, duration_s=1.5, seq=1)
NODE = NodeRecord(name="n1", online=False, first_seen=START, last_seen=START + 1, service=ServiceState.IN_SERVICE)
GROUP = GroupRecord(id="s1-1", members=("n1", "n2"), state=GroupState.RUNNING, started_at=START)
SWEEP = SweepRecord(
    id="s1",
    state=SweepState.RUNNING,
    strategy="pairs",
    check="gemm",
    nodes=("n1", "n2"),
    created_at=START,
    rounds=(RoundRecord(number=1),),
)


@pytest.fixture
def settings(tmp_path):
    return Settings(data_dir=tmp_path / "data")


async def test_the_migrations_make_the_tables_that_the_store_uses(settings):
    """A database made by the migrations does not differ from the tables in the code."""
    database = await open_database(settings)
    async with database.engine.connect() as connection:
        differences = await connection.run_sync(
            lambda sync: compare_metadata(MigrationContext.configure(sync), METADATA)
        )
    await database.close()
    assert differences == []


async def test_a_database_with_the_newest_schema_is_not_given_to_alembic(settings, monkeypatch):
    """Loading Alembic takes time. A database of every other schema is given to it."""
    database = await open_database(settings)
    async with database.engine.connect() as connection:
        stored = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    await database.close()
    assert stored == NEWEST
    monkeypatch.setattr("muster_coordinator.store.migrations.upgrade.upgrade", None)
    await (await open_database(settings)).close()


@pytest.mark.parametrize("revision", ["0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009"])
async def test_an_older_database_is_brought_up_with_what_is_in_it(settings, revision):
    """Its nodes and runs are what the coordinator starts from."""
    store = await Store.open(settings)
    await store.write([StoreRuns("n1", "s", 1, (RUN,)), SaveNode(NODE)])
    async with store.database.engine.begin() as connection:
        await connection.run_sync(downgrade, revision)
    await store.close()

    again = await Store.open(settings)
    saved = await again.saved()
    await again.close()
    assert (saved.nodes, saved.runs, saved.baselines) == ((NODE,), (RUN,), ())


@pytest.mark.parametrize("revision", ["base", "0004"])
async def test_an_interrupted_upgrade_leaves_the_database_as_it_was(settings, monkeypatch, revision):
    """A full disk, or a kill: the next start upgrades it with all that is in it."""
    store = await Store.open(settings)
    await store.write([SaveNode(NODE)])
    async with store.database.engine.begin() as connection:
        await connection.run_sync(downgrade, revision)
    await store.close()

    def upgrade_and_fail(*arguments):
        command.upgrade(*arguments)
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("muster_coordinator.store.migrations.upgrade.command", Mock(upgrade=upgrade_and_fail))
        with pytest.raises(DatabaseAway, match="no space left on device"):
            await open_database(settings)
    again = await Store.open(settings)
    saved = await again.saved()
    await again.close()
    assert saved.nodes == (() if revision == "base" else (NODE,))


async def test_what_was_stored_before_there_was_a_quarantine_is_all_there(settings):
    """Nodes with their runs, streams, sweeps with their groups, and stories, of which each entry keeps its time."""
    entries = [
        StoryEntry(id=f"e{at}", at=START + at / 1000, node="n1", kind="joined", text="") for at in (0, 1500, 700)
    ]
    store = await Store.open(settings)
    runs = StoreRuns("n1", "s", 1, (RUN,))
    await store.write([runs, SaveNode(NODE), SaveSweep(SWEEP), SaveGroup("s1", 1, GROUP), *map(AppendStory, entries)])
    before = await store.saved()
    async with store.database.engine.begin() as connection:
        await connection.run_sync(downgrade, "0004")
    await store.close()

    again = await Store.open(settings)
    assert await again.saved() == before
    assert (await again.story("n1", 10, None)).items == tuple(entries[::-1])
    async with again.database.engine.connect() as connection:
        dated = await connection.scalars(select(STORY.c.at).order_by(STORY.c.number))
        assert dated.all() == pytest.approx([entry.at for entry in entries])
    await again.close()


async def test_nodes_that_were_there_before_there_was_a_quarantine_get_their_cases(settings):
    """In the service state in which they were; nobody is told anything. What comes of it is stored like anything."""
    store = await Store.open(settings)
    await store.write([SaveNode(NODE)])
    async with store.database.engine.begin() as connection:
        await connection.run_sync(downgrade, "0004")
    await store.close()

    again = await Store.open(settings)
    fleet = Fleet(name="f", epoch=1)
    begun = fleet.restore(await again.saved(), START + 10)
    await again.write(begun)
    await again.close()
    assert [(record.node, record.state) for record in fleet.quarantine_records()] == [("n1", ServiceState.IN_SERVICE)]


async def test_a_newer_schema_is_refused(settings):
    """A database of a newer muster is left alone, and the message says what to do."""
    store = await Store.open(settings)
    await store.close()
    path = settings.data_dir / "muster.db"
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(Unavailable, match=r"schema 9999, written by a newer muster.*up to 0011"):
        await Store.open(settings)


async def test_what_nodes_announce_and_their_own_levels_stay(settings):
    """Checks and plugins, as they were stored beside the rest of a node, and levels of devices without their values."""
    node = make_node("n1", START)
    level = LevelsRecord(
        baseline="b1", node="n1", levels={"0": ("GPU-1", 700.0, 2.5, (699.0,)), "1": ("", None, None, ())}
    )
    store = await Store.open(settings)
    await store.write([SaveNode(node), SaveNode(NODE.model_copy(update={"name": "n2"})), SaveLevels(level)])
    async with store.database.engine.begin() as connection:
        await connection.run_sync(downgrade, "0007")
        assert len(json.loads(await connection.scalar(text("SELECT body FROM nodes WHERE name = 'n1'")))["checks"]) == 1
        await connection.execute(text("INSERT INTO nodes (name, body) VALUES ('n3', '{')"))
    await store.close()

    again = await Store.open(settings)
    async with again.database.engine.begin() as connection:
        await connection.execute(text("DELETE FROM nodes WHERE name = 'n3'"))
    saved = await again.saved()
    await again.close()
    assert saved.nodes == (node, NODE.model_copy(update={"name": "n2"}))
    assert [*saved.levels["b1"]] == [LevelsRecord(baseline="b1", node="n1", levels={"0": ("GPU-1", 700.0, 2.5, ())})]


@pytest.mark.parametrize("revision", ["0007", "0008"])
async def test_nodes_that_announce_the_same_share_one_row(settings, revision):
    """Also those of an earlier release. What no node announces any more is deleted."""
    nodes = [make_node(f"n{number}", START) for number in range(3)]
    other = nodes[2].model_copy(update={"checks": ()})
    store = await Store.open(settings)
    await store.write([*map(SaveNode, nodes[:2]), SaveNode(other)])
    async with store.database.engine.begin() as connection:
        await connection.run_sync(downgrade, revision)
    await store.close()

    again = await Store.open(settings)
    assert (await again.saved()).nodes == (*nodes[:2], other)
    assert await counted(again, ANNOUNCEMENTS) == 2
    await again.write([*map(SaveNode, nodes)])
    await Retention(again.database, settings.store, lambda: START, lambda _event: None).thin()
    assert (await again.saved()).nodes == tuple(nodes)
    assert await counted(again, ANNOUNCEMENTS) == 1
    await again.close()


async def counted(store, table):
    async with store.database.reading() as connection:
        return await connection.scalar(select(func.count()).select_from(table))


async def test_hourly_summaries_of_before_are_in_the_history(settings):
    """With all their figures, those of a day and of the same parameters together; a damaged one is left out."""
    hours = [
        make_summary(node, START + 3_600 * hour, hour, {"size": size})
        for node, size, hour in itertools.product(("n1", "n2"), (1, 2), range(60))
    ]
    store = await Store.open(settings)
    await store.write([StoreRuns("n1", "s", 1, (RUN,)), SaveNode(NODE)])
    async with store.database.engine.begin() as connection:
        await connection.run_sync(downgrade, "0006")
        for number, each in enumerate(hours):
            values = {"id": f"h{number}", "at": each.started_at, "node": each.node, "body": each.model_dump_json()}
            await connection.execute(text(_INSERT), values)
        await connection.execute(text(_INSERT), {"id": "x", "at": START, "node": "n1", "body": "{}"})
    await store.close()

    again = await Store.open(settings)
    found = await history(again.database, HistoryFilter(node="n1", metric="tflops"), 1000, None)
    async with again.database.engine.connect() as connection:
        blocks = await connection.scalar(select(func.count()).select_from(SERIES)) or 0
    await again.close()
    expected = {(each.started_at, each.metrics["tflops"]["0"].most) for each in hours}
    assert {(point.at, point.most["0"]) for point in found.items if point.most} == expected
    assert len(found.items) == 120
    assert {sum(point.verdicts.values()) for point in found.items} == {9}
    assert blocks <= 16


_INSERT = "INSERT INTO summaries (id, node, \"check\", started_at, body) VALUES (:id, :node, 'gemm', :at, :body)"


def make_summary(node, at, hour, params):
    figures = MetricFigures(count=9, least=hour / 8, median=hour / 4, most=hour / 2)
    return Summary(
        node=node,
        check="gemm",
        params=params,
        started_at=at,
        verdicts={Verdict.PASS: 8, Verdict.FAIL: 1},
        metrics={"tflops": {"0": figures, "1": figures}},
    )
