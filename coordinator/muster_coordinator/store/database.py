"""Opens the database: finds it, locks it and updates its schema."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, String, column, event, inspect, make_url, select, table, text
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
    NotSupportedError,
    ProgrammingError,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from muster.config import Settings
from muster.errors import SettingsError, Unavailable
from muster.extras import missing_package
from muster.leader_lock import LeadershipLost
from muster.terminal import in_one_line
from muster_coordinator.store.migrations import NEWEST
from muster_coordinator.store.rows import Unread, Unreadable
from muster_coordinator.store.tables import META

_NO_URL = "is not the URL of a database; use for example sqlite:////var/lib/muster/muster.db"

_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
}


class DatabaseAway(Unavailable):
    """The database does not answer, or refuses what it did not refuse before."""


class WriteFailed(DatabaseAway):
    """The database can no longer be written, most often because the disk is full.

    A supervisor may restart the coordinator: it goes on as soon as the disk has space.
    """

    exit_code = 74  # an input or output error (sysexits.h)


class ReadFailed(Unreadable, DatabaseAway):
    """The database cannot be read."""


SESSION_NAME = "muster leader"
"""The `application_name` of the sessions that a leader reads and writes in. The next leader ends them."""

END_EARLIER_SESSIONS = text(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
    "WHERE application_name = :name AND datname = current_database() AND usename = current_user"
).bindparams(name=SESSION_NAME)
"""An account may always end sessions of its own."""

FREE_WITHIN_S = 5.0
"""How long the end of the database waits for connections in use. Their users have been cancelled, but a server that
does not answer may keep them.
"""

_OUR_MISTAKES = (DataError, IntegrityError, NotSupportedError, ProgrammingError)
"""The errors that a driver raises for a wrong statement, not for a broken database."""

_DAMAGED = ("malformed", "not a database", "corrupt", "could not decode")
"""Words in the errors of SQLite for a file that is damaged or no database."""


class Database:
    """An open database with the newest schema. A SQLite file has one coordinator at a time.

    `unread` counts the rows that were left out because they cannot be read.
    """

    def __init__(self, engine: AsyncEngine, lock: int | None) -> None:
        self.engine = engine
        self.unread = Unread()
        self._lock = lock
        self._epoch: str | None = None
        self._in_use: set[asyncio.Task[None]] = set()

    def write_only_in(self, epoch: int) -> None:
        """From now on refuses to write after the epoch of the leader has changed. Only a server can be shared."""
        if self.engine.dialect.name != "sqlite":
            self._epoch = str(epoch)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction. Raises WriteFailed if the database refuses it, LeadershipLost if another leader has begun."""
        try:
            async with self.connected() as connection, connection.begin():
                if self._epoch is not None:
                    await _require_epoch(connection, self._epoch)
                yield connection
        except _OUR_MISTAKES:
            raise
        except (DBAPIError, OSError) as error:  # OSError: nothing listens there
            raise WriteFailed(f"the database cannot be written: {reason_of(error)}") from None

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A connection for reading. Raises ReadFailed if the database cannot be read."""
        try:
            async with self.connected() as connection:
                yield connection
        except _OUR_MISTAKES:
            raise
        except (DBAPIError, OSError) as error:
            raise ReadFailed(f"the database cannot be read: {reason_of(error)}") from None

    async def close(self) -> None:
        """Closes all connections. A cancellation does not interrupt it: an open connection would outlive the loop."""
        await _uninterrupted(self._close())

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[AsyncConnection]:
        """A connection from the pool, with the errors of the driver. No cancellation leaves it open.

        The pool may have to open the file first, which aiosqlite does in a thread. If the task were cancelled
        meanwhile, such as at the coordinator's end, the file would stay open: aiosqlite then drops the connection that
        the thread returns.
        """
        connection, is_over = self.engine.connect(), asyncio.Event()
        opening = asyncio.ensure_future(connection.start())
        use = asyncio.create_task(_closed_after(is_over, connection, opening))
        self._in_use.add(use)
        use.add_done_callback(self._in_use.discard)
        try:
            await asyncio.shield(opening)
            yield connection
        finally:
            is_over.set()
            await asyncio.shield(use)

    async def _close(self) -> None:
        """Closes the connections in use as soon as they are free, because the pool closes only idle ones.

        The server of the API cancels its handlers at its end, and does not wait until they have ended.
        """
        if self._in_use:
            await asyncio.wait(self._in_use, timeout=FREE_WITHIN_S)
        await self.engine.dispose()
        if self._lock is not None:
            os.close(self._lock)


async def _uninterrupted(work: Coroutine[None, None, None]) -> None:
    """Does the work to its end, and only then lets a cancellation take effect."""
    task, cancelled = asyncio.create_task(work), None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    await task
    if cancelled is not None:
        raise cancelled


async def _require_epoch(connection: AsyncConnection, epoch: str) -> None:
    """Raises LeadershipLost if the epoch is another one. A new leader waits for the transactions that have asked."""
    query = select(META.c.value).where(META.c.key == "epoch").with_for_update(read=True)
    if await connection.scalar(query) != epoch:
        raise LeadershipLost("another coordinator has begun to lead the fleet; it has the newer epoch in the database")


async def _closed_after(is_over: asyncio.Event, connection: AsyncConnection, opening: asyncio.Future[Any]) -> None:
    """Closes the connection when its use is over and it is open, unless it could not be opened."""
    await is_over.wait()
    await asyncio.wait((opening,))
    if not opening.exception():
        await connection.close()


async def end_earlier_sessions(settings: Settings) -> None:
    """Ends what earlier leaders have begun and not stored. Raises DatabaseAway if the server does not answer.

    A leader that is paused in a transaction would keep the next one waiting. No timeout of the server ends all of these
    sessions: one that has prepared a statement and not executed it counts as busy.
    """
    engine = engine_without_pool(settings)
    if engine.dialect.name == "sqlite":
        return
    try:
        async with engine.connect() as connection:
            await connection.execute(END_EARLIER_SESSIONS)
    except (DBAPIError, OSError) as error:
        raise DatabaseAway(f"cannot open the database {_shown(_url(settings))}: {reason_of(error)}") from None


async def open_database(settings: Settings) -> Database:
    """The database of these settings. Raises DatabaseAway if it cannot be opened, SettingsError for a wrong URL."""
    url = _url(settings)
    engine = _engine(url)
    lock = None
    if engine.dialect.name == "sqlite":
        lock = _prepare_file(Path(url.database)) if url.database and url.database != ":memory:" else None
        event.listen(engine.sync_engine, "connect", _configure)
        # Many rows in one statement, because SQLite's thread waits for the interpreter's lock at each statement.
        engine.dialect.use_insertmanyvalues_wo_returning = True
    else:
        event.listen(engine.sync_engine, "connect", _name_session)
    database = Database(engine, lock)
    try:
        await _try_options(database)
        async with database.connected() as connection, connection.begin():
            await connection.run_sync(_upgrade)
    except (DBAPIError, OSError, UnicodeDecodeError) as error:
        await database.close()
        raise DatabaseAway(f"cannot open the database {_shown(url)}: {reason_of(error)}") from None
    except BaseException:
        await database.close()
        raise
    return database


def _upgrade(connection: Connection) -> None:
    """Upgrades the schema unless it is the newest. Raises Unavailable if a newer muster wrote it."""
    if inspect(connection).has_table("alembic_version"):
        stored = connection.scalars(select(column("version_num", String)).select_from(table("alembic_version")))
        if stored.all() == [NEWEST]:
            return
    from muster_coordinator.store.migrations.upgrade import upgrade  # noqa: PLC0415 (Alembic takes 0.2 s)

    upgrade(connection)


async def _try_options(database: Database) -> None:
    """Connects once. Raises SettingsError if the driver refuses an option of the URL.

    The driver's own error would quote the option, which may be a password.
    """
    try:
        async with database.connected():
            pass
    except UnicodeDecodeError:  # SQLite quotes a damaged schema
        raise
    except (TypeError, ValueError):
        raise SettingsError("store.url: the driver refuses an option after the `?`; remove or correct it") from None


def open_to_read(settings: Settings) -> AsyncEngine | None:
    """The database of these settings for reading, while a coordinator may use it; None if there is no such file.

    Raises SettingsError if `store.url` is wrong. The first read shows whether a server answers and its schema fits.
    """
    url = _url(settings)
    if url.get_backend_name() == "sqlite":
        if not url.database or not Path(url.database).is_file():
            return None
        file = f"file:{quote(str(Path(url.database).absolute()))}"
        url = url.set(database=file, query={"mode": "ro", "uri": "true"})
    return _engine(url)


def engine_without_pool(settings: Settings) -> AsyncEngine:
    """An engine for sessions of their own, which end when they are closed. Raises SettingsError for a wrong URL."""
    return _engine(_url(settings), poolclass=NullPool)


def _engine(url: URL, **options: Any) -> AsyncEngine:
    try:
        return create_async_engine(url, **options)
    except (ArgumentError, TypeError, ValueError):  # each error may quote a part of the URL
        raise SettingsError(f"store.url: {_NO_URL}") from None
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        if to_install := missing_package(error):
            raise Unavailable(f"store.url: {to_install}") from None
        raise SettingsError(f"store.url: no driver for {url.drivername}: {error}") from None


def _url(settings: Settings) -> URL:
    text = settings.store.url
    if text is None:
        return URL.create("sqlite+aiosqlite", database=str(settings.data_dir / "muster.db"))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # both errors may quote a part of the URL
        raise SettingsError(f"store.url: {_NO_URL}") from None
    return url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))


def reason_of(error: Exception) -> str:
    """The error in one line. For a damaged file it also says what to do, because muster never deletes the file."""
    text = str(error.orig if isinstance(error, DBAPIError) else error) or type(error).__name__
    if isinstance(error, UnicodeDecodeError):
        text = error.object.decode(errors="replace")
    reason = in_one_line(text)
    if not any(word in reason.lower() for word in _DAMAGED):
        return reason
    return f"{reason}; the file is damaged: restore a backup, or move the file away to start with an empty database"


def _shown(url: URL) -> str:
    """The URL without its password and without its query, which may hold another password."""
    return url.set(query={}).render_as_string()


def _prepare_file(path: Path) -> int:
    """Creates the file and its directory and locks it against a second coordinator. Returns the lock's descriptor."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(f"cannot open the database {path}: {error.strerror}; set data_dir or store.url") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise Unavailable(f"another coordinator uses {path}: stop it, or set another data_dir or store.url") from None
    return lock


def _configure(connection: Any, _record: Any) -> None:
    """Sets up a new connection to SQLite.

    WAL lets the API read while the pipeline writes; NORMAL survives the crash of the process. With `surrogateescape` a
    damaged text spoils its own row and not the whole answer: the code that reads the row refuses it.
    """
    connection.driver_connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    try:
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=10000"):
            connection.execute(f"PRAGMA {pragma}").close()
    except BaseException:
        connection.close()  # the pool does not own the connection yet, and its thread would outlive the process's end
        raise


def _name_session(connection: Any, _record: Any) -> None:
    """Lets the next leader find this session on the server."""
    cursor = connection.cursor()
    try:
        cursor.execute(f"SET SESSION application_name = '{SESSION_NAME}'")
    finally:
        cursor.close()
    connection.commit()
