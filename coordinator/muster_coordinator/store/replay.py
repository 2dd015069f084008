"""Replays a policy on the history in the database, without writing, while a coordinator may use it.

Runs are read in the order in which they began, a few at a time, and wait in a heap until they end. So memory grows with
the nodes that have findings and the runs that were under way at once, not with the length of the history.

Only whole runs are read. A quiet run moves no standing (see `evidence.quiet_runs`), so it would change nothing.
"""

import heapq
import math
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, NamedTuple

from pydantic_core import from_json
from sqlalchemy import Connection, Select, case, column, func, inspect, null, select, table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from muster.errors import Unavailable
from muster.model import Run, ServiceState, Verdict
from muster.quarantine_settings import QuarantineSettings
from muster.terminal import in_one_line
from muster_coordinator.evidence.convictions import conviction
from muster_coordinator.evidence.past_evidence import PastEvidence
from muster_coordinator.model.nodes import NodeFinding
from muster_coordinator.model.quarantine import OUT, Hold, NodeDecision, NodeEvidence, QuarantineRecord
from muster_coordinator.model.quarantine_events import Asked, HoldRequested, NodeForgotten, QuarantineEvent
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.replay import Replay
from muster_coordinator.quarantine.replay_comparison import DrainThen
from muster_coordinator.store.summaries import HOUR_S, hour_of
from muster_coordinator.store.tables import ACTIONS, CASES, NODES, QUIET_RUNS, REQUESTS, RUNS, SERIES, SWEEPS

_AT_A_TIME = 200
"""Number of rows that are read together."""


class SweepConclusion(NamedTuple):
    """The result of a sweep for a node: convicted, with the finding, or cleared by a number of good runs."""

    at: float
    node: str
    check: str
    convicted: NodeFinding | None
    good_runs: int = 0


_HeapEntry = tuple[float, int, SweepConclusion | Asked | Run]
"""When it became known, a number that keeps the order, and the run or conclusion."""


class StoredReplay(NamedTuple):
    """A replay of the stored history. `nodes` are those known today, `begins` is the start of the replayed runs.

    All runs are stored from `complete_from` on.
    """

    replay: Replay
    nodes: int
    begins: float
    complete_from: float
    drains_then: tuple[DrainThen, ...]


async def replay_stored(
    engine: AsyncEngine, settings: QuarantineSettings, policy: Policy, since: float, now: float
) -> StoredReplay:
    """The decisions of the policy from `since` until `now`. Raises Unavailable if the database cannot be read."""
    try:
        async with engine.connect() as connection:
            complete_from = await _complete_from(connection)
            since = max(since, complete_from)
            conclusions = await _conclusions(connection, since)
            asked = [Asked.model_validate_json(body) async for body in _bodies(connection, REQUESTS, now)]
            found = {
                *await connection.scalars(_nodes_with_findings(since)),
                *(conclusion.node for conclusion in conclusions),
            }
            holds = _holds([request for request in asked if request.at < since])
            replay = Replay(settings, policy, await _records(connection, found, holds, since), since)
            happened: list[SweepConclusion | Asked] = [
                *conclusions,
                *(request for request in asked if request.at >= since),
            ]
            async for at, event in _timeline(connection, happened, since):
                replay.take(event, at)
            replay.pass_time(now)
            drains = tuple([drain async for drain in _drains(connection, since, now)])
            nodes = await connection.scalar(select(func.count()).select_from(NODES))
            first = await _first(connection, since)
    except (DBAPIError, OSError, ValueError) as error:  # ValueError: a damaged row
        reason = in_one_line(str(error.orig if isinstance(error, DBAPIError) else error))
        raise Unavailable(f"the database cannot be read: {reason[:300]}") from None
    return StoredReplay(replay, nodes or 0, min(now, since if first is None else first), complete_from, drains)


