"""The rows of quiet runs and of the runs that they are like."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import from_json
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from muster.wire.scheduled_runs import stream_key
from muster_coordinator.model.audit import StoredCommand
from muster_coordinator.model.events import StoreRuns
from muster_coordinator.model.quiet_runs import QuietRun, RunBase
from muster_coordinator.model.run_shape import DIGEST_BYTES, RunShape, numbers_in
from muster_coordinator.store.rows import Unread, read_row
from muster_coordinator.store.series import QuietNumbers
from muster_coordinator.store.tables import RUN_BASES, RUNS

_QUICK = 1
"""Each body is compressed once more within two hours."""

BASES_AT_ONCE = 500


def quiet_row(quiet: QuietRun, stream: str, started_at: float) -> dict[str, Any]:
    """The row of a quiet run that began `started_at` by the coordinator's clock."""
    run, at_ms = quiet.run, round(started_at * 1000)
    return {
        "key": stream_key(run.node, stream),
        "seq": run.seq,
        "node": run.node,
        "check": run.check,
        "verdict": run.verdict.value,
        "started_at": at_ms / 1000,
        "ahead_ms": round(run.started_at * 1000) - at_ms,
        "duration_s": run.duration_s,
        "base": quiet.base,
        "body": zlib.compress(f"{quiet.metrics}\n{quiet.facts}".encode(), _QUICK),
    }


def quiet_numbers(row: Mapping[Any, Any]) -> QuietNumbers:
    """The numbers of a quiet run from its row. Raises ValueError or zlib.error if the row is damaged."""
    metrics, _, facts = zlib.decompress(row["body"]).decode().partition("\n")
    at_ms = round(row["started_at"] * 1000)
    return QuietNumbers(row["seq"], at_ms, row["ahead_ms"], row["duration_s"], metrics, facts)


class NumbersReader:
    """Reads the numbers of quiet runs that are like `base`, which is read from JSON."""

    def __init__(self, base: Mapping[str, Any]) -> None:
        self._measured = len(numbers_in({**base, "facts": {}}))
        self._others = len(numbers_in({**base, "metrics": {}}))

    def read(self, row: Mapping[Any, Any]) -> QuietNumbers:
        """As `quiet_numbers`; ValueError also if there are too many or too few for the base."""
        found = quiet_numbers(row)
        if _count(found.metrics) != self._measured or _count(found.facts) not in (0, self._others):
            raise ValueError("has not as many numbers as the run that it is like")
        return found


def _count(numbers: str) -> int:
    return numbers.count(",") + 1 if numbers else 0


class BaseRows:
    """The rows of new bases, without those that are outdated again, and the outdated ones by node and run."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}
        self.outdated: dict[tuple[str, str], None] = {}

    def take(self, command: StoreRuns) -> None:
        """Takes the bases of a command."""
        for run in command.outdated:
            self.rows.pop((command.node, run), None)
            self.outdated[command.node, run] = None
        for base in command.bases:
            self.outdated.pop((base.node, base.run), None)
            number = next((run.seq for run in command.runs if run.id == base.run), 0)
            self.rows[base.node, base.run] = _base_row(base, number)


def outdated_bases(commands: Iterable[StoredCommand]) -> list[tuple[str, str]]:
    """The node and the run of each base that no new run may be like any more."""
    bases = BaseRows()
    for command in commands:
        if isinstance(command, StoreRuns) and (command.bases or command.outdated):
            bases.take(command)
    return list(bases.outdated)


async def read_bases(connection: AsyncConnection) -> tuple[RunBase, ...]:
    """The runs that new runs may be like, of each check the latest last. Whatever is damaged is left out."""
    of_base = (RUN_BASES.c.node, RUN_BASES.c.check, RUN_BASES.c.run, RUN_BASES.c.stream, RUN_BASES.c.verdict)
    rows = await connection.execute(select(*of_base, RUN_BASES.c.shape).order_by(RUN_BASES.c.number))
    return tuple(
        RunBase(node, check, run, stream, verdict, _shape(shape))
        for node, check, run, stream, verdict, shape in rows.all()
        if isinstance(shape, bytes) and len(shape) == 3 * DIGEST_BYTES
    )


async def whole_bases(connection: AsyncConnection, unread: Unread, runs: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The whole runs with these ids, as read from JSON; without those that are damaged or absent."""
    found: dict[str, dict[str, Any]] = {}
    wanted = sorted(set(runs))
    for first in range(0, len(wanted), BASES_AT_ONCE):
        query = select(RUNS.c.id, RUNS.c.body).where(RUNS.c.id.in_(wanted[first : first + BASES_AT_ONCE]))
        rows: Sequence[Any] = (await connection.execute(query)).all()
        for base in unread.leave_out("runs", rows, _object):
            found[base["id"]] = base
    return found


async def whole_base(connection: AsyncConnection, run: str) -> dict[str, Any]:
    """The whole run with this id. Raises Unreadable if it is damaged or absent."""
    body = await connection.scalar(select(RUNS.c.body).where(RUNS.c.id == run))
    return read_row("runs", run, body or "", _object)


def _object(body: str) -> dict[str, Any]:
    read = from_json(body)
    if not isinstance(read, dict) or not isinstance(read.get("metrics"), dict) or "facts" not in read:
        raise ValueError("is not a run")
    return read


def _base_row(base: RunBase, number: int) -> dict[str, Any]:
    return {
        "node": base.node,
        "check": base.check,
        "run": base.run,
        "number": number,
        "stream": base.stream,
        "verdict": base.verdict,
        "shape": base.shape.outline + base.shape.facts + base.shape.gaps,
    }


def _shape(digests: bytes) -> RunShape:
    size = DIGEST_BYTES
    return RunShape(digests[:size], digests[size : 2 * size], digests[2 * size :])
