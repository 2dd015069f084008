"""The list of sweeps as text.

It reads the API's JSON directly and imports none of the models: their import takes longer than the whole of `muster
sweep list`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from muster.instants import instant_text
from muster.table import table
from muster_coordinator.model.sweep_id import shortened

_HEADER = ("SWEEP", "STARTED", "STATE", "VERDICT", "CHECK", "STRATEGY", "NODES", "ROUNDS")


@dataclass(frozen=True, slots=True)
class ListedSweep:
    """What the list shows of a sweep."""

    id: str
    created_at: float
    cells: tuple[str, ...]
    """From STATE on."""


def listed_sweep(answer: Any) -> ListedSweep:
    """A sweep from the API's answer. Raises ValueError if it lacks a field that the list needs."""
    try:
        return ListedSweep(
            id=answer["id"],
            created_at=datetime.fromisoformat(answer["created_at"]).timestamp(),
            cells=(
                answer["state"],
                answer.get("verdict") or "-",
                answer["check"],
                answer["strategy"],
                str(len(answer["nodes"])),
                str(len(answer["rounds"])),
            ),
        )
    except (KeyError, TypeError, AttributeError):
        raise ValueError("not a sweep") from None


def sweep_list(sweeps: Sequence[ListedSweep]) -> str:
    """A line for each sweep; ids are as short as they can be typed."""
    ids = shortened(sweep.id for sweep in sweeps)
    return table(_HEADER, ((ids[sweep.id], instant_text(sweep.created_at), *sweep.cells) for sweep in sweeps))
