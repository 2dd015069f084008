"""The leader's lock in a real PostgreSQL: at most one holds it, and knows until when."""

import asyncio
import math
import time
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import make_url, text

from muster.config import Config, Settings, StoreSettings
from muster.errors import Unavailable
from muster.leader_lock import LeadershipLost
from muster.plugins import Plugins
from muster_coordinator.runtime.leadership import postgres_lock
from muster_coordinator.runtime.leadership.leader_lock import OnlyCoordinator, leader_lock_of
from muster_coordinator.runtime.leadership.postgres_lock import PostgresLock
from muster_coordinator.store.database import WriteFailed
from muster_coordinator.store.store import Store


@pytest.fixture(autouse=True)
def short_times(monkeypatch):
    """A session ends after a second of silence."""
    for name, seconds in {"SILENT_S": 1.0, "PING_S": 0.2, "MARGIN_S": 0.3}.items():
        monkeypatch.setattr(postgres_lock, name, seconds)


@pytest.fixture
def settings(postgres, tmp_path):
    """Settings with an empty database."""
    return Settings(data_dir=tmp_path, store=StoreSettings(url=postgres.new_database()))


class Line:
    """A way to the server. After `cut` it passes on one more message of the client, and then not even its end."""

    def __init__(self, directory):
        self._directory = directory
        self._left = math.inf
        self._is_over = asyncio.Event()

    @asynccontextmanager
    async def open(self, server):
        """The directory with the socket of this way to the `server`."""
        self._server = server
        path = self._directory / ".s.PGSQL.5432"
        async with await asyncio.start_unix_server(self._pass_on, path):
            yield self._directory
            self._is_over.set()

    def cut(self):
        self._left = 1

    async def _pass_on(self, reader, writer):
        answers, questions = await asyncio.open_unix_connection(f"{self._server}/.s.PGSQL.5432")
        answering = asyncio.create_task(self._answers(answers, writer))
        while chunk := await reader.read(65536):
            if self._left > 0:
                questions.write(chunk)
            self._left -= 1
        if self._left < math.inf:
            await self._is_over.wait()
        questions.close()
        await answering

    async def _answers(self, answers, writer):
        while chunk := await answers.read(65536):
            writer.write(chunk)
        writer.close()


@pytest.fixture
async def locks(settings):
    """Makes locks of coordinators that share the database."""
    made: list[PostgresLock] = []

    def make() -> PostgresLock:
        lock = lock_of(settings)
        assert isinstance(lock, PostgresLock)
        made.append(lock)
        return lock

    yield make
    for lock in made:
        await lock.release()


def lock_of(settings):
    return leader_lock_of(settings, Plugins(Config(settings)), "http://a:1")


async def acquired(lock):
    """Waits until the lock is taken."""
    async with asyncio.timeout(20):
        while not await lock.try_acquire():
            await asyncio.sleep(0.05)


async def test_one_leads_until_it_steps_down(locks):
    """Then another one does at once."""
    first, second = locks(), locks()
    assert [await first.try_acquire(), await second.try_acquire()] == [True, False]
    await first.release()
    assert [await second.try_acquire(), await first.try_acquire()] == [True, False]


async def test_a_standby_knows_the_leader(locks, settings, monkeypatch):
    """By the URL that it stored when it began; before there is a table, nobody is known."""
    monkeypatch.setattr(postgres_lock, "SILENT_S", 60.0)  # both say nothing while the store is opened
    first, second = locks(), locks()
    await first.try_acquire()
    await second.try_acquire()
    assert second.leader_url is None
    store = await Store.open(settings)
    await store.begin_epoch(1.0, "http://a:1")
    await store.close()
    await second.try_acquire()
    assert second.leader_url == "http://a:1"


async def test_who_keeps_the_lock_is_certain_of_it(locks):
    """For longer than a silent session lasts."""
    lock, other = locks(), locks()
    await lock.try_acquire()
    keeping = asyncio.create_task(lock.keep())
    for _ in range(10):
        await asyncio.sleep(0.2)
        async with asyncio.timeout(0.1):
            await lock.confirm()
        assert not await other.try_acquire()
    keeping.cancel()


