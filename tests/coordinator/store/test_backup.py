"""A backup that is made while a coordinator writes is the database at one moment, from which one can go on."""

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
from contextlib import closing

import pytest
from benchmarks.private_postgres import DEBIAN
from tests.coordinator.conftest import running_coordinator
from tests.coordinator.takeover.conftest import reporting

from muster.client import Client
from muster.config import Settings, StoreSettings
from muster.errors import Refused, Unavailable
from muster_coordinator.store.backup import back_up
from muster_coordinator.store.store import Store

NODES = ("n1", "n2", "n3")


def runs_of(coordinator):
    """The numbers of the runs of each node, in order."""
    found: dict[str, list[int]] = {node: [] for node in NODES}
    for run in Client(coordinator.url).pages("runs")["items"]:
        found[run["node"]].append(run["seq"])
    return {node: sorted(numbers) for node, numbers in found.items()}


async def all_goes_on(restored, before):
    """A coordinator with the backup has the first runs of each node, and takes new ones."""
    found = await asyncio.to_thread(runs_of, restored)
    assert all(numbers == [*range(1, len(numbers) + 1)] for numbers in found.values()), found
    assert all(len(numbers) >= before for numbers in found.values()), found
    async with reporting(restored, *NODES) as nodes:
        async with asyncio.timeout(30):
            while not all(node.seq > 2 and not node.kept for node in nodes.values()):
                await asyncio.sleep(0.1)


@pytest.fixture
def more_settings():
    return {"MUSTER_HTTP__TRUST_LOOPBACK": "true"}


async def test_a_backup_of_sqlite_is_whole(coordinator, tmp_path, muster, more_settings):
    """Three nodes report all the time; the last of several backups has all that was stored before it was begun."""
    async with reporting(coordinator, *NODES) as nodes:
        for number in range(5):
            await asyncio.sleep(0.5)
            before = min(node.seq - len(node.kept) for node in nodes.values())
            copy = tmp_path / f"backup-{number}.db"
            done = await asyncio.to_thread(muster, "store", "backup", str(copy), env=coordinator.env)
            assert done.returncode == 0, done.stderr
            assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert before > 0
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
    directory = tmp_path / "restored"
    directory.mkdir(mode=0o700)
    shutil.copy(copy, directory / "muster.db")
    with running_coordinator(directory, **more_settings) as restored:
        await all_goes_on(restored, before)


async def test_a_dump_of_postgresql_is_whole(postgres, tmp_path, more_settings):
    """Made with its own tools, and restored into an empty database."""
    programs = os.pathsep.join(map(str, [*DEBIAN[::-1], os.environ["PATH"]]))
    pg_dump, psql = (shutil.which(name, path=programs) for name in ("pg_dump", "psql"))
    assert pg_dump is not None
    assert psql is not None
    old, new = postgres.new_database(), postgres.new_database()
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir(mode=0o700)
    with running_coordinator(first, MUSTER_STORE__URL=old, **more_settings) as running:
        async with reporting(running, *NODES) as nodes:
            await asyncio.sleep(2)
            before = min(node.seq - len(node.kept) for node in nodes.values())
            dump = await asyncio.to_thread(subprocess.run, [pg_dump, old], check=True, capture_output=True, timeout=60)
    await asyncio.to_thread(
        subprocess.run, [psql, "-v", "ON_ERROR_STOP=1", "-q", new], input=dump.stdout, check=True, timeout=60
    )
    with running_coordinator(second, MUSTER_STORE__URL=new, **more_settings) as restored:
        await all_goes_on(restored, before)


@pytest.fixture
async def settings(tmp_path):
    """Settings with a small database."""
    settings = Settings(data_dir=tmp_path)
    await (await Store.open(settings)).close()
    return settings


def test_what_is_there_is_not_overwritten(settings, tmp_path):
    """An earlier backup may be the only good one."""
    target = tmp_path / "backup.db"
    target.write_text("precious")
    with pytest.raises(Refused, match="exists: give the name of a new file"):
        back_up(settings, target)
    assert target.read_text() == "precious"


def test_without_a_database_there_is_nothing_to_copy(tmp_path):
    """With one at a server, that has its own tools."""
    with pytest.raises(Refused, match="there is no database yet"):
        back_up(Settings(data_dir=tmp_path / "none"), tmp_path / "backup.db")
    at_server = Settings(data_dir=tmp_path, store=StoreSettings(url="postgresql://u@h/d"))
    with pytest.raises(Refused, match="pg_dump"):
        back_up(at_server, tmp_path / "backup.db")


def test_a_place_that_cannot_be_written_is_named(settings, tmp_path):
    """And nothing is left there."""
    with pytest.raises(Unavailable, match=r"cannot write .*nowhere"):
        back_up(settings, tmp_path / "nowhere" / "backup.db")


def test_a_damaged_database_makes_no_backup(settings, tmp_path):
    """Somebody would rely on it."""
    file = tmp_path / "muster.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'meta'").fetchone()
    with file.open("r+b") as damaged:
        damaged.seek(4096 * (page - 1))
        damaged.write(b"\xff" * 4096)
    with pytest.raises(Unavailable, match="malformed"):
        back_up(settings, tmp_path / "backup.db")
    assert not (tmp_path / "backup.db").exists()
