"""What the commands of the fleet delete."""

from collections.abc import Sequence

from sqlalchemy import delete, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from muster_coordinator.model.audit import StoredCommand
from muster_coordinator.model.baseline_commands import EraseBaseline
from muster_coordinator.model.events import EraseReference, EraseStream
from muster_coordinator.model.quarantine_events import EraseNode
from muster_coordinator.store.quiet_rows import outdated_bases
from muster_coordinator.store.tables import (
    BASELINES,
    CASES,
    EVIDENCE,
    FINGERPRINTS,
    LEVELS,
    NODES,
    REFERENCES,
    RESULTS,
    RUN_BASES,
    STREAMS,
)


class Erasures:
    """The rows to delete for a batch of commands; false if there are none."""

    def __init__(self, commands: Sequence[StoredCommand]) -> None:
        self._references = [command.number for command in commands if isinstance(command, EraseReference)]
        self._baselines = [command.baseline for command in commands if isinstance(command, EraseBaseline)]
        self._nodes = [command.node for command in commands if isinstance(command, EraseNode)]
        self._streams = [(command.node, command.stream) for command in commands if isinstance(command, EraseStream)]
        self._bases = outdated_bases(commands)

    def __bool__(self) -> bool:
        return any((self._references, self._baselines, self._nodes, self._streams, self._bases))

    async def before(self, connection: AsyncConnection) -> None:
        """Deletes what the batch may have saved again: its rows have only what was saved after the erasure."""
        if self._nodes:
            await connection.execute(delete(NODES).where(NODES.c.name.in_(self._nodes)))
            await connection.execute(delete(CASES).where(CASES.c.node.in_(self._nodes)))
            await connection.execute(delete(EVIDENCE).where(EVIDENCE.c.node.in_(self._nodes)))
        if self._baselines:
            await connection.execute(delete(BASELINES).where(BASELINES.c.id.in_(self._baselines)))
            await connection.execute(delete(LEVELS).where(LEVELS.c.baseline.in_(self._baselines)))
            await connection.execute(delete(FINGERPRINTS).where(FINGERPRINTS.c.id.in_(self._baselines)))
            await connection.execute(delete(RESULTS).where(RESULTS.c.fingerprint.in_(self._baselines)))
        if self._bases:
            await connection.execute(
                delete(RUN_BASES).where(tuple_(RUN_BASES.c.node, RUN_BASES.c.run).in_(self._bases))
            )

    async def after(self, connection: AsyncConnection) -> None:
        """Deletes the rest: a command of the same batch may have removed what another one saved."""
        if self._streams:
            await connection.execute(delete(STREAMS).where(tuple_(STREAMS.c.node, STREAMS.c.stream).in_(self._streams)))
        if self._references:
            await connection.execute(delete(REFERENCES).where(REFERENCES.c.number.in_(self._references)))