async def test_a_leader_that_says_nothing_loses_the_lock(locks):
    """As one that is paused: it is uncertain before another one leads, and finds out that it does not lead."""
    paused, other = locks(), locks()
    began = time.monotonic()
    await paused.try_acquire()
    await asyncio.wait_for(paused.confirm(), 5)
    await acquired(other)
    assert time.monotonic() - began >= postgres_lock.SILENT_S
    confirming = asyncio.create_task(paused.confirm())
    with pytest.raises(LeadershipLost, match="session"):
        await asyncio.wait_for(paused.keep(), 5)
    assert not confirming.done()
    confirming.cancel()


async def test_a_leader_that_is_paused_in_a_statement_holds_nobody_up(locks, settings):
    """It has prepared a statement in a transaction, and does not execute it: no timeout of the server ends that."""
    paused, other = locks(), locks()
    await paused.try_acquire()
    store = await Store.open(settings)
    epoch = await store.begin_epoch(1.0, "http://a:1")
    with pytest.raises(WriteFailed, match="closed"):
        async with store.database.writing() as connection:
            session = await connection.get_raw_connection()
            assert session.driver_connection is not None
            await session.driver_connection.prepare("SELECT value FROM meta")
            await paused.release()
            await acquired(other)
            later = await Store.open(settings)
            async with asyncio.timeout(5):
                assert await later.begin_epoch(1.0, "http://b:1") > epoch
            await later.close()
            await connection.execute(text("SELECT 1"))
    await store.close()


async def test_a_leader_that_is_paused_in_a_question_loses_the_lock(settings, locks, tmp_path):
    """Its last message to the server is the first one with the lock."""
    url, line = make_url(settings.store.url), Line(tmp_path)
    async with line.open(url.query["host"]) as way:
        behind = url.set(query={"host": str(way)}).render_as_string(hide_password=False)
        paused = lock_of(Settings(data_dir=tmp_path, store=StoreSettings(url=behind)))
        await paused.try_acquire()
        line.cut()
        keeping = asyncio.create_task(paused.keep())
        await acquired(locks())
        with pytest.raises(LeadershipLost, match="is over"):
            await asyncio.wait_for(keeping, 10)
        await paused.release()


async def test_a_session_that_the_server_ends_is_lost(locks):
    """By a person, or by a failover."""
    lock = locks()
    await lock.try_acquire()
    async with leader_engine(lock).connect() as connection:
        await connection.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        )
    with pytest.raises(LeadershipLost, match="is over"):
        await asyncio.wait_for(lock.keep(), 5)


async def test_a_pool_that_shares_sessions_is_noticed(locks):
    """The lock would belong to a session that others use."""
    lock = locks()
    await lock.try_acquire()
    await lock._connection.execute(text("SELECT pg_advisory_unlock_all()"))
    with pytest.raises(LeadershipLost, match="not to a pool that shares sessions"):
        await asyncio.wait_for(lock.keep(), 5)


async def test_a_server_that_is_away_comes_back(locks, postgres):
    """Nobody leads meanwhile. Then somebody does, without a restart of the coordinator."""
    lock = locks()
    await lock.try_acquire()
    postgres.stop()
    with pytest.raises(LeadershipLost):
        await asyncio.wait_for(lock.keep(), 5)
    await lock.release()
    assert [await lock.try_acquire() for _ in range(3)] == [False] * 3
    assert lock.leader_url is None
    postgres.start()
    await acquired(lock)


async def test_a_server_that_never_answered_is_a_mistake(tmp_path):
    """It says where it was looked for, and not for ever."""
    away = Settings(data_dir=tmp_path, store=StoreSettings(url=f"postgresql://u@/d?host={tmp_path}"))
    with pytest.raises(Unavailable, match=r"of store\.url"):
        await lock_of(away).try_acquire()


async def test_a_coordinator_with_a_file_has_no_rivals(tmp_path):
    """Its database locks itself."""
    lock = lock_of(Settings(data_dir=tmp_path))
    assert isinstance(lock, OnlyCoordinator)
    assert await lock.try_acquire()
    await lock.confirm()


def leader_engine(lock):
    """The engine of a lock, for a session of another."""
    return lock._engine
