"""The track record of a node: how often it was bad for no known reason, over several sweeps with the same check.

The idea: a fault that comes and goes shows in a few runs of a sweep, and every good run looks like a cure. Over several
sweeps it shows again and again, with other partners each time; a healthy node is bad by chance only.

The measure is a likelihood ratio: how much better a fault that shows in a share q of the runs explains them than chance
with probability p. A bad run counts q / p, a good one (1 - q) / (1 - p). The age of a run is an exponent between 0 and
1. The expected ratio of a healthy node is at most 1, whatever the exponents. So it exceeds 64,000 for at most one of
64,000 healthy nodes (Markov), and for one of 64 nodes in at most one of 1,000 sweeps.

Example: p = 0.015, q = 0.5. Of seven runs in three sweeps of this week, four were bad: 33 ** 4 * 0.51 ** 3 = 160,000.
Of the same runs four weeks ago, each counts a quarter, which makes 20.

A ratio takes time in proportion to the number of sweeps.
"""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from muster_coordinator.localize.evidence.prior import THIS_SWEEP, PastSweep

SHOWN = (0.3, 0.5, 0.8)
"""Shares of its runs in which a fault may show; the ratio is the mean over them. Below 0.3, chance explains as much."""

SURE = 10.0
"""How much better a bad link than a bad node must explain the runs before the link is named."""

Partners = tuple[str, ...]


class PastRuns(NamedTuple):
    """The runs of a node in one sweep that count: the partners in the bad ones, and the number of the good ones."""

    sweep: PastSweep
    weight: float
    bad: tuple[Partners, ...]
    good: int
    good_alone: int


@dataclass(frozen=True)
class TrackRecord:
    """What a node has shown since its last conviction, the latest sweep first. Runs are bad by chance `at_random`."""

    node: str
    sweeps: tuple[PastRuns, ...]
    at_random: float

    @cached_property
    def bad(self) -> tuple[Partners, ...]:
        """The partners in each bad run; none for a run alone."""
        return tuple(partners for runs in self.sweeps for partners in runs.bad)

    @property
    def runs(self) -> int:
        """The number of all runs that count."""
        return len(self.bad) + sum(runs.good for runs in self.sweeps)

    @property
    def was_bad_alone(self) -> bool:
        return () in self.bad

    @property
    def is_bad_now(self) -> bool:
        """Whether a bad run is of the present sweep, in which the node may have taken no part."""
        return any(runs.bad for runs in self.sweeps if runs.sweep.id == THIS_SWEEP)

    @property
    def bad_earlier(self) -> tuple[Partners, ...]:
        """The partners in each bad run of earlier sweeps."""
        return tuple(partners for runs in self.sweeps if runs.sweep.id != THIS_SWEEP for partners in runs.bad)

    @property
    def since(self) -> PastSweep:
        """The sweep since which the node is suspected."""
        return [runs.sweep for runs in self.sweeps if runs.bad][-1]

    @cached_property
    def ratio(self) -> float:
        """How much better a fault of the node or of its link explains the runs than chance."""
        return (self._of_node + self._of_link) / 2

    @property
    def is_link(self) -> bool:
        """Whether the link is at fault, and not the node itself."""
        return self._of_link > SURE * self._of_node

    @cached_property
    def _of_node(self) -> float:
        return self._ratio((runs.weight, len(runs.bad), runs.good) for runs in self.sweeps)

    @cached_property
    def _of_link(self) -> float:
        """0 if the node was bad alone, where it uses no link. Good runs alone say nothing, for the same reason."""
        if self.was_bad_alone:
            return 0.0
        return self._ratio((runs.weight, len(runs.bad), runs.good - runs.good_alone) for runs in self.sweeps)

    def _ratio(self, sweeps: Iterable[tuple[float, int, int]]) -> float:
        """From weight, bad and good runs of each sweep."""
        weighted = [(weight * bad, weight * good) for weight, bad, good in sweeps]
        bad, good = (sum(column) for column in zip(*weighted, strict=True))
        return statistics.fmean(
            math.exp(bad * math.log(shown / self.at_random) + good * math.log((1 - shown) / (1 - self.at_random)))
            for shown in SHOWN
        )
