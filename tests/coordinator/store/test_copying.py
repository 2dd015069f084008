"""A whole database is copied into an empty one, or nothing is."""

import json

import pytest
from sqlalchemy import insert, select
from tests.coordinator.store.stored_records import START, make_node, make_run, stored

from muster.config import Settings, StoreSettings
from muster.errors import Refused, Unavailable
from muster_coordinator.model.baseline_commands import SaveLevels
from muster_coordinator.model.baselines import LevelsRecord
from muster_coordinator.model.events import AppendStory, SaveNode
from muster_coordinator.model.nodes import StoryEntry
from muster_coordinator.store import copying
from muster_coordinator.store.copying import copy_database
from muster_coordinator.store.opening import open_database
from muster_coordinator.store.store import Store
from muster_coordinator.store.tables import METADATA, STORY

LEVELS = LevelsRecord(baseline="b1", node="n1", levels={"0": ("GPU-1", 700.0, 2.5, ())})


def entry(number):
    """An entry of a story."""
    return AppendStory(StoryEntry(id=f"e{number}", node="n1", at=1.0, kind="found", text="é \\u0000", cause=None))


@pytest.fixture
async def old(tmp_path):
    """The URL of a database with something in it."""
    url = f"sqlite:///{tmp_path / 'old.db'}"
    store = await Store.open(Settings(store=StoreSettings(url=url)))
    await store.begin_epoch(1.0, "http://a")
    runs = [stored(make_run(number)) for number in range(1, 30)]
    await store.write([SaveNode(make_node("n1", START)), SaveLevels(LEVELS), *runs, *map(entry, range(5))])
    await store.close()
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def new(request, tmp_path):
    """The URL of a database that is empty, or not even there."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'new.db'}"
    return request.getfixturevalue("postgres").new_database()


async def rows_of(url):
    """All rows of all tables."""
    database = await open_database(Settings(store=StoreSettings(url=url)))
    async with database.reading() as connection:
        found = {
            table.name: sorted(map(repr, (tuple(row) for row in await connection.execute(select(table)))))
            for table in METADATA.sorted_tables
        }
    await database.close()
    return found


async def is_empty(url):
    """Whether there is nothing but what the migrations write."""
    return {table for table, rows in (await rows_of(url)).items() if rows} <= {"meta"}


async def copied(source, target):
    """Copies a database; returns how many rows of each table the caller was told of."""
    told: dict[str, int] = {}
    await copy_database(source, target, lambda table, found: told.__setitem__(table, found.rows))
    return told


async def test_every_row_is_copied(old, new, monkeypatch):
    """In parts; the copy of the copy is as the first one."""
    monkeypatch.setattr(copying, "ROWS_AT_A_TIME", 7)
    told = await copied(old, new)
    rows = await rows_of(old)
    assert told == {table: len(found) for table, found in rows.items()}
    assert (told["runs"], told["story"], told["nodes"], told["device_levels"]) == (29, 5, 1, 1)
    assert await rows_of(new) == rows


async def test_a_copy_is_written_on(old, new):
    """Entries of stories get numbers after those that were copied."""
    await copied(old, new)
    store = await Store.open(Settings(store=StoreSettings(url=new)))
    await store.begin_epoch(1.0, "http://b")
    await store.write([entry(5)])
    story = await store.story("n1", 10, None)
    await store.close()
    assert [each.id for each in story.items] == ["e5", "e4", "e3", "e2", "e1", "e0"]


async def test_a_database_that_is_not_empty_is_left_alone(old, new):
    """Whatever it has."""
    await copied(old, new)
    before = await rows_of(new)
    with pytest.raises(Refused, match="is not empty: table"):
        await copied(old, new)
    assert await rows_of(new) == before


async def test_a_copy_that_differs_is_undone(old, new, monkeypatch):
    """As if the new database had lost a row."""
    parts = copying._parts

    async def one_lost(table, connection, checksum):
        async for rows in parts(table, connection, checksum):
            yield rows[1:] if table is STORY else rows

    monkeypatch.setattr(copying, "_parts", one_lost)
    with pytest.raises(Unavailable, match=r"table story differs after the copy: .*rows=5.*rows=4"):
        await copied(old, new)
    monkeypatch.undo()
    assert await is_empty(new)


async def test_a_text_that_postgresql_cannot_hold_is_named(tmp_path, postgres):
    """A damaged row ends the copy, by its table."""
    url = f"sqlite:///{tmp_path / 'bad.db'}"
    database = await open_database(Settings(store=StoreSettings(url=url)))
    async with database.writing() as connection:
        await connection.execute(insert(STORY).values(node="n\x00", at=1.0, body="{}"))
    await database.close()
    new = postgres.new_database()
    with pytest.raises(Unavailable, match="a row of table story cannot be copied"):
        await copied(url, new)
    assert await is_empty(new)


async def test_there_must_be_something_to_copy(tmp_path, new):
    """A file that is not there is not made."""
    with pytest.raises(Refused, match="there is no database at"):
        await copied(f"sqlite:///{tmp_path / 'none.db'}", new)
    assert not (tmp_path / "none.db").exists()


async def test_a_database_in_use_is_not_copied(old, new):
    """A coordinator would go on writing."""
    store = await Store.open(Settings(store=StoreSettings(url=old)))
    with pytest.raises(Unavailable, match="another coordinator uses"):
        await copied(old, new)
    await store.close()


def test_the_command_says_what_it_has_copied(old, tmp_path, muster):
    """For people, or as JSON."""
    done = muster("store", "copy", old, f"sqlite:///{tmp_path / 'a.db'}")
    assert done.returncode == 0
    assert "runs: 29 rows, equal" in done.stdout
    done = muster("store", "copy", old, f"sqlite:///{tmp_path / 'b.db'}", "--json")
    assert json.loads(done.stdout)["tables"]["runs"] == 29
    done = muster("store", "copy", old, f"sqlite:///{tmp_path / 'b.db'}")
    assert (done.returncode, "is not empty" in done.stderr) == (64, True)
