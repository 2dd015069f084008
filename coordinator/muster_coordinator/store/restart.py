"""Reads the stored state with which the fleet starts: rows in proportion to the nodes, and no run.

A node without stored evidence is from an earlier release, or its evidence is damaged: of such nodes, the last runs are
read. Rows come a thousand at a time, because a large fleet has hundreds of thousands. The devices of a comparison stay
text until the comparison is restored.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Generic

from sqlalchemy import Select, Table, select
from sqlalchemy.ext.asyncio import AsyncConnection

from muster.model import Run
from muster.references import Reference
from muster_coordinator.model.baselines import BaselineRecord, FingerprintRecord, LevelsRecord, ResultsRecord
from muster_coordinator.model.evidence_record import EvidenceRecord
from muster_coordinator.model.nodes import NodeRecord
from muster_coordinator.model.references import ReferenceRecord
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.store.database import Database
from muster_coordinator.store.last_runs import runs_to_restore
from muster_coordinator.store.node_rows import NodeRows
from muster_coordinator.store.quiet_rows import read_bases
from muster_coordinator.store.rows import RecordT, Unread, read_row
from muster_coordinator.store.stored_cases import read_fleet_state, read_latest_transitions, read_records
from muster_coordinator.store.stored_sweeps import read_ended, read_unfinished_sweeps
from muster_coordinator.store.tables import (
    ANNOUNCEMENTS,
    BASELINES,
    EVIDENCE,
    FINGERPRINTS,
    LEVELS,
    NODES,
    REFERENCES,
    RESULTS,
    RUNS,
    STREAMS,
)

ROWS_AT_A_TIME = 1_000

NODES_AT_A_TIME = 500
"""Nodes whose runs are read together: fewer than a statement may have parameters."""


class LazyRecords(Generic[RecordT]):
    """The records of rows, read when they are iterated over. Damaged ones are left out and counted."""

    def __init__(self, unread: Unread, table: str, rows: list[tuple[str, str]], read: Callable[[str], RecordT]) -> None:
        self._unread = unread
        self._table = table
        self._rows = rows
        self._read = read

    def __iter__(self) -> Iterator[RecordT]:
        return self._unread.leave_out(self._table, self._rows, self._read)


async def read_saved(database: Database) -> StoredFleet:
    """The stored state. Raises Unreadable if a row is damaged that the fleet cannot start without."""
    unread = database.unread
    async with database.reading() as connection:
        nodes = await _nodes(connection)
        bodies = [row async for row in _rows(connection, select(EVIDENCE.c.node, EVIDENCE.c.body))]
        evidence = tuple(unread.leave_out("evidence", bodies, EvidenceRecord.model_validate_json))
        known = {record.node for record in evidence}
        outdated = [node.name for node in nodes if not node.gone and node.name not in known]
        streams = [row async for row in _rows(connection, select(STREAMS))]
        ended = await read_ended(connection, [node.name for node in nodes if not node.gone], unread)
        references = await connection.execute(select(REFERENCES).order_by(REFERENCES.c.number))
        return StoredFleet(
            nodes=nodes,
            evidence=evidence,
            runs=tuple(unread.leave_out("runs", await _runs(connection, outdated), Run.model_validate_json)),
            streams={(node, stream): read_row("streams", node, through, int) for node, stream, through in streams},
            sweeps=await read_unfinished_sweeps(connection),
            references=tuple(_reference(number, body) for number, body in references),
            baselines=await _records(connection, BASELINES, BaselineRecord.model_validate_json),
            levels=await _lazy(connection, unread, LEVELS, LevelsRecord.model_validate_json),
            fingerprints=await _records(connection, FINGERPRINTS, FingerprintRecord.model_validate_json),
            results=await _lazy(connection, unread, RESULTS, ResultsRecord.model_validate_json),
            quarantine=await read_records(connection),
            transitions=await read_latest_transitions(connection),
            fleet_state=await read_fleet_state(connection),
            bases=await read_bases(connection),
            swept=ended.swept,
            tested=ended.tested,
        )


async def _rows(connection: AsyncConnection, query: Select[Any]) -> AsyncIterator[Any]:
    rows = await connection.stream(query.execution_options(yield_per=ROWS_AT_A_TIME))
    async for part in rows.partitions():
        for row in part:
            yield row


async def _nodes(connection: AsyncConnection) -> tuple[NodeRecord, ...]:
    announcements = {key: body async for key, body in _rows(connection, select(ANNOUNCEMENTS))}
    rows = NodeRows(announcements)
    query = select(NODES.c.name, NODES.c.body, NODES.c.announced).order_by(NODES.c.name)
    return tuple([rows.read(*row) async for row in _rows(connection, query)])


async def _records(connection: AsyncConnection, table: Table, read: Callable[[str], RecordT]) -> tuple[RecordT, ...]:
    rows = _rows(connection, select(table.c.id, table.c.body))
    return tuple([read_row(table.name, key, body, read) async for key, body in rows])


async def _lazy(
    connection: AsyncConnection, unread: Unread, table: Table, read: Callable[[str], RecordT]
) -> dict[str, Iterable[RecordT]]:
    """The rows of a table whose key is a comparison and a node, by comparison."""
    found: dict[str, list[tuple[str, str]]] = {}
    async for comparison, node, body in _rows(connection, select(table)):
        found.setdefault(comparison, []).append((node, body))
    return {comparison: LazyRecords(unread, table.name, rows, read) for comparison, rows in found.items()}


async def _runs(connection: AsyncConnection, nodes: list[str]) -> list[tuple[str, str]]:
    """The last runs of these nodes, oldest first: id and body."""
    found: list[tuple[float, int, str, str]] = []
    for names in _batches(nodes):
        kept = RUNS.c.id.in_(runs_to_restore(names))
        columns = (RUNS.c.started_at, RUNS.c.seq, RUNS.c.id, RUNS.c.body)
        found += [(*row,) async for row in _rows(connection, select(*columns).where(kept))]
    found.sort(key=lambda row: row[:2])
    return [(key, body) for _, _, key, body in found]


def _batches(nodes: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(nodes), NODES_AT_A_TIME):
        yield nodes[first : first + NODES_AT_A_TIME]


def _reference(number: int, body: str) -> ReferenceRecord:
    return ReferenceRecord(
        number=number, reference=read_row("operator_references", number, body, Reference.model_validate_json)
    )
