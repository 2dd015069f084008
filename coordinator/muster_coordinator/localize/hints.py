"""What the bad runs of a node hint at: reasons to try it before others, and words for people. They convict nobody.

Who came last may have waited for somebody else's data, and whose ranks crashed may have been told nonsense by others.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster_coordinator.localize.trial import Trial

OFTEN_LAST = 0.8
"""In a group of two, chance makes it a half; over the twenty rounds of a run it gets here once in two hundred."""

SLOWER = 1.5
"""Healthy nodes of one kind differ by a few hundredths, and by a fifth where something else works on their hosts."""


@dataclass(frozen=True, slots=True, order=True)
class Hints:
    """What stands out about a node; more is more suspicious.

    `crashes` counts the runs that its own ranks ended, `slower` says how many times as long its own work took as that
    of the others, and `latest` in which share of the rounds it came last, each in the worst of its runs.
    """

    crashes: int = 0
    slower: float = 0.0
    latest: float = 0.0


def hints_of(node: str, bad: Sequence[Trial]) -> Hints:
    """What the `bad` runs of a node hint at."""
    return Hints(
        crashes=sum(node in trial.crashed for trial in bad),
        slower=max((_slower(node, trial) for trial in bad), default=0.0),
        latest=max((trial.latest.get(node, 0.0) for trial in bad), default=0.0),
    )


def in_words(hints: Hints) -> Iterable[str]:
    """What is worth telling."""
    if hints.slower >= SLOWER:
        yield f"its own work took {hints.slower:.1f} times as long as that of the others"
    if hints.latest >= OFTEN_LAST:
        yield f"it came last in {hints.latest:.0%} of the rounds"


def _slower(node: str, trial: Trial) -> float:
    others = [seconds for other in trial.others(node) if (seconds := trial.work_s.get(other))]
    return trial.work_s.get(node, 0.0) / statistics.median(others) if others else 0.0
