"""The rows of sweeps in the database: each sweep is a record without its groups, and each group has its own row."""

import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from muster_coordinator.model.events import SaveGroup
from muster_coordinator.model.sweep_records import GroupRecord, SweepRecord, SweepState
from muster_coordinator.store.rows import Unread, read_row, read_rows
from muster_coordinator.store.tables import GROUPS, SWEEPS

DAY_S = 86_400.0

TESTED_DAYS = 31
"""Days for which it is known after a restart when nodes were tested: the longest that a metric counts, and one more."""

SWEPT_DAYS, MOST_SWEPT = 60, 60
"""How far back suspicions of sweeps are read after a restart: as long as they count, for two checks every night."""

SWEEPS_AT_A_TIME = 10
"""The record of a sweep of 10,000 nodes names each of them: 300 KiB."""


def sweep_row(sweep: SweepRecord) -> dict[str, Any]:
    """The row of a sweep, without its groups."""
    return {
        "id": sweep.id,
        "state": sweep.state.value,
        "created_at": sweep.created_at,
        "body": sweep.model_dump_json(),
    }


def group_row(saved: SaveGroup) -> dict[str, Any]:
    """The row of a group."""
    return {
        "id": saved.record.id,
        "sweep": saved.sweep,
        "round": saved.round,
        "started_at": saved.record.started_at,
        "body": saved.record.model_dump_json(),
    }


async def read_sweep(connection: AsyncConnection, sweep: str) -> SweepRecord | None:
    """The sweep with all its groups; None if there is none with this id."""
    body = await connection.scalar(select(SWEEPS.c.body).where(SWEEPS.c.id == sweep))
    return None if body is None else await _complete(connection, sweep, body)


async def read_unfinished_sweeps(connection: AsyncConnection) -> tuple[SweepRecord, ...]:
    """The sweeps that have not ended, with all their groups, the oldest first."""
    live = SWEEPS.c.state.in_([SweepState.PLANNED, SweepState.RUNNING])
    rows = await connection.execute(select(SWEEPS.c.id, SWEEPS.c.body).where(live).order_by(SWEEPS.c.created_at))
    return tuple([await _complete(connection, sweep, body) for sweep, body in rows.all()])


async def read_sweeps_since(connection: AsyncConnection, moment: float) -> tuple[SweepRecord, ...]:
    """The sweeps that were created after `moment`, without their groups."""
    rows = await connection.execute(select(SWEEPS.c.id, SWEEPS.c.body).where(SWEEPS.c.created_at > moment))
    return read_rows("sweeps", rows, SweepRecord.model_validate_json)


class EndedSweeps(NamedTuple):
    """When a sweep has cleared or convicted each node last (`tested`), and the last sweeps of several nodes (`swept`).

    The oldest of `swept` comes first. They are without their groups.
    """

    tested: dict[str, float]
    swept: tuple[SweepRecord, ...]


async def read_ended(connection: AsyncConnection, nodes: Iterable[str], unread: Unread) -> EndedSweeps:
    """What the last ended sweeps say about these nodes. Damaged ones are left out.

    The latest sweeps come first, and no more are read once every node is found and MOST_SWEPT sweeps are.
    """
    missing, tested, swept = set(nodes), dict[str, float](), list[SweepRecord]()
    last = await connection.scalar(select(func.max(SWEEPS.c.created_at))) or 0.0
    recent = SWEEPS.c.created_at > last - SWEPT_DAYS * DAY_S
    query = select(SWEEPS.c.id, SWEEPS.c.body).where(recent).order_by(SWEEPS.c.created_at.desc())
    async with connection.stream(query.execution_options(yield_per=SWEEPS_AT_A_TIME)) as result:
        async for rows in result.partitions():
            if not missing and len(swept) >= MOST_SWEPT:
                break
            for sweep in unread.leave_out("sweeps", rows, SweepRecord.model_validate_json):
                if sweep.ended_at is None:
                    continue
                swept += [sweep] if len(sweep.nodes) > 1 else []
                if sweep.created_at > last - TESTED_DAYS * DAY_S:
                    found = missing.intersection(sweep.tested_nodes)
                    tested |= dict.fromkeys(found, sweep.ended_at)
                    missing -= found
    return EndedSweeps(tested, tuple(reversed(swept[:MOST_SWEPT])))


async def _complete(connection: AsyncConnection, sweep: str, body: str) -> SweepRecord:
    """The sweep with the groups of each round, in the order in which they were formed.

    Numbers order groups of the same moment.
    """
    in_order = (GROUPS.c.round, GROUPS.c.started_at, func.length(GROUPS.c.id), GROUPS.c.id)
    rows = await connection.execute(
        select(GROUPS.c.round, GROUPS.c.id, GROUPS.c.body).where(GROUPS.c.sweep == sweep).order_by(*in_order)
    )
    # Reading a sweep of thousands of nodes takes seconds, in which the coordinator must answer other requests.
    return await asyncio.to_thread(_read, sweep, body, [(number, key, group) for number, key, group in rows])


def _read(sweep: str, body: str, rows: Iterable[tuple[int, str, str]]) -> SweepRecord:
    """The sweep with its groups, each of which comes with the number of its round."""
    record = read_row("sweeps", sweep, body, SweepRecord.model_validate_json)
    groups: dict[int, list[GroupRecord]] = {}
    for number, key, group in rows:
        groups.setdefault(number, []).append(read_row("groups", key, group, GroupRecord.model_validate_json))
    if not groups:  # a sweep of an earlier release, whose record contains the groups
        return record
    rounds = (stage.model_copy(update={"groups": tuple(groups.get(stage.number, ()))}) for stage in record.rounds)
    return record.model_copy(update={"rounds": tuple(rounds)})
