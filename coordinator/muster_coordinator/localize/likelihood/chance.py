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
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.fabric import Path
from muster_coordinator.localize.evidence.hardware import ComparedKind
from muster_coordinator.localize.evidence.run_kinds import RunKind
from muster_coordinator.model.probes import GroupRun

SLOW_BY_CHANCE, EXPECTED_RUNS = 0.015, 100
"""Share of runs that is slow by chance before any has run, and its weight as a number of runs.

If one node in twenty has a fault that shows in 30 % of its runs, 1.5 % of the runs of other nodes meet one.
"""

SLOW_BY_CONTENTION = 0.2
"""The same for runs across leaves where runs share links: traffic of others, or two groups at one small leaf, slow some
runs even while few groups run.

Chosen by simulation, on a fabric with all disturbances at once: of 150 sweeps, 6 name something healthy at 0.015, and 3
at 0.05 and at 0.2. As many faults are found."""

FEWEST_BUSY, SHARE_BUSY = 2, 0.075
"""From this number, and this share of the runs across leaves, SLOW_BY_CONTENTION explains the slow ones better than
SLOW_BY_CHANCE does. One may always be a straggler."""

LEAST_REACHED, BROKEN = 0.05, 0.01
"""Shares of normal: what a slow run reaches at least, and what stands for a run that broke. A part breaks runs or slows
them. Prevents: path a-b hangs. a4 met b1 across it, and straggles once alone, at 0.06. That would be the same twice.
"""

MEAN_LOSS = 0.7
"""Of slow runs, as a logarithm. Small losses are more frequent than large ones: of runs whose durations have a heavy
tail with index 1.5, the mean is 0.67; of parts that deliver between 10 and 70 % of normal, 1.0.
"""

MOST_REMEMBERED = 200
"""Number of slow runs that are enough to know what they reach."""


class Crowd(NamedTuple):
    """The runs that may be bad by one chance: of one kind, beside few other groups or many, broken or slow.

    Contention makes many runs slow and none hang.
    """

    kind: RunKind
    is_beside_few: bool
    is_broken: bool


@dataclass(frozen=True, slots=True)
class Chance:
    """A number of `runs`, and what the slow ones `reached`, by group, as the logarithm of a share of normal.

    Before any has run, the `expected` share is slow.
    """

    runs: int
    reached: Mapping[str, float]
    expected: float = SLOW_BY_CHANCE

    def log_density(self, reached: float, width: float, own: Set[str]) -> float:
        """That a run is slow by chance and reaches just this, with noise of this `width`.

        Half of the slow runs reach what is expected, half what others reached. The groups in `own` do not count: they
        are evidence against the part in question. Prevents: n7 is bad in four of twelve runs alone, and passes in the
        others. Its own runs would show that chance is frequent.
        """
        others = [value for group, value in islice(self.reached.items(), MOST_REMEMBERED) if group not in own]
        slow = len(self.reached) - len(self.reached.keys() & own)
        share = (EXPECTED_RUNS * self.expected + slow) / (EXPECTED_RUNS + self.runs)
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
        """What a run reached, as the logarithm of a share of normal, or of BROKEN."""
        normal = self.evidence.thresholds.normal(run)
        if not run.objective or not normal:
            return math.log(BROKEN)
        return math.log(min(max(run.objective / normal, LEAST_REACHED), 1.0))

    def _crowd(self, run: GroupRun) -> Crowd:
        thresholds, few = self.evidence.thresholds, self.evidence.fabric.few_beside
        return Crowd(thresholds.kind_of(run), run.beside <= few, not thresholds.is_slow(run))

    @cached_property
    def _by_chance(self) -> Mapping[Crowd, Chance]:
        return self._learned(filter(self._is_bad_by_chance, self.evidence.thresholds.bad_runs))

    @cached_property
    def _for_any_reason(self) -> Mapping[Crowd, Chance]:
        return self._learned(self.evidence.thresholds.bad_runs)

    def _learned(self, bad_runs: Iterable[GroupRun]) -> Mapping[Crowd, Chance]:
        bad: dict[Crowd, dict[str, float]] = defaultdict(dict)
        for run in bad_runs:
            bad[self._crowd(run)][run.group] = self.reached(run)
        return {
            crowd: Chance(number, bad[crowd], self._expected(crowd))
            for (kind, few), number in self._number_of_runs.items()
            for crowd in (Crowd(kind, few, False), Crowd(kind, few, True))
        }

    @cached_property
    def _number_of_runs(self) -> Mapping[tuple[RunKind, bool], int]:
        """How many runs of each kind there are beside few other groups, and beside many."""
        kind_of, few = self.evidence.thresholds.kind_of, self.evidence.fabric.few_beside
        return Counter((kind_of(run), run.beside <= few) for run in self.evidence.runs)

    def _expected(self, crowd: Crowd) -> float:
        busy = crowd.kind is RunKind.ACROSS and not crowd.is_broken and self.are_links_busy
        return SLOW_BY_CONTENTION if busy else SLOW_BY_CHANCE

    @cached_property
    def are_links_busy(self) -> bool:
        """Whether runs share links, or other work fills them: many pairs across leaves were slow by chance."""
        thresholds = self.evidence.thresholds
        across = sum(number for (kind, _), number in self._number_of_runs.items() if kind is RunKind.ACROSS)
        slow = (run for run in thresholds.bad_runs if thresholds.is_slow(run))
        by_chance = {
            run.members for run in slow if thresholds.kind_of(run) is RunKind.ACROSS and self._is_bad_by_chance(run)
        }
        return thresholds.are_links_shared or len(by_chance) >= max(FEWEST_BUSY, SHARE_BUSY * across)

    def _is_bad_by_chance(self, run: GroupRun) -> bool:
        """Whether members of a bad run do well in such runs, and the paths that it crossed, too.

        Of a path between two nodes of unknown leaves nothing more is known. Contention may be the cause, unless the run
        broke.
        """
        thresholds, evidence = self.evidence.thresholds, self.evidence
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
        for run in self.evidence.thresholds.good_runs:
            found[self.evidence.hardware.kinds_of(run.members)] |= self.evidence.fabric.paths(run.members)
        return found


def expected_density(reached: float) -> float:
    """Of what a slow run reaches before any is known: exponential in the loss."""
    return math.exp(reached / MEAN_LOSS) / MEAN_LOSS


def kernel(reached: float, others: Sequence[float], width: float) -> float:
    """The density of `reached` if it is one of `others` and noise of this width, with the tail of Student's t (3)."""
    distances = ((reached - other) / width for other in others)
    return 6 * math.sqrt(3) / (math.pi * width * len(others)) * sum((3 + far * far) ** -2 for far in distances)
