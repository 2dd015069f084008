"""Opening the database: whose file it is, and what is said when it cannot be had."""

import contextlib
import sqlite3
from typing import NoReturn

import pytest

from muster.config import Settings, StoreSettings
from muster.errors import SettingsError, Unavailable
from muster_coordinator.store.opening import open_to_read
from muster_coordinator.store.store import Store


async def test_a_second_coordinator_is_refused(store, settings):
    """One SQLite file has one coordinator."""
    with pytest.raises(Unavailable, match="another coordinator uses"):
        await Store.open(settings)


async def test_the_directory_is_made_for_its_owner_only(settings):
    """Nobody else on the machine reads the database."""
    await (await Store.open(settings)).close()
    assert settings.data_dir.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("nonsense", SettingsError, "store.url"),
        ("oracle://host/db", SettingsError, "store.url"),
        ("sqlite:////proc/none/muster.db", Unavailable, "cannot open the database /proc/none"),
        ("sqlite:////etc/passwd/muster.db", Unavailable, "muster.db: /etc/passwd is no directory; set data_dir"),
    ],
)
async def test_a_database_that_cannot_be_had_is_named(url, error, message):
    """Wrong URLs are wrong settings; what cannot be opened is unavailable."""
    with pytest.raises(error, match=message):
        await Store.open(Settings(store=StoreSettings(url=url)))


async def test_a_file_that_is_no_database_is_named(settings):
    """Garbage in the place of the database is refused and left as it is."""
    settings.data_dir.mkdir()
    (settings.data_dir / "muster.db").write_bytes(b"garbage" * 1000)
    with pytest.raises(Unavailable, match="not a database"):
        await Store.open(settings)


async def test_an_empty_file_is_no_new_database(settings):
    """A failed restore leaves one. The coordinator refuses to begin without history, and so does what only reads."""
    settings.data_dir.mkdir()
    (settings.data_dir / "muster.db").touch()
    with pytest.raises(
        Unavailable, match=r"muster\.db is an empty file: restore a backup, or remove the file to begin"
    ):
        await Store.open(settings)
    with pytest.raises(Unavailable, match="is an empty file"):
        open_to_read(settings)
    (settings.data_dir / "muster.db").unlink()
    await (await Store.open(settings)).close()


async def test_muster_itself_leaves_no_empty_file(settings, monkeypatch):
    """A coordinator that is killed, or finds the disk full, while it creates the database can start again."""

    def full(*_: object) -> NoReturn:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("muster_coordinator.store.opening.sqlite3.connect", full)
        with pytest.raises(Unavailable, match=r"cannot open the database .*muster\.db: database or disk is full"):
            await Store.open(settings)
    assert not (settings.data_dir / "muster.db").exists()
    await (await Store.open(settings)).close()
    assert (settings.data_dir / "muster.db").stat().st_mode & 0o777 == 0o600


async def test_a_path_that_cannot_be_a_file_is_named(tmp_path):
    """A directory in the place of the database is refused."""
    (tmp_path / "taken").mkdir()
    with pytest.raises(Unavailable, match="cannot open the database"):
        await Store.open(Settings(store=StoreSettings(url=f"sqlite:///{tmp_path}/taken")))


async def test_a_database_that_cannot_be_written_is_told(store, settings):
    """Readiness asks for a commit, not only for a connection."""
    await store.check_writable()
    with contextlib.closing(sqlite3.connect(settings.data_dir / "muster.db")) as connection:
        connection.execute("DROP TABLE meta")
    with pytest.raises(Unavailable, match="cannot be written"):
        await store.check_writable()


async def test_a_database_in_memory_leaves_no_file(tmp_path, monkeypatch):
    """Nothing is made in the current directory to lock."""
    monkeypatch.chdir(tmp_path)
    store = await Store.open(Settings(store=StoreSettings(url="sqlite:///:memory:")))
    await store.check_writable()
    await store.close()
    assert not [*tmp_path.iterdir()]
