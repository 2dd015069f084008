"""The likelihood ratio of a bad part against chance, and the bound that convicts it.

The idea: each bad run is a bet between two models. By chance, a run is slow rarely, and reaches anything
(`chance.py`). If a part is bad, its runs are mostly bad, and each reaches about what the ones before it reached. The
logarithm of the ratio of both probabilities, run by run, sums to the evidence.

Each run is predicted from the runs before it only, and which run comes next does not depend on its result. So, if no
part is bad, the expected ratio stays 1 in any number of runs, and reaches r with probability 1/r at most, at whatever
moment one looks (Ville 1939). With `candidates` parts and a bound of candidates / FALSE_NODES, a sweep convicts a
healthy part by chance with probability FALSE_NODES at most (Bonferroni). What chance does is learned from the same
sweep, so the bound is only as true as what is learned.

Example: in a fleet of 64 nodes, node n7 is slow twice, at 0.40 and at 0.41 of normal, and 31 pairs pass. So chance
makes 1.1 % of the runs slow. These logarithms are added:

    4.5     the first run is 87 times as likely if n7 is bad, whatever it reaches
    6.3     so is the second, and if n7 is bad, it is 7 times as likely to reach just this
    -0.3    a bad part may have good runs, and n7 has none

The sum of 10.5 is less than the bound, log(64 / 0.001) = 11.1, so n7 runs once more. If the second run had reached 0.6,
the sum would be 7.5. A good run between them would cost 2.6.

Takes O(k²) for k bad runs of a part, and O(k x slow runs by chance).
"""

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.likelihood.chance import LEAST_REACHED, Chance, Chances, expected_density, kernel
from muster_coordinator.localize.significance import FALSE_NODES
from muster_coordinator.model.probes import GroupRun

AS_BEFORE = 0.8
"""Share of the runs of a bad part that reach what others of its runs have reached. The rest is for parts whose fault
shows differently, such as a node that is slower alone than its link.
"""

LEAST_SPREAD = 0.08
"""What a bad part reaches is taken to vary by this share at least. Slow runs by chance are alike, too: what straggles
takes three times as long each time.

Chosen by simulation: one run in 40 takes three times as long, in 140 sweeps of 64 nodes with one fault or none. At the
noise of runs, 2 %, six healthy nodes are convicted, at 0.06 one, and none at 0.08. As many faults are found.
"""

LEAST_RUNS = 2
"""One slow run convicts nobody: the first is 67 times as likely if a part is bad, and a fleet has many parts."""

FEWEST_NODES = 64
"""In a smaller fleet, as much evidence is asked for: runs are cheap there, and few of them say little about chance.

Chosen by simulation: one run in 50 straggles, or one in 20 with a heavy tail, in 1,080 sweeps of 8 to 32 nodes. With
64, 14 name something healthy, and 22 without. As many lasting faults are found, and fewer links that come and go."""

MOST_MISSING = 9
"""More runs are not worth counting: where chance makes runs like these, no number of them tells."""

WORTH_A_RUN = 3.0
"""A further run is worth its cost if the runs before are 20 times as likely if the part is bad. If one part in 100 is,
one such try in six is about a fault. One slow run in a calm fleet is 58 times as likely."""

BAD_RUNS, GOOD_RUNS = 1.0, 0.25
"""Of a bad part before it has run, as if it had had these. Most faults show in every run; some come and go."""


