"""The runs of a sweep by kind, and the values that runs of a kind are compared with.

Runs of one node, inside a leaf and across leaves cross different parts, so they are compared only among themselves. If
runs inside leaves and across leaves reach the same, they are compared with each other.

The cached properties take O(n) for n runs, once.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from muster_coordinator.localize.evidence.fabric import KnownFabric
from muster_coordinator.localize.evidence.reached import best_of_nodes, without_repeated
from muster_coordinator.localize.evidence.threshold import usual_of
from muster_coordinator.model.probes import GroupRun, RunOutcome


class RunKind(StrEnum):
    """What runs of a kind have in common: the parts that they cross. Only runs of one kind are compared.

    A run is ACROSS if its members stand at several leaves, or if a leaf is unknown.
    """

    ALONE = "alone"
    INSIDE = "inside a leaf"
    ACROSS = "across leaves"


FEWEST_ACROSS = 2
"""Runs across leaves have a level of their own if this many of them have no member at the leaf that is part of most.

Prevents: four nodes of leaf a are slow with nodes of other leaves, and nobody else has run across leaves. The level of
the bad leaf would be typical. Until there are enough, all runs of several nodes are compared with each other.
Chosen by simulation (64 nodes, links between leaves at 75 % of NICs, 252 sweeps): at 4, a path or leaf that hangs
leaves too few runs, and sweeps take 1.48 runs for each node; at 2, 1.31. As much is found, and nothing healthy named.
"""

APART = 0.05
"""If both levels differ by less, all runs of several nodes are compared: more values show better how they differ."""


@dataclass(frozen=True)
class RunsByKind:
    """All `runs` of a sweep in a `fabric`."""

    runs: tuple[GroupRun, ...]
    fabric: KnownFabric

    def kind_of(self, run: GroupRun) -> RunKind:
        """The kind of a run."""
        if (kind := self._by_members.get(run.members)) is None:
            kind = self._by_members[run.members] = self._kind_of(run.members)
        return kind

    def _kind_of(self, members: tuple[str, ...]) -> RunKind:
        if len(members) == 1:
            return RunKind.ALONE
        return RunKind.INSIDE if self.fabric.is_inside(members) else RunKind.ACROSS

    @cached_property
    def _by_members(self) -> dict[tuple[str, ...], RunKind]:
        """What `kind_of` has answered: rules ask for each run several times."""
        return {}

    @cached_property
    def are_apart(self) -> bool:
        """Whether runs across leaves have a level of their own."""
        across = [run for _, run in self.completed[RunKind.ACROSS]]
        leaves = [self.fabric.leaves_of(run.members) for run in across]
        (_, most), *_ = Counter(leaf for each in leaves for leaf in each).most_common(1) or [("", 0)]
        kinds = RunKind.ACROSS, RunKind.INSIDE
        low, high = sorted(usual_of(without_repeated(self.completed[kind])) for kind in kinds)
        return len(across) - most >= FEWEST_ACROSS and low < (1 - APART) * high

    @cached_property
    def compared(self) -> Mapping[RunKind, list[float]]:
        """The values that runs of each kind are compared with; of each node alone the best one.

        Suspects run alone again and again. Prevents: 20 slow nodes run alone three times, and their 20 partners once.
        """
        alone = [*best_of_nodes(run for _, run in self.completed[RunKind.ALONE]).values()]
        inside, across = self.completed[RunKind.INSIDE], self.completed[RunKind.ACROSS]
        across = self.crowded if len(self.crowded) >= FEWEST_ACROSS else across
        if self.are_apart:
            apart = {RunKind.INSIDE: without_repeated(inside), RunKind.ACROSS: without_repeated(across)}
            return {RunKind.ALONE: alone, **apart}
        together = without_repeated([*across, *inside])
        return {RunKind.ALONE: alone, RunKind.INSIDE: together, RunKind.ACROSS: together}

    @cached_property
    def crowded(self) -> list[tuple[float, GroupRun]]:
        """The runs across leaves beside many other groups, each with its objective."""
        few = self.fabric.few_beside
        return [(reached, run) for reached, run in self.completed[RunKind.ACROSS] if run.beside > few]

    @cached_property
    def completed(self) -> Mapping[RunKind, list[tuple[float, GroupRun]]]:
        """The runs of each kind that measured something, each with its objective."""
        runs: dict[RunKind, list[tuple[float, GroupRun]]] = {kind: [] for kind in RunKind}
        for run in self.runs:
            if run.outcome is RunOutcome.GOOD and run.objective:
                runs[self.kind_of(run)].append((run.objective, run))
        return runs
