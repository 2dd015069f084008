"""How soon faults are dealt with: from the first run that finds one to the decision, and on until the node is drained.

Example: a run that began at 10:00:00 is the first to find a fault. At 10:00:30 another one confirms it, and muster
decides to drain the node; at 10:00:32 Slurm has done so. It took 30 s to detect, and 2 s to cordon.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.model import ServiceState
from muster.transition import Effect
from muster_coordinator.model.transitions import TransitionRecord


@dataclass(frozen=True, slots=True)
class ReactionTimes:
    """Medians in seconds, None without any: from the first finding to the decision, and from there until drained."""

    detect_s: float | None
    detected: int
    cordon_s: float | None
    cordoned: int


def reaction_times(records: Iterable[TransitionRecord]) -> ReactionTimes:
    """The times of the drains among these transitions. What a person asked for was not detected."""
    drains = [record for record in records if record.transition.after is ServiceState.CORDONED]
    detected = [took for record in drains if (took := _detected_within(record)) is not None]
    cordoned = [took for record in drains if (took := _drained_within(record)) is not None]
    return ReactionTimes(_median(detected), len(detected), _median(cordoned), len(cordoned))


def _detected_within(record: TransitionRecord) -> float | None:
    transition = record.transition
    found = [cause.since for cause in transition.causes if cause.since is not None]
    is_first = transition.before is ServiceState.IN_SERVICE and transition.by is None
    return max(0.0, transition.at - min(found)) if found and is_first else None


def _drained_within(record: TransitionRecord) -> float | None:
    """Until the last actor that drains had done so; None while one has not, and if there is none."""
    draining = [outcome for outcome in record.outcomes.values() if not outcome.only_tells]
    if not draining or any(outcome.effect is not Effect.DONE for outcome in draining):
        return None
    return max(0.0, max(outcome.at for outcome in draining) - record.transition.at)


def _median(times: Sequence[float]) -> float | None:
    return statistics.median(times) if times else None