@dataclass(frozen=True)
class LikelihoodRatios:
    """The likelihood ratios of parts by their runs in `evidence`."""

    evidence: GroupEvidence

    @cached_property
    def _chances(self) -> Chances:
        return Chances(self.evidence)

    @property
    def are_links_busy(self) -> bool:
        """Whether runs across leaves are slow by chance more often than elsewhere."""
        return self._chances.are_links_busy

    def log_share(self, run: GroupRun) -> float:
        """What a run reached, as the logarithm of a share of normal; next to nothing if it broke."""
        return max(self._chances.reached(run), math.log(LEAST_REACHED))

    def log_ratio(self, bad: Sequence[GroupRun], good: int = 0) -> float:
        """The logarithm of the ratio for a part with these bad runs and a number of `good` ones; 0 without any."""
        return _log_odds(len(bad), good) + self._gains(bad, {run.group for run in bad})

    def log_ratio_of_node(self, bad: Sequence[GroupRun], good: int) -> float:
        """The same for a node in itself: only its runs alone are its own.

        What its runs with others show, another part may do. They count if they reached what the node reaches alone, and
        the less, the more runs of all nodes are bad. Prevents: leaf a hangs, and a1 to a4 hang with everyone. By
        chance, a3 is slow once alone.
        """
        alone = [run for run in bad if len(run.members) == 1]
        levels = tuple(map(self._chances.reached, alone))
        own = {run.group for run in bad}
        gains = self._gains(alone, own)
        for run in bad:
            if len(run.members) > 1:
                gains += self._gain(run, levels, self._chances.for_any_reason(run), own)
        return _log_odds(len(bad), good) + gains

    def _gains(self, bad: Sequence[GroupRun], own: Set[str]) -> float:
        """What the runs of one part add to the logarithm; each is predicted from those before it."""
        levels = tuple(map(self._chances.reached, bad))
        return sum(self._gain(run, levels[:place], self._chances.of(run), own) for place, run in enumerate(bad))

    def _gain(self, run: GroupRun, before: tuple[float, ...], otherwise: Chance, own: Set[str]) -> float:
        """What one run adds; earlier runs of the part have reached the values in `before`."""
        reached, width = self._chances.reached(run), self._width(run)
        return _log_density(reached, before, width) - otherwise.log_density(reached, width, own)

    def runs_missing(self, bad: Sequence[GroupRun], candidates: int, good: int = 0) -> int:
        """The number of further runs like the last one that would convict the part; 0 if there are enough.

        `candidates` is the number of parts that could be convicted instead.

        If there is none yet, at least two are needed.
        """
        if not bad:
            return LEAST_RUNS
        needed = bound(candidates)
        further = (n for n in range(MOST_MISSING) if self.log_ratio([*bad, *[bad[-1]] * n], good) >= needed)
        return next(further, MOST_MISSING)

    def are_worth_a_run(self, bad: Sequence[GroupRun]) -> bool:
        """Whether these bad runs of a part are so unlikely by chance that a further run may tell.

        Where one run in five is slow by chance, no small number of further runs convicts what was slow once.
        """
        return self.log_ratio(bad) >= WORTH_A_RUN

    def _width(self, run: GroupRun) -> float:
        """The spread of the difference of two runs of one part; of small spreads, the logarithm is nearly the share."""
        return math.sqrt(2) * max(self.evidence.thresholds.noise_of(run), LEAST_SPREAD)


def candidates_among(nodes: int) -> int:
    """How many nodes, or links of nodes, count as candidates: those of the fleet, but at least FEWEST_NODES."""
    return max(nodes, FEWEST_NODES)


def bound(candidates: int) -> float:
    """The logarithm of the ratio from which one of this number of parts is convicted."""
    return math.log(candidates / FALSE_NODES)


def _log_density(reached: float, before: tuple[float, ...], width: float) -> float:
    """Of a bad run of a bad part whose runs before have reached these."""
    usual = expected_density(reached)
    again = kernel(reached, before, width) if before else usual
    return math.log(AS_BEFORE * again + (1 - AS_BEFORE) * usual)


def _log_odds(bad: int, good: int) -> float:
    """The logarithm of the probability that a bad part has these numbers of bad and good runs."""
    return _log_beta(BAD_RUNS + bad, GOOD_RUNS + good) - _log_beta(BAD_RUNS, GOOD_RUNS)


def _log_beta(one: float, other: float) -> float:
    return math.lgamma(one) + math.lgamma(other) - math.lgamma(one + other)
