"""The leader holds an advisory lock of the database, in a session of its own.

The session, and the lock with it, ends when the leader's connection does, as when the process is killed. The connection
of a paused process or of a host that is gone stays open. So the server ends the session also when it has heard nothing
for SILENT_S; the leader says something every PING_S. So the leader knows until when nobody else can hold the lock:
until SILENT_S after it sent what the server has answered last.

No timeout ends a session that has prepared a statement and not executed it: the server counts it as busy. So the
statements are prepared before the lock is taken; with the lock, the session only executes, in one message for each.
"""

import asyncio
from contextlib import suppress

import structlog
from sqlalchemy import BigInteger, bindparam, select, text
from sqlalchemy.exc import DBAPIError, ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from muster.errors import Unavailable
from muster.leader_lock import Certainty, LeadershipLost
from muster_coordinator.store.database import reason_of
from muster_coordinator.store.tables import META

LOCK = int.from_bytes(b"muster", "big")
"""The number of the lock. Advisory locks have numbers, which all users of a database share."""

SILENT_S = 6.0
"""How long the server keeps the session of a leader that says nothing."""

PING_S = 1.5

MARGIN_S = 1.0
"""How much earlier than the server the leader takes its session for over."""

ANSWERED_WITHIN_S = 4.0

TAKE_IT = text("SELECT pg_try_advisory_lock(:lock)").bindparams(bindparam("lock", LOCK, BigInteger))

HOLDS_IT = text(
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted "
    "AND classid = :upper AND objid = :lower"
).bindparams(bindparam("upper", LOCK >> 32, BigInteger), bindparam("lower", LOCK & 0xFFFFFFFF, BigInteger))
"""Whether this very session holds the lock. PostgreSQL shows the two halves of its number."""

log = structlog.get_logger()


class PostgresLock:
    """The lock, and the connection that holds it or tries to."""

    has_rivals = True

    def __init__(self, engine: AsyncEngine) -> None:
        self.leader_url: str | None = None
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._connection: AsyncConnection | None = None
        self._has_answered = False
        self._is_away = False
        self._certainty = Certainty()

    async def try_acquire(self) -> bool:
        """As in `LeaderLock`. False if the database is away, or another coordinator leads."""
        try:
            async with asyncio.timeout(ANSWERED_WITHIN_S):
                is_ours = await self._ask_for_it()
        except (DBAPIError, OSError) as error:
            await self._disconnect()
            if not self._has_answered:
                raise Unavailable(f"cannot open the database of store.url: {reason_of(error)}") from None
            if not self._is_away:
                log.warning("database_away", error=reason_of(error))
            self._is_away, self.leader_url = True, None
            return False
        self._has_answered, self._is_away = True, False
        return is_ours

    async def keep(self) -> None:
        """As in `LeaderLock`."""
        while True:
            await asyncio.sleep(PING_S)
            try:
                async with asyncio.timeout(ANSWERED_WITHIN_S):
                    is_ours = await self._still_holds_it()
            except (DBAPIError, OSError) as error:
                raise LeadershipLost(f"the session that holds the leader's lock is over: {reason_of(error)}") from None
            if not is_ours:
                raise LeadershipLost(
                    "the session does not hold the leader's lock; store.url must lead to the server itself, "
                    "not to a pool that shares sessions"
                )

    async def confirm(self) -> None:
        """As in `LeaderLock`."""
        await self._certainty.confirm()

    async def release(self) -> None:
        """As in `LeaderLock`."""
        self._certainty.end()
        await self._disconnect()

    async def _ask_for_it(self) -> bool:
        if self._connection is None:
            self._connection = await self._engine.connect()
            await self._connection.execute(text(f"SET idle_session_timeout = '{SILENT_S:g}s'"))
            await self._connection.execute(HOLDS_IT)  # prepares it
        asked_at = asyncio.get_running_loop().time()
        if not await self._connection.scalar(TAKE_IT):
            self.leader_url = await self._stored_url(self._connection)
            return False
        self._note_certain(asked_at)
        return True

    async def _still_holds_it(self) -> bool:
        assert self._connection is not None
        asked_at = asyncio.get_running_loop().time()
        if not await self._connection.scalar(HOLDS_IT):
            return False
        self._note_certain(asked_at)
        return True

    async def _stored_url(self, connection: AsyncConnection) -> str | None:
        """The URL that the last leader has stored."""
        try:
            url: str | None = await connection.scalar(select(META.c.value).where(META.c.key == "leader"))
        except ProgrammingError:  # the first leader is about to create the tables
            return None
        return url

    async def _disconnect(self) -> None:
        """Ends the session, and so frees the lock; the server notices also if it does not answer."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(DBAPIError, OSError):
                async with asyncio.timeout(ANSWERED_WITHIN_S):
                    await connection.close()

    def _note_certain(self, asked_at: float) -> None:
        self._certainty.extend(asked_at + SILENT_S - MARGIN_S)
