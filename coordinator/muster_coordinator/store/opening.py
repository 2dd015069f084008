"""Opens the database of the settings: finds it, locks it and updates its schema."""

import fcntl
import os
import sqlite3
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, String, column, event, inspect, make_url, select, table, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from muster.config import Settings
from muster.errors import SettingsError, Unavailable
from muster.extras import missing_package
from muster_coordinator.store.database import Database, DatabaseAway, reason_of
from muster_coordinator.store.migrations import NEWEST

_NO_URL = "is not the URL of a database; use for example sqlite:////var/lib/muster/muster.db"

_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
}


SESSION_NAME = "muster leader"
"""The `application_name` of the sessions that a leader reads and writes in. The next leader ends them."""

END_EARLIER_SESSIONS = text(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
    "WHERE application_name = :name AND datname = current_database() AND usename = current_user"
).bindparams(name=SESSION_NAME)
"""An account may always end sessions of its own."""


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

    Raises SettingsError if `store.url` is wrong, Unavailable for an empty file. The first read shows whether a server
    answers and its schema fits.
    """
    url = _url(settings)
    if url.get_backend_name() == "sqlite":
        if not url.database or not Path(url.database).is_file():
            return None
        _require_content(Path(url.database))
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


def _shown(url: URL) -> str:
    """The file, or the URL of a server without driver, password and query, which may hold another password."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.set(drivername=url.get_backend_name(), query={}).render_as_string()


def _prepare_file(path: Path) -> int:
    """Creates the file and its directory and locks it against a second coordinator. Returns the lock's descriptor."""
    with ExitStack() as at_failure:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            at_failure.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists():
                os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
                _require_content(path)
            else:
                _create(Path(os.path.realpath(path)))
        except BlockingIOError:
            what = f"another coordinator uses {path}: stop it, or set another data_dir or store.url"
            raise Unavailable(what) from None
        except (OSError, sqlite3.Error) as error:
            raise _cannot_open(path, error) from None
        at_failure.pop_all()
    return lock


def _require_content(path: Path) -> None:
    """Raises Unavailable for an empty file, as a failed restore leaves it. SQLite would take it for a new database."""
    if path.stat().st_size == 0:
        raise Unavailable(
            f"the database {path} is an empty file: restore a backup, or remove the file to begin without history"
        )


def _create(path: Path) -> None:
    """Creates an empty database for its owner only. The file has SQLite's header before it gets its name.

    So muster itself never leaves an empty file, neither when it is killed nor when the disk is full.
    """
    unnamed = path.with_name(f".{path.name}.partial")
    os.close(os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(unnamed)) as database:
        database.execute("PRAGMA journal_mode=WAL")
    unnamed.rename(path)


def _cannot_open(path: Path, error: OSError | sqlite3.Error) -> Unavailable:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    if isinstance(error, FileExistsError):
        reason = f"{error.filename} is no directory"
    return Unavailable(f"cannot open the database {path}: {reason}; set data_dir or store.url")


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
