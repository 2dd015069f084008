"""A damaged database: the coordinator reports it in one line with the place, and deletes nothing."""

import asyncio
import random
import shutil
import sqlite3
import time

import pytest
from sqlalchemy import text
from tests.coordinator.web.messages import check_info, report

from muster.check import Scope
from muster.config import Settings, StoreSettings
from muster.errors import Unavailable
from muster.model import Inventory
from muster.wire.messages import InventoryReport, Presence
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import InventorySeen, PresenceSeen, SweepRequested
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.runtime.pipeline import Pipeline
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.rows import Unreadable
from muster_coordinator.store.runs_view import RunFilter
from muster_coordinator.store.store import Store

FLIPS = 200
"""How many copies of the database are damaged, each in another way."""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """The database file of a small fleet, without a write-ahead log."""
    directory = tmp_path_factory.mktemp("healthy")
    asyncio.run(fill(directory))
    with sqlite3.connect(directory / "muster.db") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return directory / "muster.db"


async def fill(directory):
    store = await Store.open(Settings(data_dir=directory))
    pipeline = Pipeline(Fleet(name="default", epoch=3), store)
    pipeline.submit(pipeline.fleet.restore(await store.saved(), pipeline.clock()))
    task = asyncio.create_task(pipeline.run(lambda _command: None))
    now = time.time()
    checks = (check_info("gemm", Scope.NODE), check_info("collective", Scope.GROUP, "busbw_gbps"))
    for node in ("n1", "n2", "n3"):
        await pipeline.feed(PresenceSeen(Presence(sent_at=now, node=node, online=True))).wait()
        message = InventoryReport(sent_at=now, node=node, inventory=Inventory(), checks=checks)
        await pipeline.feed(InventorySeen(message)).wait()
        await pipeline.feed(report(node, *range(1, 20))).wait()
    sweep = SweepRequest(check="collective", strategy="pairs")
    await pipeline.feed(SweepRequested("s1", sweep)).wait()
    task.cancel()
    await store.close()


async def start(directory):
    """Opens and restores the database like a coordinator, and lists everything."""
    store = await Store.open(Settings(data_dir=directory))
    try:
        await store.begin_epoch(time.time(), "http://a")
        fleet = Fleet(name="default", epoch=4)
        past = await store.sweeps_since(0)
        commands = fleet.restore(await store.saved(), time.time(), past)
        await store.write(commands)
        await store.runs(RunFilter(), 100, None)
        await store.sweeps(100, None)
        await store.story("n1", 100, None)
        await store.decisions(None, 100, None)
        await store.sweep("s1")
    finally:
        await store.close()


def damaged(healthy, directory, chance):
    """A copy with changed bytes in one place or in many, or cut off."""
    directory.mkdir()
    content = bytearray(healthy.read_bytes())
    kind = chance.randrange(4)
    if kind == 0:
        place = chance.randrange(len(content))
        content[place : place + 64] = chance.randbytes(len(content[place : place + 64]))
    elif kind == 1:
        del content[chance.randrange(len(content)) :]
    else:
        size = 100 if kind == 2 else len(content)  # the header alone, or anything
        for _ in range(chance.choice((1, 5, 50))):
            content[chance.randrange(size)] ^= 1 << chance.randrange(8)
    (directory / "muster.db").write_bytes(content)
    return directory


@pytest.mark.parametrize("seed", range(10))
def test_changed_bytes_cause_one_line_at_most(healthy, tmp_path, seed):
    """The coordinator starts, or reports the damage in one line, never with a traceback."""
    chance = random.Random(seed)
    said = 0
    for number in range(FLIPS // 10):
        directory = damaged(healthy, tmp_path / str(number), chance)
        try:
            asyncio.run(start(directory))
        except Unavailable as error:
            said += 1
            assert "\n" not in str(error), error
        assert (directory / "muster.db").exists()
        shutil.rmtree(directory)
    assert said > 0


ROWS = {
    "nodes": "UPDATE nodes SET body = substr(body, 9) WHERE name = 'n1'",
    "sweeps": "UPDATE sweeps SET body = '{}'",
    "streams": "UPDATE streams SET through = 'x' WHERE node = 'n1'",
    "meta": "INSERT OR REPLACE INTO meta VALUES ('epoch', 'x')",
    "cases": "UPDATE cases SET body = x'ff' WHERE node = 'n1'",
}


@pytest.mark.parametrize("table", ROWS)
async def test_an_unreadable_row_that_is_needed_is_named(healthy, tmp_path, table):
    """The error names the table and the row, and says what to do."""
    shutil.copy(healthy, tmp_path)
    change(tmp_path, ROWS[table])
    with pytest.raises(Unreadable, match=f"database: row '.+' of table {table} cannot be read: .*backup"):
        await start(tmp_path)


async def test_lists_leave_out_and_count_unreadable_rows(healthy, tmp_path):
    """Lists, pages and the start work without them. A request for such a row is an error that names it."""
    shutil.copy(healthy, tmp_path)
    change(tmp_path, "UPDATE runs SET body = 'x' WHERE id = 'n1-3'")
    change(tmp_path, "UPDATE runs SET body = CAST(x'7bff7d' AS TEXT) WHERE id = 'n1-4'")
    await start(tmp_path)
    store = await Store.open(Settings(data_dir=tmp_path))
    try:
        listed = [run.id for run in (await store.runs(RunFilter(node="n1"), 100, None)).items]
        assert len(listed) == 17
        assert store.database.unread.count == 2
        with pytest.raises(Unreadable, match="row 'n1-3' of table runs"):
            await store.run("n1-3")
        pages, cursor = [], None
        while True:
            page = await store.runs(RunFilter(node="n1"), 2, cursor)
            pages += [run.id for run in page.items]
            if (cursor := page.next_cursor) is None:
                break
        assert pages == listed
    finally:
        await store.close()


async def test_retention_keeps_unreadable_rows(healthy, tmp_path):
    """It downsamples the other old rows."""
    shutil.copy(healthy, tmp_path)
    change(tmp_path, "UPDATE runs SET body = 'x' WHERE id = 'n1-3'")
    store = await Store.open(Settings(data_dir=tmp_path))
    try:
        retention = Retention(store.database, StoreSettings(), time.time, lambda _event: None)
        await retention.thin()
        async with store.database.reading() as connection:
            left = (await connection.scalars(text("SELECT id FROM runs WHERE node = 'n1'"))).all()
    finally:
        await store.close()
    assert "n1-3" in left
    assert len(left) < 19


def change(directory, statement):
    with sqlite3.connect(directory / "muster.db") as database:
        assert database.execute(statement).rowcount >= 1
    database.close()


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\x00" + b"\xff" * 4000])
def test_a_file_that_is_no_database_is_left_alone(tmp_path, muster, content):
    """The coordinator exits with 69 and one line that says what to do."""
    file = tmp_path / "muster.db"
    file.write_bytes(content)
    done = muster("coordinator", env={"MUSTER_DATA_DIR": str(tmp_path), "MUSTER_HTTP__LISTEN": "127.0.0.1:0"})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (69, "", 1)
    assert f"cannot open the database {file}: " in done.stderr
    assert "restore a backup, or move the file away" in done.stderr
    assert file.read_bytes() == content
