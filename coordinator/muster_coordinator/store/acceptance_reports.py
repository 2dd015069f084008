"""The acceptance reports that were sent to the coordinator. They are compressed: a tenth of their JSON."""

import asyncio
import zlib

from sqlalchemy import ColumnElement, select

from muster.acceptance import AcceptanceReport
from muster_coordinator.model.acceptance_records import AcceptanceFilter, AcceptanceRecord, AcceptanceSummary
from muster_coordinator.store.database import Database
from muster_coordinator.store.dialect import insert_of
from muster_coordinator.store.paging import Page, read_page
from muster_coordinator.store.rows import read_row
from muster_coordinator.store.tables import ACCEPTANCE_NODES, ACCEPTANCE_REPORTS

_NAME = "acceptance_reports"


class AcceptanceReports:
    """Keeps the reports of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = insert_of(database.engine.dialect.name)

    async def add(self, record: AcceptanceRecord) -> AcceptanceSummary:
        """Stores a report, and returns what is stored: the earlier summary if it is there already.

        Raises WriteFailed if the database refuses it.
        """
        row = {
            "id": record.id,
            "received_at": record.received_at,
            "suite": record.suite,
            "verdict": record.verdict,
            "summary": AcceptanceSummary.model_validate(dict(record)).model_dump_json(),
            "body": zlib.compress(record.report.model_dump_json().encode()),
        }
        nodes = [{"node": node.name, "report": record.id} for node in record.report.nodes]
        async with self._database.writing() as connection:
            await connection.execute(self._insert(ACCEPTANCE_REPORTS).on_conflict_do_nothing(), row)
            if nodes:
                await connection.execute(self._insert(ACCEPTANCE_NODES).on_conflict_do_nothing(), nodes)
            (stored,) = await connection.scalars(select(ACCEPTANCE_REPORTS.c.summary).where(_is(record.id)))
        return read_row(_NAME, record.id, stored, AcceptanceSummary.model_validate_json)

    async def page(self, wanted: AcceptanceFilter, limit: int, cursor: str | None) -> Page[AcceptanceSummary]:
        """The reports that fit, the latest received first. Raises Refused if the cursor is not valid."""
        columns = ACCEPTANCE_REPORTS.c
        query = select(columns.received_at, columns.id, columns.summary)
        if wanted.node is not None:
            about = select(ACCEPTANCE_NODES.c.report).where(ACCEPTANCE_NODES.c.node == wanted.node)
            query = query.where(columns.id.in_(about))
        if wanted.verdict is not None:
            query = query.where(columns.verdict == wanted.verdict)
        if wanted.suite is not None:
            query = query.where(columns.suite == wanted.suite)
        read = AcceptanceSummary.model_validate_json
        return await read_page(self._database, query, read, table=_NAME, limit=limit, cursor=cursor)

    async def get(self, id: str) -> AcceptanceRecord | None:
        """One report; None if there is none with this id. Raises Unreadable if its row is damaged."""
        async with self._database.reading() as connection:
            columns = ACCEPTANCE_REPORTS.c.summary, ACCEPTANCE_REPORTS.c.body
            row = (await connection.execute(select(*columns).where(_is(id)))).one_or_none()
        if row is None:
            return None
        # In a thread: a large report takes a fifth of a second.
        return await asyncio.to_thread(read_row, _NAME, id, (row.summary, row.body), _record)


def _is(id: str) -> ColumnElement[bool]:
    return ACCEPTANCE_REPORTS.c.id == id


def _record(stored: tuple[str, bytes]) -> AcceptanceRecord:
    summary, body = stored
    report = AcceptanceReport.model_validate_json(zlib.decompress(body))
    return AcceptanceRecord(**dict(AcceptanceSummary.model_validate_json(summary)), report=report)
