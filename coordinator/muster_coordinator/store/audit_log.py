"""The rows of the audit log. They are only added and read; the database refuses anything else."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select

from muster_coordinator.model.audit import AppendAudit, AuditEntry, StoredCommand
from muster_coordinator.store.database import Database
from muster_coordinator.store.paging import Page, read_page
from muster_coordinator.store.tables import AUDIT


def audit_rows(commands: Iterable[StoredCommand]) -> list[dict[str, Any]]:
    """The rows that these commands add."""
    entries = [command.entry for command in commands if isinstance(command, AppendAudit)]
    return [{"subject": entry.subject, "body": entry.model_dump_json()} for entry in entries]


async def read_audit(database: Database, subject: str | None, limit: int, cursor: str | None) -> Page[AuditEntry]:
    """The entries about one subject, or all, the latest first. Raises Refused if the cursor is not valid."""
    query = select(AUDIT.c.number, AUDIT.c.body)
    if subject is not None:
        query = query.where(AUDIT.c.subject == subject)
    return await read_page(database, query, AuditEntry.model_validate_json, table="audit", limit=limit, cursor=cursor)
