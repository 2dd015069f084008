"""What is known before a sweep begins: earlier sweeps with the same check, and findings of background checks."""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from muster_coordinator.model.sweep_records import Suspicion

MOST_SWEEPS = 30
"""Maximum number of remembered sweeps of one check: those of a month, if there is one each night."""


THIS_SWEEP = ""
"""In place of the id of an earlier sweep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSweep:
    """A sweep that ended `ended_at`, in which every node ran at least `passes` times with others."""

    id: str
    ended_at: float
    passes: int
    cleared: Set[str]
    convicted: Set[str]
    suspicions: Mapping[str, Suspicion]


@dataclass(frozen=True, slots=True)
class SweepPrior:
    """What is known before a sweep that begins `now`: earlier `sweeps`, the latest first.

    `doubted` are the nodes against which background checks have findings. Suspects meet them last.
    """

    sweeps: tuple[PastSweep, ...] = ()
    doubted: frozenset[str] = frozenset()
    now: float = 0.0


NO_PRIOR = SweepPrior()
