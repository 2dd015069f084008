"""What slow runs show if nothing lasting is the cause: stragglers, contention, intermittent faults of others.

The idea: in every sweep, some runs are slow although each of their members does well in other runs. No lasting fault of
a member explains these runs. They show how often runs of one kind are slow by chance, and what they reach then.
Contention depends on how much runs at once, so runs beside many other groups have a chance of their own.

Example: of 512 pairs across leaves, 20 were slow, and the members of ten of these passed in later runs. The expected
share counts like 100 runs with 1.5 slow ones, so 11.5 of 612 runs are slow by chance: 1.9 %. If all ten took three
times as long, a run at a third of normal is ten times as likely by chance as one at a half.

Takes O(n) for n runs, once, and O(slow runs by chance) for each density.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.fabric import Path
from muster_coordinator.localize.evidence.hardware import ComparedKind
from muster_coordinator.localize.evidence.slow_runs import RunKind
from muster_coordinator.model.probes import GroupRun

SLOW_BY_CHANCE, EXPECTED_RUNS = 0.015, 100
"""Share of runs that is slow by chance before any has run, and its weight as a number of runs.

If one node in twenty has a fault that shows in 30 % of its runs, 1.5 % of the runs of other nodes meet one.
"""

LEAST_REACHED = 0.05
"""A share of normal. A run that reached less, or nothing, is as good as broken."""

MEAN_LOSS = 0.7
"""Of slow runs, as a logarithm. Small losses are more frequent than large ones: of runs whose durations have a heavy
tail with index 1.5, the mean is 0.67; of parts that deliver between 10 and 70 % of normal, 1.0.
"""

MANY_BESIDE = 3
"""With more other groups beside them, runs may share links. Four pairs of nodes fill no uplink of a leaf."""

MOST_REMEMBERED = 200
"""Number of slow runs that are enough to know what they reach."""


class Crowd(NamedTuple):
    """The runs that may be bad by one chance: of one kind, beside many other groups or few, broken or slow.

    Contention makes many runs slow and none hang.
    """

    kind: RunKind
    is_large: bool
    is_broken: bool


@dataclass(frozen=True, slots=True)
class Chance:
    """A number of `runs`, and what the slow ones `reached`, by group, as the logarithm of a share of normal."""

    runs: int
    reached: Mapping[str, float]

    def log_density(self, reached: float, width: float, own: Set[str]) -> float:
        """That a run is slow by chance and reaches just this, with noise of this `width`.

        Half of the slow runs reach what is expected, half what others reached. The groups in `own` do not count: they
        are evidence against the part in question. Prevents: n7 is bad in four of twelve runs alone, and passes in the
        others. Its own runs would show that chance is frequent.
        """
        others = [value for group, value in islice(self.reached.items(), MOST_REMEMBERED) if group not in own]
        slow = len(self.reached) - len(self.reached.keys() & own)
        share = (EXPECTED_RUNS * SLOW_BY_CHANCE + slow) / (EXPECTED_RUNS + self.runs)
        usual = expected_density(reached)
        again = kernel(reached, others, width) if others else usual
        return math.log(share * (usual + again) / 2)


@dataclass(frozen=True)
class Chances:
    """The chances of the runs in `evidence`."""

    evidence: GroupEvidence

    def of(self, run: GroupRun) -> Chance:
        """The chance of a run of this kind, beside as many others, if nothing lasting is the cause."""
        return self._by_chance[self._crowd(run)]

    def for_any_reason(self, run: GroupRun) -> Chance:
        """The same if another part may be the cause: of all bad runs of its kind, beside as many others."""
        return self._for_any_reason[self._crowd(run)]

    def reached(self, run: GroupRun) -> float:
        """What a run reached, as the logarithm of a share of normal."""
        normal = self.evidence.thresholds.normal(run)
        share = run.objective / normal if run.objective and normal else 0.0
        return math.log(min(max(share, LEAST_REACHED), 1.0))

    def _crowd(self, run: GroupRun) -> Crowd:
        is_broken = not self.evidence.thresholds.is_slow(run)
        return Crowd(self.evidence.thresholds.kind_of(run), run.beside > MANY_BESIDE, is_broken)

    @cached_property
    def _by_chance(self) -> Mapping[Crowd, Chance]:
        return self._learned(self._is_bad_by_chance)

    @cached_property
    def _for_any_reason(self) -> Mapping[Crowd, Chance]:
        return self._learned(self.evidence.thresholds.is_bad)

    def _learned(self, counts: Callable[[GroupRun], bool]) -> Mapping[Crowd, Chance]:
        runs = Counter((crowd.kind, crowd.is_large) for crowd in map(self._crowd, self.evidence.runs))
        bad: dict[Crowd, dict[str, float]] = defaultdict(dict)
        for run in filter(counts, self.evidence.runs):
            bad[self._crowd(run)][run.group] = self.reached(run)
        return {
            crowd: Chance(number, bad[crowd])
            for (kind, is_large), number in runs.items()
            for crowd in (Crowd(kind, is_large, False), Crowd(kind, is_large, True))
        }

    def _is_bad_by_chance(self, run: GroupRun) -> bool:
        """Whether a run was bad although its members do well in such runs, and the paths that it crossed, too.

        Of a path between two nodes of unknown leaves nothing more is known. Contention may be the cause, unless the run
        broke.
        """
        thresholds, evidence = self.evidence.thresholds, self.evidence
        if not thresholds.is_bad(run):
            return False
        if len(run.members) == 1:
            return evidence.histories[run.members[0]].passed_alone
        paths = evidence.fabric.paths(run.members)
        may_be_good = {path for path in paths if thresholds.is_slow(run) and not path.of_leaves}
        good = self._good_paths.get(evidence.hardware.kinds_of(run.members), frozenset())
        return evidence.cleared.issuperset(run.members) and paths - may_be_good <= good

    @cached_property
    def _good_paths(self) -> Mapping[frozenset[ComparedKind], Set[Path]]:
        """The paths that a good run has crossed, by the kinds of hardware of its members."""
        found: dict[frozenset[ComparedKind], set[Path]] = defaultdict(set)
        for run in filter(self.evidence.thresholds.is_good, self.evidence.runs):
            found[self.evidence.hardware.kinds_of(run.members)] |= self.evidence.fabric.paths(run.members)
        return found


def expected_density(reached: float) -> float:
    """Of what a slow run reaches before any is known: exponential in the loss."""
    return math.exp(reached / MEAN_LOSS) / MEAN_LOSS


def kernel(reached: float, others: Sequence[float], width: float) -> float:
    """The density of `reached` if it is one of `others` and noise of this width, with the tail of Student's t (3)."""
    distances = ((reached - other) / width for other in others)
    return 6 * math.sqrt(3) / (math.pi * width * len(others)) * sum((3 + far * far) ** -2 for far in distances)