async def _complete_from(connection: AsyncConnection) -> float:
    """The time from which on all runs are stored.

    Before it, runs without findings are summaries of an hour each. The findings that they ended are kept for longer,
    and a replay of these alone would drain nodes that never return.
    """
    last = select(func.max(SERIES.c.until)).where(SERIES.c.resolution_s == HOUR_S)
    if not await connection.run_sync(_has_series):
        last = select(func.max(column("started_at"))).select_from(table("summaries"))
    at = await connection.scalar(last)
    return 0.0 if at is None else float((hour_of(at) + 1) * HOUR_S)


async def _first(connection: AsyncConnection, since: float) -> float | None:
    """The start of the first stored run since then; None if there is none."""
    starts = [select(func.min(RUNS.c.started_at)).where(RUNS.c.started_at >= since)]
    if await connection.run_sync(_has_series):
        full = SERIES.c.resolution_s < HOUR_S, SERIES.c.until >= since
        starts.append(select(func.min(QUIET_RUNS.c.started_at)).where(QUIET_RUNS.c.started_at >= since))
        starts.append(select(func.min(SERIES.c.since)).where(*full))
    found = [at for query in starts if (at := await connection.scalar(query)) is not None]
    return max(since, min(found)) if found else None


def _has_series(connection: Connection) -> bool:
    """Whether the database has the tables of this release; the last release had only whole runs."""
    return inspect(connection).has_table(SERIES.name)


# Events, in order


async def _timeline(
    connection: AsyncConnection, happened: Iterable[SweepConclusion | Asked], since: float
) -> AsyncIterator[tuple[float, QuarantineEvent]]:
    """All events by the time at which they became known: of a run, its end."""
    evidence, number = PastEvidence(), count()
    coming: list[_HeapEntry] = [(past.at, next(number), past) for past in happened]
    heapq.heapify(coming)
    rows = await connection.stream(_runs(since).execution_options(yield_per=_AT_A_TIME))
    async for row in rows.mappings():
        for at_and_event in _events(coming, evidence, row["started_at"]):  # no later run ends before this one begins
            yield at_and_event
        heapq.heappush(coming, (row["started_at"] + row["duration_s"], next(number), _run(row)))
    for at_and_event in _events(coming, evidence, math.inf):
        yield at_and_event


def _events(coming: list[_HeapEntry], evidence: PastEvidence, until: float) -> Iterator[tuple[float, QuarantineEvent]]:
    """Takes the events up to `until` from the heap."""
    while coming and coming[0][0] <= until:
        at, _, what = heapq.heappop(coming)
        if (event := _event(evidence, what)) is not None:
            yield at, event


def _event(evidence: PastEvidence, what: SweepConclusion | Asked | Run) -> QuarantineEvent | None:
    """The event for the quarantine; None if nothing changed, or if silence matters, because it is not stored."""
    match what:
        case Run():
            return evidence.take_run(what)
        case Asked():
            return None if isinstance(what.request, NodeForgotten) else what.request
        case SweepConclusion(_, node, check, finding, runs):
            return evidence.clear(node, check, runs) if finding is None else evidence.convict(node, finding)


async def _conclusions(connection: AsyncConnection, since: float) -> list[SweepConclusion]:
    """The results, for nodes that any of these sweeps convicted, of the sweeps that ended since then."""
    conclusions: list[SweepConclusion] = []
    convicted: set[str] = set()
    async for body in await connection.stream_scalars(select(SWEEPS.c.body).order_by(SWEEPS.c.created_at)):
        sweep = SweepRecord.model_validate_json(body)
        if (at := sweep.ended_at) is None or at < since:
            continue
        for failed in sweep.failed_nodes:
            convicted.add(failed.node)
            conclusions.append(SweepConclusion(at, failed.node, sweep.check, conviction(failed, sweep, at)))
        # A sweep clears nearly all nodes, mostly without an earlier conviction.
        cleared = convicted & set(sweep.cleared_nodes)
        conclusions += [SweepConclusion(at, node, sweep.check, None, sweep.least_runs) for node in sorted(cleared)]
    return conclusions


