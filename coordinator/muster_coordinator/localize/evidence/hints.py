"""Conspicuous values in the bad runs of a node. Hints decide which suspect runs first, and convict no node.

A node that came last may have waited for the data of another node. A node whose ranks crashed may have received
nonsense from another node.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from muster_coordinator.model.probes import GroupRun


@dataclass(frozen=True, slots=True, order=True)
class Hints:
    """Conspicuous values of a node; the greater, the more suspicious.

    `crashes`: the number of runs in which its own ranks crashed. `slower`: the duration of its own work divided by that
    of the others. `latest`: the share of rounds in which it came last. The last two are those of its worst run.
    """

    crashes: int = 0
    slower: float = 0.0
    latest: float = 0.0


def hints_of(node: str, bad: Sequence[GroupRun]) -> Hints:
    """The hints from the `bad` runs of a node."""
    return Hints(
        crashes=sum(node in run.crashed for run in bad),
        slower=max((_slower(node, run) for run in bad), default=0.0),
        latest=max((run.latest.get(node, 0.0) for run in bad), default=0.0),
    )


def _slower(node: str, run: GroupRun) -> float:
    others = [seconds for other in run.others(node) if (seconds := run.work_s.get(other))]
    return run.work_s.get(node, 0.0) / statistics.median(others) if others else 0.0
