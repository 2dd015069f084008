"""The list of sweeps as text."""

from collections.abc import Sequence

from muster.instants import instant_text
from muster.table import table
from muster_coordinator.model.sweep_id import shortened
from muster_coordinator.model.sweep_records import SweepRecord

_HEADER = ("SWEEP", "STARTED", "STATE", "VERDICT", "CHECK", "STRATEGY", "NODES", "ROUNDS")


def sweep_list(sweeps: Sequence[SweepRecord]) -> str:
    """A line for each sweep; ids are as short as they can be typed."""
    ids = shortened(sweep.id for sweep in sweeps)
    return table(_HEADER, (_row(sweep, ids[sweep.id]) for sweep in sweeps))


def _row(sweep: SweepRecord, id: str) -> tuple[str, ...]:
    return (
        id,
        instant_text(sweep.created_at),
        sweep.state,
        sweep.verdict or "-",
        sweep.check,
        sweep.strategy,
        str(len(sweep.nodes)),
        str(len(sweep.rounds)),
    )
