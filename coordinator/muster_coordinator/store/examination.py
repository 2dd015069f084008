"""Looks at a database without changing it, also while a coordinator uses it."""

import time

from sqlalchemy import column, inspect, select, table, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from muster.config import Settings
from muster.doctor.setup_finding import SetupFinding
from muster.model import Verdict
from muster_coordinator.store.database import reason_of
from muster_coordinator.store.disk_budget import EARLY_SHARE, GB, used_bytes
from muster_coordinator.store.migrations import NEWEST
from muster_coordinator.store.opening import open_to_read

MOST_READ = 2e9
"""A larger database is not read as a whole: two gigabytes take some ten seconds."""

OLDEST_POSTGRESQL = 140_000
"""PostgreSQL 14, which can end a session that says nothing."""

CLOCKS_APART_S = 2.0

CHECK = "database"


async def examined(settings: Settings) -> tuple[SetupFinding, float]:
    """Whether the database can be used, and the bytes that it uses.

    Raises SettingsError if `store.url` is wrong, Unavailable if the file is empty.
    """
    engine = open_to_read(settings)
    if engine is None:
        return SetupFinding(CHECK, Verdict.PASS, "there is none yet; the coordinator creates it"), 0.0
    try:
        async with engine.connect() as connection:
            stored = await _schema(connection)
            used = 0.0 if stored is None else await used_bytes(connection)
            return SetupFinding(CHECK, *await _judged(connection, stored, used, settings.store.max_gb * GB)), used
    except (DBAPIError, OSError, UnicodeDecodeError) as error:
        return SetupFinding(CHECK, Verdict.FAIL, f"cannot be read: {reason_of(error)}"), 0.0
    finally:
        await engine.dispose()


async def _judged(connection: AsyncConnection, stored: str | None, used: float, most: float) -> tuple[Verdict, str]:
    is_sqlite = connection.dialect.name == "sqlite"
    if wrong := await (_wrong_in_file(connection, used) if is_sqlite else _wrong_at_server(connection)):
        return Verdict.FAIL, wrong
    if stored is not None and stored > NEWEST:
        return Verdict.FAIL, f"a newer muster wrote it (schema {stored}, this one knows {NEWEST}): install that one"
    size = f"{used / GB:.2f} GB of store.max_gb = {most / GB:g}"
    if used > EARLY_SHARE * most:
        return Verdict.WARN, f"{size}: the oldest detail goes soon; set store.max_gb higher, or run checks less often"
    if not is_sqlite and (apart := await _clocks_apart_s(connection)) > CLOCKS_APART_S:
        return Verdict.WARN, f"{size}; its server's clock and that of this host are {apart:.0f} s apart"
    news = f"; the coordinator upgrades it from schema {stored or 'none'} to {NEWEST}" if stored != NEWEST else ""
    return Verdict.PASS, size + news


async def _schema(connection: AsyncConnection) -> str | None:
    """The revision of its schema; None if it is empty."""
    if not await connection.run_sync(lambda sync: inspect(sync).has_table("alembic_version")):
        return None
    stored: str | None = await connection.scalar(select(column("version_num")).select_from(table("alembic_version")))
    return stored


async def _wrong_in_file(connection: AsyncConnection, used: float) -> str:
    """What is wrong with a file of SQLite; empty if nothing is."""
    if used > MOST_READ:
        return ""
    answer = await connection.scalar(text("PRAGMA quick_check(1)"))
    return "" if answer == "ok" else f"it is damaged ({answer}): stop the coordinator and restore a backup"


async def _wrong_at_server(connection: AsyncConnection) -> str:
    """The same for PostgreSQL."""
    version = int(await connection.scalar(text("SHOW server_version_num")) or 0)
    if version < OLDEST_POSTGRESQL:
        return f"the server is PostgreSQL {version // 10_000}; muster needs 14 or newer"
    if not await connection.scalar(text("SELECT has_schema_privilege(current_schema(), 'CREATE')")):
        return "the account may not create tables; let it own the database, or grant CREATE on its schema"
    return ""


async def _clocks_apart_s(connection: AsyncConnection) -> float:
    before = time.time()
    theirs = float(await connection.scalar(text("SELECT extract(epoch FROM clock_timestamp())")) or 0.0)
    return max(before - theirs, theirs - time.time(), 0.0)
