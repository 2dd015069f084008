"""The database's connections. What is stored in it stands with the store."""

import asyncio
import sqlite3
import threading

import pytest

from muster.config import Settings
from muster_coordinator.store.database import open_database


def open_slowly(monkeypatch):
    """From now on, whatever opens a file sets `begun` and waits for `may_end`; `closed` says which are closed again."""

    class Opening:
        begun, may_end = threading.Event(), threading.Event()
        closed: list[bool] = []

    class Connection(sqlite3.Connection):
        def __init__(self, *args, **options):
            Opening.begun.set()
            assert Opening.may_end.wait(20)
            super().__init__(*args, **options)
            Opening.closed.append(False)

        def close(self):
            super().close()
            Opening.closed[-1] = True

    connect = sqlite3.connect
    monkeypatch.setattr("sqlite3.connect", lambda *args, **options: connect(*args, factory=Connection, **options))
    return Opening


@pytest.mark.parametrize("use", ["reading", "writing"])
async def test_a_file_is_closed_when_its_user_is_cancelled_while_it_is_opened(tmp_path, monkeypatch, use):
    """The pool opens the file once more for each of those that use it at the same time."""
    database = await open_database(Settings(data_dir=tmp_path))

    async def use_it():
        async with getattr(database, use)():
            raise AssertionError("it was cancelled before it had a connection")

    async with database.reading():
        opening = open_slowly(monkeypatch)
        user = asyncio.create_task(use_it())
        assert await asyncio.to_thread(opening.begun.wait, 20)
        user.cancel()
        opening.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await user
    await database.close()
    assert opening.closed == [True]


async def test_closing_the_database_waits_for_a_connection_that_nobody_waits_for(tmp_path, monkeypatch):
    """Its user was cancelled twice: while the connection was opened, and while it was to be closed again."""
    database = await open_database(Settings(data_dir=tmp_path))
    await database.engine.dispose()  # so that the user has to open a connection

    async def use_it():
        async with database.reading():
            raise AssertionError("it was cancelled before it had a connection")

    opening = open_slowly(monkeypatch)
    user = asyncio.create_task(use_it())
    assert await asyncio.to_thread(opening.begun.wait, 20)
    user.cancel()
    await asyncio.sleep(0)  # the user begins to close the connection
    user.cancel()
    with pytest.raises(asyncio.CancelledError):
        await user
    closing = asyncio.create_task(database.close())
    await asyncio.sleep(0)
    opening.may_end.set()
    await closing
    assert opening.closed == [True]
