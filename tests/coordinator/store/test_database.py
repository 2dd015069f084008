"""The database's connections. What is stored in it stands with the store."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Coroutine
from itertools import count

import pytest

from muster.config import Settings
from muster_coordinator.store.database import DatabaseAway
from muster_coordinator.store.opening import open_database


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


class CancelledInWait(Coroutine):
    """Does the work of a coroutine, whose task is cancelled when it waits for the `number`th time, from 0."""

    def __init__(self, number, work):
        self._left, self._work = number, work

    def send(self, value):
        task, awaited = asyncio.current_task(), self._work.send(value)
        if self._left == 0 and task is not None:
            task.cancel()
        self._left -= 1
        return awaited

    def throw(self, *error):
        return self._work.throw(*error)

    def close(self):
        self._work.close()

    def __await__(self):
        return self


@pytest.fixture
def open_files(monkeypatch):
    """The connections to files that are not closed."""
    files = set()

    class Connection(sqlite3.Connection):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            files.add(self)

        def close(self):
            super().close()
            files.remove(self)

    connect = sqlite3.connect
    monkeypatch.setattr("sqlite3.connect", lambda *args, **options: connect(*args, factory=Connection, **options))
    return files


async def test_no_file_is_left_open_wherever_its_opening_or_its_closing_is_cancelled(tmp_path, open_files):
    """In each of the waits of both, one after the other."""

    async def open_and_close():
        await (await open_database(Settings(data_dir=tmp_path))).close()

    await open_and_close()  # creates the tables
    for number in count():
        task = asyncio.create_task(CancelledInWait(number, open_and_close()))
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert not open_files, f"cancelled in wait {number}"
        if not task.cancelled():
            break
    assert number > 2


async def test_closing_waits_for_a_user_that_is_cancelled_and_has_not_ended(tmp_path, open_files):
    """As aiohttp leaves the handlers of requests at the end of its server."""
    database, reads = await open_database(Settings(data_dir=tmp_path)), asyncio.Event()

    async def read():
        async with database.reading():
            reads.set()
            await asyncio.Event().wait()

    user = asyncio.create_task(read())
    await reads.wait()
    user.cancel()
    await database.close()
    assert not open_files
    with pytest.raises(asyncio.CancelledError):
        await user


@pytest.mark.parametrize("use", ["reading", "writing"])
async def test_a_closed_database_opens_no_file(tmp_path, open_files, use):
    """For who comes after its end, such as the handler of a request whose client has left."""
    database = await open_database(Settings(data_dir=tmp_path))
    await database.close()
    with pytest.raises(DatabaseAway, match="closed"):
        async with getattr(database, use)():
            raise AssertionError("there is no connection")
    assert not open_files


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
