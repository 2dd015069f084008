"""An open database: its connections and transactions, and the errors when it does not answer."""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from muster.errors import EX_IOERR, Unavailable
from muster.leader_lock import LeadershipLost
from muster.terminal import in_one_line
from muster_coordinator.store.rows import Unread, Unreadable
from muster_coordinator.store.tables import META


class DatabaseAway(Unavailable):
    """The database does not answer, or refuses what it did not refuse before."""


class WriteFailed(DatabaseAway):
    """The database can no longer be written, most often because the disk is full.

    A supervisor may restart the coordinator: it goes on as soon as the disk has space.
    """

    exit_code = EX_IOERR


class ReadFailed(Unreadable, DatabaseAway):
    """The database cannot be read."""


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
        self._is_closed = False
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

        Raises DatabaseAway after the end of the database. Nobody waits for the handler of a request whose client has
        left: it may ask for one then, which nobody would close.

        The pool may have to open the file first, which aiosqlite does in a thread. If the task were cancelled
        meanwhile, such as at the coordinator's end, the file would stay open: aiosqlite then drops the connection that
        the thread returns.
        """
        if self._is_closed:
            raise DatabaseAway("the database is closed: this coordinator ends")
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
        self._is_closed = True
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


def reason_of(error: Exception) -> str:
    """The error in one line. For a damaged file it also says what to do, because muster never deletes the file."""
    text = str(error.orig if isinstance(error, DBAPIError) else error) or type(error).__name__
    if isinstance(error, UnicodeDecodeError):
        text = error.object.decode(errors="replace")
    reason = in_one_line(text)
    if not any(word in reason.lower() for word in _DAMAGED):
        return reason
    return f"{reason}; the file is damaged: restore a backup, or move the file away to start with an empty database"
