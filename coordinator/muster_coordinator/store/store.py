"""The coordinator's memory. The coordinator writes here before it sends or answers anything.

`write` commits all that a batch of commands wants stored at once; everything else reads. The same statements serve
SQLite and PostgreSQL; only the upsert depends on the dialect.
"""

from collections.abc import Sequence

from sqlalchemy import Insert, Table, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from muster.config import Settings
from muster.model import Run
from muster_coordinator.model.audit import StoredCommand
from muster_coordinator.model.nodes import StoryEntry
from muster_coordinator.model.quarantine_events import DECIDED, Decided
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.store.audit_log import audit_rows
from muster_coordinator.store.command_rows import Rows, command_rows
from muster_coordinator.store.database import Database
from muster_coordinator.store.dialect import insert_of
from muster_coordinator.store.erasures import Erasures
from muster_coordinator.store.opening import end_earlier_sessions, open_database
from muster_coordinator.store.paging import Page, read_page
from muster_coordinator.store.restart import read_saved
from muster_coordinator.store.rows import read_row
from muster_coordinator.store.runs_view import RunFilter, read_run, read_runs
from muster_coordinator.store.stored_cases import (
    decision_rows,
    decisions,
)
from muster_coordinator.store.stored_sweeps import (
    read_sweep,
    read_sweeps_since,
)
from muster_coordinator.store.tables import (
    ACTIONS,
    ANNOUNCEMENTS,
    AUDIT,
    BASELINES,
    CASES,
    EVIDENCE,
    FINGERPRINTS,
    GROUPS,
    LEVELS,
    META,
    NODES,
    QUIET_RUNS,
    REFERENCES,
    REQUESTS,
    RESULTS,
    RUN_BASES,
    RUNS,
    STORY,
    STREAMS,
    SWEEPS,
)

_UPSERTED = (
    STREAMS,
    ANNOUNCEMENTS,
    NODES,
    EVIDENCE,
    SWEEPS,
    GROUPS,
    REFERENCES,
    BASELINES,
    LEVELS,
    FINGERPRINTS,
    RESULTS,
    CASES,
    ACTIONS,
    META,
    RUN_BASES,
)


