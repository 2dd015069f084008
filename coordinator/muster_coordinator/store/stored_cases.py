"""The quarantine's rows in the database: records of nodes, transitions, requests and the state of the fleet."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from muster_coordinator.model.audit import StoredCommand
from muster_coordinator.model.quarantine import FleetState, QuarantineRecord
from muster_coordinator.model.quarantine_events import (
    Asked,
    EraseNode,
    SaveFleetState,
    SaveRecord,
    SaveRequest,
    SaveTransition,
)
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.store.rows import read_row, read_rows
from muster_coordinator.store.tables import ACTIONS, CASES, META, REQUESTS

FLEET_STATE = "quarantine"
"""The key in `meta` of the state of the fleet."""


def decision_rows(commands: Iterable[StoredCommand]) -> dict[Table, list[dict[str, Any]]]:
    """The rows to write, by table. If a row is written several times, only its last state is."""
    records: dict[str, QuarantineRecord] = {}
    transitions: dict[str, TransitionRecord] = {}
    requests: list[dict[str, Any]] = []
    fleet: FleetState | None = None
    for command in commands:
        match command:
            case SaveRecord(record=record):
                records[record.node] = record
            case EraseNode(node=node):
                records.pop(node, None)
            case SaveTransition(record=transition):
                transitions[transition.transition.id] = transition
            case SaveFleetState(state=state):
                fleet = state
            case SaveRequest(asked=asked):
                requests.append(_request_row(asked))
    return {
        CASES: [_record_row(record) for record in records.values()],
        ACTIONS: [_transition_row(transition) for transition in transitions.values()],
        REQUESTS: requests,
        META: [] if fleet is None else [{"key": FLEET_STATE, "value": fleet.model_dump_json()}],
    }


def _record_row(record: QuarantineRecord) -> dict[str, Any]:
    return {"node": record.node, "transition": record.actors.transition, "body": record.model_dump_json()}


def _transition_row(record: TransitionRecord) -> dict[str, Any]:
    transition = record.transition
    return {"id": transition.id, "node": transition.node, "at": transition.at, "body": record.model_dump_json()}


def _request_row(asked: Asked) -> dict[str, Any]:
    return {"id": asked.id, "node": asked.node, "at": asked.at, "body": asked.model_dump_json()}


def decisions(node: str | None) -> Select[tuple[float, str, str]]:
    """The transitions of a node, or of all, and the requests of people: time, id and body."""
    both = union_all(*(_of(node, table) for table in (ACTIONS, REQUESTS))).subquery()
    return select(both.c.at, both.c.id, both.c.body)


def _of(node: str | None, table: Table) -> Select[tuple[float, str, str]]:
    query = select(table.c.at, table.c.id, table.c.body)
    return query if node is None else query.where(table.c.node == node)


async def read_records(connection: AsyncConnection) -> tuple[QuarantineRecord, ...]:
    """Every record, by node."""
    rows = await connection.execute(select(CASES.c.node, CASES.c.body).order_by(CASES.c.node))
    return read_rows("cases", rows, QuarantineRecord.model_validate_json)


async def read_fleet_state(connection: AsyncConnection) -> FleetState:
    """The decisions about the fleet as a whole."""
    stored = await connection.scalar(select(META.c.value).where(META.c.key == FLEET_STATE))
    return FleetState() if stored is None else read_row("meta", FLEET_STATE, stored, FleetState.model_validate_json)


async def read_latest_transitions(connection: AsyncConnection) -> tuple[TransitionRecord, ...]:
    """The latest transition of each node, which its record names. Times do not show it, because a clock may go back."""
    latest = CASES.c.transition == ACTIONS.c.id
    rows = await connection.execute(select(ACTIONS.c.id, ACTIONS.c.body).join(CASES, latest).order_by(ACTIONS.c.node))
    return read_rows("actions", rows, TransitionRecord.model_validate_json)


def old_transitions(moment: float) -> tuple[ColumnElement[bool], ...]:
    """The condition for transitions that are older and not the latest of a node."""
    latest = select(CASES.c.transition).where(CASES.c.transition.is_not(None))
    return ACTIONS.c.at < moment, ACTIONS.c.id.not_in(latest)