def _nodes_with_findings(since: float) -> Select[tuple[str]]:
    """The nodes with a finding of their own runs that can drain them."""
    found_something = RUNS.c.verdict.in_([Verdict.WARN.value, Verdict.FAIL.value])
    return select(RUNS.c.node).distinct().where(found_something, RUNS.c.started_at >= since, RUNS.c.group.is_(None))


def _runs(since: float) -> Select[Any]:
    """The runs of these nodes that say something about them, with the bodies of runs with findings."""
    body = case((RUNS.c.verdict == Verdict.PASS.value, null()), else_=RUNS.c.body).label("body")
    columns = (RUNS.c.id, RUNS.c.node, RUNS.c.check, RUNS.c.verdict, RUNS.c.started_at, RUNS.c.duration_s, body)
    alone = (RUNS.c.group.is_(None), RUNS.c.verdict != Verdict.SKIPPED.value)
    wanted = (RUNS.c.node.in_(_nodes_with_findings(since)), RUNS.c.started_at >= since, *alone)
    return select(*columns).where(*wanted).order_by(RUNS.c.started_at, RUNS.c.id)


def _run(row: Mapping[Any, Any]) -> Run:
    """The fields of a run that a replay needs, with its start by the coordinator's clock."""
    if row["body"] is not None:
        return Run.model_validate_json(row["body"]).model_copy(update={"started_at": row["started_at"]})
    return Run.model_validate({name: value for name, value in row.items() if name != "body"})


# Nodes and requests


async def _records(
    connection: AsyncConnection, found: Iterable[str], holds: Mapping[str, Hold], since: float
) -> list[QuarantineRecord]:
    """The records at the start of a replay: every known node in service, in its failure domain of today."""
    rows = await connection.execute(
        select(NODES.c.name, NODES.c.body, CASES.c.body).outerjoin(CASES, CASES.c.node == NODES.c.name)
    )
    evidence = {name: _evidence(decided) for name, body, decided in rows if not from_json(body).get("gone")}
    evidence = {**dict.fromkeys(found, NodeEvidence()), **evidence}
    return [_record(name, known, holds.get(name), since) for name, known in sorted(evidence.items())]


def _record(name: str, evidence: NodeEvidence, hold: Hold | None, since: float) -> QuarantineRecord:
    decision = NodeDecision(state=ServiceState.IN_SERVICE, since=since, hold=hold)
    return QuarantineRecord(node=name, evidence=evidence, decision=decision)


def _evidence(body: str | None) -> NodeEvidence:
    """The unchanging part of a stored case, also of a flat one that the last release stored."""
    stored = {} if body is None else from_json(body)
    known = stored.get("evidence", stored)
    return NodeEvidence(domain=known.get("domain", known.get("place")), own_checks=known.get("own_checks", ()))


def _holds(asked: Iterable[Asked]) -> dict[str, Hold]:
    """The holds that people had set and not ended."""
    holds: dict[str, Hold] = {}
    for event in asked:
        match event.request:
            case HoldRequested(node=node, by=by, reason=reason):
                holds[node] = Hold(by=by, reason=reason, at=event.at)
            case _ if event.node is not None:
                holds.pop(event.node, None)
    return holds


async def _bodies(connection: AsyncConnection, table: Any, until: float) -> AsyncIterator[str]:
    query = select(table.c.body).where(table.c.at <= until).order_by(table.c.at, table.c.id)
    async for body in await connection.stream_scalars(query):
        yield body


async def _drains(connection: AsyncConnection, since: float, until: float) -> AsyncIterator[DrainThen]:
    """The drains that were decided in that time."""
    async for body in _bodies(connection, ACTIONS, until):
        transition = TransitionRecord.model_validate_json(body).transition
        if transition.at >= since and transition.after in OUT and transition.before not in OUT:
            yield DrainThen(
                at=transition.at,
                node=transition.node,
                reason=transition.reason,
                codes=transition.codes,
                dry_run=transition.dry_run,
            )
