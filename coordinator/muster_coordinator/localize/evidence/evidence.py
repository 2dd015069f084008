"""The evidence from the groups of a sweep: which runs were bad, the history of each node, and which nodes passed.

- A bad run counts alike against all its members, even if only the ranks of one member crashed: a partner that sends
  nonsense can crash them. In a large group a crash counts only against the members that crashed.
- A void run says nothing.
- A slow run says nothing if the hardware of a member may be the cause: there are too few nodes of its kind to compare
  them with each other.

Example: a-b is slow, a-c passes, d-e is void. The histories of a and b have a bad run each, those of a and c a good one
each. a and c are cleared. d and e have shown nothing.

Each cached property takes time in proportion to the number of runs times their members, once.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from muster_coordinator.localize.evidence.fabric import KnownFabric, Path, sides_of
from muster_coordinator.localize.evidence.hardware import ComparedKind, KnownHardware
from muster_coordinator.localize.evidence.history import NodeHistory, suspected_members
from muster_coordinator.localize.evidence.population import RunsAlone, runs_alone, slow_alike
from muster_coordinator.localize.evidence.reached import best_of_nodes
from muster_coordinator.localize.evidence.sweep_thresholds import SweepThresholds
from muster_coordinator.localize.evidence.threshold import LEAST_SHORTFALL
from muster_coordinator.model.probes import GroupRun, RunOutcome, Site

FEWEST_BARELY_SLOW = 3
"""Chosen by simulation: of 4,200 healthy sweeps of 3 to 8 nodes at noise of 20 %, 5 convict a node. At 2, it is
one in a hundred. At 4, no node of four could be convicted: it has three partners.
"""


@dataclass(frozen=True)
class GroupEvidence:
    """The evidence of `runs` over the nodes at `sites`; the sites are in topology order."""

    sites: Mapping[str, Site]
    runs: tuple[GroupRun, ...]

    @cached_property
    def thresholds(self) -> SweepThresholds:
        """The typical values, and the thresholds for slow runs."""
        declared = self._thresholds_of_declared
        return replace(declared, hardware=self.hardware) if self.hardware.slow_alike else declared

    @cached_property
    def _thresholds_of_declared(self) -> SweepThresholds:
        """Those if every node is of the kind that it has declared."""
        return SweepThresholds(self.runs, self.fabric, KnownHardware(self.sites))

    @cached_property
    def measured(self) -> frozenset[str]:
        """The nodes that had a run which was not void."""
        return frozenset(node for run in self.runs if run.outcome is not RunOutcome.VOID for node in run.members)

    @cached_property
    def fabric(self) -> KnownFabric:
        """Leaves and paths."""
        return KnownFabric(self.sites)

    @cached_property
    def hardware(self) -> KnownHardware:
        """Which nodes are compared with each other: those of one declared kind, but for those that are slow alike."""
        return replace(self._thresholds_of_declared.hardware, slow_alike=slow_alike(self.alone))

    @cached_property
    def alone(self) -> Mapping[ComparedKind, RunsAlone]:
        """What the nodes of each declared kind reach alone."""
        return runs_alone(self._thresholds_of_declared)

    def neighbours(self, node: str) -> frozenset[str]:
        """The other nodes of its leaf with which a node is compared."""
        kind = self.hardware.kind_of(node)
        return frozenset(other for other in self.fabric.neighbours(node) if self.hardware.kind_of(other) == kind)

    @cached_property
    def sides(self) -> Mapping[str, frozenset[str]]:
        """The known side of the fabric for each node that has passed with others."""
        return sides_of(run.members for run in self.thresholds.good_runs if len(run.members) > 1)

    @cached_property
    def histories(self) -> Mapping[str, NodeHistory]:
        """The history of every node."""
        histories = {node: NodeHistory() for node in self.sites}
        for run, bad, shown in zip(self.runs, self.thresholds.bad, self.thresholds.shown_healthy, strict=True):
            if bad and not self._may_be_slow_by_hardware(run):
                for node in suspected_members(run):
                    histories[node].bad.append(run)
                    if node in run.crashed or len(run.members) == 1:
                        histories[node].own_failures.append(run)
            else:
                passed = run.is_pass and not bad
                for node in run.members:
                    (histories[node].good if passed else histories[node].void).append(run)
                if passed and len(run.members) > 1:
                    for node in {*run.members} - shown:
                        histories[node].unclear.append(run)
        return histories

    @cached_property
    def best_elsewhere(self) -> Mapping[str, float]:
        """The most that each node has reached in good runs beyond its leaf, unless others may have slowed them; or 0.

        Kept, because a large leaf has many suspects that ask for each of its nodes.
        """
        return {
            node: max(
                (
                    run.objective or math.inf
                    for run in history.good_together
                    if not self.fabric.is_inside(run.members) and not self.thresholds.is_contended(run)
                ),
                default=0.0,
            )
            for node, history in self.histories.items()
        }

    @cached_property
    def cleared(self) -> frozenset[str]:
        """The nodes that have passed with others and were in no crash since.

        A good run alone is enough if no node ran with others. A crash also takes the clearance from the partner.
        Prevents: liar n1 passes with n2 and then crashes n0. If only n0 lost its clearance, every victim of n1 would
        become a suspect and n1 would stay cleared.
        """
        found: set[str] = set()
        for run, bad, shown in zip(self.runs, self.thresholds.bad, self.thresholds.shown_healthy, strict=True):
            _update_cleared(found, run, shown, bad=bad)
        return frozenset(found) - self._never_better

    @cached_property
    def _never_better(self) -> frozenset[str]:
        """Rule: a node is not cleared while its best run with others is nearer to a slow one than to normal.

        Prevents: the links between leaves carry 75 % of what a NIC does, and a2 delivers 70 %. It passes across leaves
        and is slow inside, where 100 % is normal.
        """
        together = [(run, bad) for run, bad in zip(self.runs, self.thresholds.bad, strict=True) if len(run.members) > 1]
        nearer: dict[str, float] = {}
        for run in (run for run, bad in together if bad and self.thresholds.is_slow(run)):  # a liar claims what broke
            threshold = self.thresholds.of(run)
            middle = math.sqrt((run.objective or 0.0) * threshold.typical) if threshold is not None else 0.0
            nearer |= {node: max(middle, nearer.get(node, 0.0)) for node in run.members}
        best = best_of_nodes(run for run, bad in together if not bad)
        return frozenset(node for node, middle in nearer.items() if 0 < best.get(node, 0.0) < middle)

    @cached_property
    def drawn_members(self) -> Mapping[str, frozenset[str]]:
        """The members of each group that were drawn at random, in their first run or after they were cleared."""
        drawn: dict[str, frozenset[str]] = {}
        cleared: set[str] = set()
        known: set[str] = set()
        for run, bad, shown in zip(self.runs, self.thresholds.bad, self.thresholds.shown_healthy, strict=True):
            drawn[run.group] = frozenset(node for node in run.members if node in cleared or node not in known)
            known.update(run.members)
            _update_cleared(cleared, run, shown, bad=bad)
        return drawn

    @cached_property
    def unproven_hardware(self) -> frozenset[ComparedKind]:
        """The kinds with too few nodes to compare them with each other. None of these has passed, and other nodes have.

        Prevents: a and b are a3 nodes in a fleet of a4 nodes, and reach 0.7 where others reach 1.5. Both are slow alone
        and with everyone, and would be convicted although each is as fast as an a3 node can be.
        """
        fast = {node for run in self.runs if self._reaches_the_best(run) for node in run.members}
        passed = {self.sites[node].hardware_kind for node in self.cleared & fast} - {None}
        return frozenset(kind for kind in self.hardware.rare.keys() - passed if kind is not None and passed)

    def _reaches_the_best(self, run: GroupRun) -> bool:
        """Whether a run is no slower than the best runs of its kinds by what could be another kind of hardware."""
        return run.objective is None or run.objective >= (1 - LEAST_SHORTFALL) * self.thresholds.like(run).best

    def is_of_unproven_hardware(self, node: str) -> bool:
        return self.sites[node].hardware_kind in self.unproven_hardware

    def _may_be_slow_by_hardware(self, run: GroupRun) -> bool:
        """Whether a slow run may be slow only because of the hardware of a member."""
        return self.thresholds.is_slow(run) and any(map(self.is_of_unproven_hardware, run.members))

    @cached_property
    def crossed(self) -> frozenset[Path]:
        """The paths between two leaves across which runs have shown something."""
        telling = (run.members for run in self.runs if run.outcome is not RunOutcome.VOID)
        paths = frozenset().union(*map(self.fabric.paths, telling))
        return frozenset(path for path in paths if path.of_leaves and path.ends[0] != path.ends[1])

    @cached_property
    def uncrossed(self) -> frozenset[Path]:
        """The other paths between two leaves. Takes time in proportion to all pairs of leaves."""
        pairs = combinations(sorted(self.fabric.leaves), 2)
        return frozenset(Path(pair, of_leaves=True) for pair in pairs) - self.crossed

    @cached_property
    def uncrossed_between_kinds(self) -> frozenset[Path]:
        """Those of `uncrossed` between leaves that have no kind of hardware in common."""
        if not self.hardware.are_several:
            return frozenset()
        kinds = {leaf: self.hardware.kinds_of(nodes) for leaf, nodes in self.fabric.leaves.items()}
        return frozenset(path for path in self.uncrossed if kinds[path.ends[0]].isdisjoint(kinds[path.ends[1]]))

    def runs_missing_beyond_noise(self, bad: Sequence[GroupRun]) -> int:
        """How many more runs like `bad` are needed before noise does not explain them.

        Rule: three in all if one of them is barely slow. Prevents: of four nodes, a-b reaches 0.78 and c-d 1. Nobody
        knows how much runs differ here. By noise, a-c reaches 0.79 then, and healthy a would be convicted.
        """
        return max(FEWEST_BARELY_SLOW - len(bad), 0) if any(map(self.is_barely_slow, bad)) else 0

    def is_barely_slow(self, run: GroupRun) -> bool:
        """Whether a run is slow, but so little that it may be noise for all that the few other runs tell."""
        threshold = self.thresholds.of(run)
        slow = threshold is not None and self.thresholds.is_slow(run)
        return slow and threshold is not None and (run.objective or 0.0) >= threshold.certain_below

    def members_do_better(self, run: GroupRun) -> bool:
        """Whether all members of a bad run have reached clearly more with others: by as much as makes a run slow.

        Prevents: values shade into each other, g-h reaches 0.9 and g-a 0.7 where the threshold lies between. Both have
        barely passed elsewhere, so they may barely fail together, and no path is to blame.
        """
        threshold = self.thresholds.of(run)
        if threshold is None or not self.thresholds.is_slow(run) or run.objective is None:
            return True
        clearly_more = run.objective * threshold.typical / threshold.slow_below
        return all(self.histories[node].best_together > clearly_more for node in run.members)

    def slow_rails(self, run: GroupRun) -> frozenset[int]:
        """The rails that fell short of the better rails in the same run, by as much as makes a run slow.

        The better rails are the upper quartile: of eight rails the second best. A link whose rails are mostly slow must
        not make slow rails usual, and one rail that is lucky must not make others slow. Measured by simulation, 120
        sweeps for each number of bad rails, noise 2 to 10 %: at the median, all 120 links with five slow rails of eight
        are named by wrong rails; at the quartile, 118 are named as links. At the best rail, two bad rails are named
        exactly in 115 sweeps instead of 118.
        """
        threshold = self.thresholds.of(run)
        if threshold is None or not run.rails:
            return frozenset()
        usual = sorted(run.rails)[len(run.rails) * 3 // 4]
        slow_below = usual * threshold.slow_below / threshold.typical
        return frozenset(rail for rail, value in enumerate(run.rails) if value < slow_below)


def _update_cleared(cleared: set[str], run: GroupRun, shown: frozenset[str], *, bad: bool) -> None:
    """Adds the nodes that a run has shown to be healthy, and removes those that were in a crash."""
    cleared |= shown
    if bad and run.crashed:
        cleared.difference_update(suspected_members(run))
