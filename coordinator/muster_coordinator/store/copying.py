"""Copies a whole database into an empty one, such as from SQLite to PostgreSQL, and compares both.

Everything is copied in one transaction: a copy that is interrupted or differs leaves nothing behind. Copied are rows of
the newest schema, so the source is migrated first. Both must be without a coordinator.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from sqlalchemy import Table, delete, func, insert, literal_column, make_url, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from muster.config import Settings, StoreSettings
from muster.errors import Refused, Unavailable
from muster_coordinator.store.database import Database, reason_of
from muster_coordinator.store.opening import open_database, open_to_read
from muster_coordinator.store.tables import META, METADATA

ROWS_AT_A_TIME = 1_000


@dataclass(slots=True)
class Checksum:
    """The number of rows of a table, and the sum of their digests, which does not depend on their order."""

    rows: int = 0
    total: int = 0

    def add(self, row: Sequence[Any]) -> None:
        """Counts a row in."""
        self.rows += 1
        digest = blake2b(repr([*row]).encode("utf-8", "surrogateescape"), digest_size=8)
        self.total = (self.total + int.from_bytes(digest.digest())) % 2**64


async def copy_database(source: str, target: str, tell: Callable[[str, Checksum], None]) -> None:
    """Copies the database at the URL `source` to the empty one at `target`; `tell` hears of each table that is equal.

    Raises Refused if `source` is not there or `target` is not empty, Unavailable if one of them cannot be opened, is in
    use, or refuses a row.
    """
    _require_file(source)
    async with _opened(source) as old, _opened(target) as new, new.writing() as into, old.reading() as out_of:
        await _require_empty(into, target)
        for table in METADATA.sorted_tables:
            tell(table.name, await _copied(table, out_of, into))


def _require_file(source: str) -> None:
    """A database of SQLite that is not there would be created."""
    if open_to_read(_settings(source)) is None:
        raise Refused(f"there is no database at {make_url(source).database}: FROM must be that of a coordinator")


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Database]:
    database = await open_database(_settings(url))
    try:
        yield database
    finally:
        await database.close()


def _settings(url: str) -> Settings:
    return Settings(store=StoreSettings(url=url))


async def _require_empty(connection: AsyncConnection, target: str) -> None:
    """Refuses a database that has been used. The migrations write into META, which is deleted."""
    await connection.execute(delete(META))
    for table in METADATA.sorted_tables:
        if await connection.scalar(select(func.count()).select_from(table)):
            shown = make_url(target).render_as_string()
            raise Refused(f"the database {shown} is not empty: table {table.name} has rows; TO must be a new database")


async def _copied(table: Table, out_of: AsyncConnection, into: AsyncConnection) -> Checksum:
    """Copies a table. Returns the checksum, which is that of what the target has then."""
    read = Checksum()
    async for rows in _parts(table, out_of, read):
        try:
            await into.execute(insert(table), rows)
        except (DBAPIError, UnicodeEncodeError) as error:
            raise Unavailable(f"a row of table {table.name} cannot be copied: {reason_of(error)}") from None
    written = Checksum()
    async for _ in _parts(table, into, written):
        pass
    if written != read:
        raise Unavailable(f"table {table.name} differs after the copy: {read} was read, {written} was written")
    await _set_sequence(table, into)
    return written


async def _parts(table: Table, connection: AsyncConnection, checksum: Checksum) -> AsyncIterator[list[dict[str, Any]]]:
    """The rows of a table, a thousand at a time; each is counted in."""
    found = await connection.stream(select(table).execution_options(yield_per=ROWS_AT_A_TIME))
    async for part in found.mappings().partitions():
        for row in part:
            checksum.add([*row.values()])
        yield [dict(row) for row in part]


async def _set_sequence(table: Table, connection: AsyncConnection) -> None:
    """Lets PostgreSQL count on after the last number; SQLite looks at the rows themselves."""
    column = table.autoincrement_column
    if column is None or connection.dialect.name != "postgresql":
        return
    sequence = await connection.scalar(
        text("SELECT pg_get_serial_sequence(:table, :column)").bindparams(table=table.name, column=column.name)
    )
    last = await connection.scalar(select(func.max(column)))
    if sequence is not None and last is not None:
        await connection.execute(select(func.setval(sequence, literal_column(str(int(last))))))
