"""The audit log as text for people."""

from collections.abc import Iterable

from muster.instants import instant_text
from muster.table import table
from muster_coordinator.model.audit import AuditEntry


def audit_table(entries: Iterable[AuditEntry]) -> str:
    """A line for every change."""
    return table(("TIME", "CHANGE", "OF", "BY", "FROM", "REASON"), map(_row, entries))


def _row(entry: AuditEntry) -> tuple[str, ...]:
    address = entry.address or "-"
    if entry.forwarded_for:
        address = f"{entry.forwarded_for} by {address}"
    return (
        instant_text(entry.at),
        entry.action,
        entry.subject or "-",
        entry.by or "-",
        address,
        entry.reason or "-",
    )