class Store:
    """The tables of one coordinator, read and written as records."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._engine = database.engine
        self._insert = insert_of(self._engine.dialect.name)
        self._insert_new = {table: self._inserting_new(table) for table in (RUNS, QUIET_RUNS)}

    @classmethod
    async def open(cls, settings: Settings) -> "Store":
        """The store of these settings for their leader, migrated; errors as in `open_database`."""
        await end_earlier_sessions(settings)
        return cls(await open_database(settings))

    @property
    def database(self) -> Database:
        """The database, for parts that keep their own tables in it."""
        return self._database

    async def close(self) -> None:
        await self._database.close()

    async def begin_epoch(self, now: float, api_url: str) -> int:
        """The epoch of a coordinator that leads from `now` on: above every earlier one, even if the clock went back.

        From now on, nobody writes who leads by an earlier epoch.
        """
        async with self._database.writing() as connection:
            stored = await connection.scalar(select(META.c.value).where(META.c.key == "epoch"))
            epoch = max(read_row("meta", "epoch", stored or "0", int) + 1, int(now))
            rows = {"epoch": str(epoch), "leader": api_url}
            await self._upsert(connection, META, [{"key": key, "value": value} for key, value in rows.items()])
        self._database.write_only_in(epoch)
        return epoch

    async def check_writable(self) -> None:
        """Commits a row. Raises WriteFailed if that is not possible."""
        async with self._database.writing() as connection:
            await self._upsert(connection, META, [{"key": "writable", "value": "yes"}])

    async def write(self, commands: Sequence[StoredCommand]) -> None:
        """Commits everything that these commands want stored, or nothing. Raises WriteFailed if it cannot.

        A run that is stored already stays as it is.
        """
        rows = {**command_rows(commands), **decision_rows(commands), AUDIT: audit_rows(commands)}
        erased = Erasures(commands)
        if not any(rows.values()) and not erased:
            return
        async with self._database.writing() as connection:
            await erased.before(connection)
            for table in _UPSERTED:
                await self._upsert(connection, table, rows[table])
            for table, statement in self._insert_new.items():
                if rows[table]:
                    await connection.execute(statement, rows[table])
            for table in (STORY, REQUESTS, AUDIT):
                if rows[table]:
                    await connection.execute(insert(table), rows[table])
            await erased.after(connection)

    async def saved(self) -> StoredFleet:
        """The stored state with which the fleet starts."""
        return await read_saved(self._database)

    async def sweeps_since(self, moment: float) -> tuple[SweepRecord, ...]:
        """The sweeps that were created after `moment`, without their groups."""
        async with self._database.reading() as connection:
            return await read_sweeps_since(connection, moment)

    async def runs(self, wanted: RunFilter, limit: int, cursor: str | None) -> Page[Run]:
        """The runs that fit, the latest started first. Raises Refused if the cursor is not valid."""
        return await read_runs(self._database, wanted, limit, cursor)

    async def run(self, run: str) -> Run | None:
        """One run; None if none with this id is stored."""
        return await read_run(self._database, run)

    async def sweeps(self, limit: int, cursor: str | None) -> Page[SweepRecord]:
        """All sweeps without their groups, the latest first. Raises Refused if the cursor is not valid."""
        query = select(SWEEPS.c.created_at, SWEEPS.c.id, SWEEPS.c.body)
        return await read_page(
            self._database, query, SweepRecord.model_validate_json, table="sweeps", limit=limit, cursor=cursor
        )

    async def sweep(self, sweep: str) -> SweepRecord | None:
        """One sweep with all its groups; None if there is none with this id."""
        async with self._database.reading() as connection:
            return await read_sweep(connection, sweep)

    async def sweep_ids(self, prefix: str, limit: int) -> list[str]:
        """The first ids of sweeps that begin with `prefix`, in alphabetical order, up to `limit`."""
        begins = func.substr(SWEEPS.c.id, 1, len(prefix)) == prefix  # SQLite's LIKE would treat A and a as equal
        async with self._database.reading() as connection:
            return list(await connection.scalars(select(SWEEPS.c.id).where(begins).order_by(SWEEPS.c.id).limit(limit)))

    async def story(self, node: str, limit: int, cursor: str | None) -> Page[StoryEntry]:
        """A node's story, the latest step first. Raises Refused if the cursor is not valid."""
        query = select(STORY.c.number, STORY.c.body).where(STORY.c.node == node)
        return await read_page(
            self._database, query, StoryEntry.model_validate_json, table="story", limit=limit, cursor=cursor
        )

    async def decisions(self, node: str | None, limit: int, cursor: str | None) -> Page[Decided]:
        """The transitions of one node, or of all, and the requests of people about it, the latest first.

        Raises Refused if the cursor is not valid.
        """
        return await read_page(
            self._database, decisions(node), DECIDED.validate_json, table="actions", limit=limit, cursor=cursor
        )

    async def _upsert(self, connection: AsyncConnection, table: Table, rows: Rows) -> None:
        if not rows:
            return
        statement = self._insert(table)
        values = {column.name: statement.excluded[column.name] for column in table.c if not column.primary_key}
        await connection.execute(statement.on_conflict_do_update(index_elements=table.primary_key, set_=values), rows)

    def _inserting_new(self, table: Table) -> Insert:
        """Skips runs that are stored already. For SQLite the table itself says so: a clause in the statement is slow.

        SQLAlchemy sends rows with ON CONFLICT one by one.
        """
        is_sqlite = self._engine.dialect.name == "sqlite"
        return insert(table) if is_sqlite else self._insert(table).on_conflict_do_nothing()
