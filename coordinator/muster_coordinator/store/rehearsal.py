"""Rehearses a policy on what the database holds, beside a coordinator that may use it and without writing."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, case, func, null, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from muster.errors import Unavailable
from muster.model import Run, Verdict
from muster.terminal import in_one_line
from muster_coordinator.evidence.health import conviction
from muster_coordinator.model.nodes import NodeFinding
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.rehearsal import Rehearsal
from muster_coordinator.store.tables import NODES, RUNS, SWEEPS

_AT_A_TIME = 200
"""Runs that are read together."""


class Ruling(NamedTuple):
    """What a sweep has ruled about a node: convicted it, with the finding, or cleared it."""

    at: float
    check: str
    convicted: NodeFinding | None


class Rehearsed(NamedTuple):
    """What came of a rehearsal: each node about which something was found, and how many nodes there are in all."""

    by_node: Mapping[str, Rehearsal]
    nodes: int


async def rehearse(engine: AsyncEngine, policy: Policy, since: float, now: float) -> Rehearsed:
    """What the policy would have done from `since` until `now`; Unavailable when the database cannot be read.

    Nodes are read one after the other and their runs a few at a time, so that a long history takes no memory.
    """
    try:
        async with engine.connect() as connection:
            rulings = await _rulings(connection, since)
            accused = await connection.scalars(_accused(since))
            by_node = {}
            for name in sorted({*rulings, *accused}):
                rehearsal = Rehearsal(policy)
                await _replay(connection, rehearsal, _runs_of(name, since), rulings.get(name, ()))
                rehearsal.pass_time(now)
                by_node[name] = rehearsal
            nodes = await connection.scalar(select(func.count()).select_from(NODES))
    except (DBAPIError, OSError, ValueError) as error:  # ValueError: a damaged row
        reason = in_one_line(str(error.orig if isinstance(error, DBAPIError) else error))
        raise Unavailable(f"the database cannot be read: {reason[:300]}") from None
    return Rehearsed(by_node, nodes or 0)


async def _rulings(connection: AsyncConnection, since: float) -> dict[str, list[Ruling]]:
    """By node that was convicted, what the sweeps that ended since then have ruled, in order."""
    found: dict[str, list[Ruling]] = defaultdict(list)
    async for body in await connection.stream_scalars(select(SWEEPS.c.body).order_by(SWEEPS.c.created_at)):
        sweep = SweepRecord.model_validate_json(body)
        if (at := sweep.ended_at) is None or at < since:
            continue
        for failed in sweep.failed_nodes:
            found[failed.node].append(Ruling(at, sweep.check, conviction(failed, sweep, at)))
        for name in found.keys() & set(sweep.cleared_nodes):  # a sweep clears nearly all, of nothing
            found[name].append(Ruling(at, sweep.check, None))
    return {name: sorted(rulings, key=lambda ruling: ruling.at) for name, rulings in found.items()}


def _accused(since: float) -> Select[tuple[str]]:
    """The nodes about which a run of their own has found something that can take them out."""
    found_something = RUNS.c.verdict.in_([Verdict.WARN.value, Verdict.FAIL.value])
    return select(RUNS.c.node).distinct().where(found_something, RUNS.c.started_at >= since, RUNS.c.group.is_(None))


def _runs_of(node: str, since: float) -> Select[Any]:
    """The node's runs that say something about it, the first started first, with the bodies of those that found any."""
    body = case((RUNS.c.verdict == Verdict.PASS.value, null()), else_=RUNS.c.body).label("body")
    columns = (RUNS.c.id, RUNS.c.node, RUNS.c.check, RUNS.c.verdict, RUNS.c.started_at, RUNS.c.duration_s, body)
    alone = (RUNS.c.group.is_(None), RUNS.c.verdict != Verdict.SKIPPED.value)
    wanted = (RUNS.c.node == node, RUNS.c.started_at >= since, *alone)
    return select(*columns).where(*wanted).order_by(RUNS.c.started_at, RUNS.c.id)


async def _replay(
    connection: AsyncConnection, rehearsal: Rehearsal, runs: Select[Any], rulings: Sequence[Ruling]
) -> None:
    coming = list(reversed(rulings))
    rows = await connection.stream(runs.execution_options(yield_per=_AT_A_TIME))
    async for row in rows.mappings():
        while coming and coming[-1].at <= row["started_at"]:
            _rule(rehearsal, coming.pop())
        rehearsal.take_run(_run(row))
    for ruling in reversed(coming):
        _rule(rehearsal, ruling)


def _rule(rehearsal: Rehearsal, ruling: Ruling) -> None:
    if ruling.convicted is None:
        rehearsal.clear(ruling.check, ruling.at)
    else:
        rehearsal.convict(ruling.convicted)


def _run(row: Mapping[Any, Any]) -> Run:
    """A run as far as a rehearsal looks at it."""
    if row["body"] is not None:
        return Run.model_validate_json(row["body"])
    return Run.model_validate({name: value for name, value in row.items() if name != "body"})
