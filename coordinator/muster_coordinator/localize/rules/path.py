"""Paths between leaves that are convicted, and links between two nodes if the leaves are unknown.

The idea: if two nodes that are healthy with all others are bad together, something between them is bad.

Example: in a fleet of 12 nodes at leaves a, b and c, a1-c1, a2-c2, a3-c3 and a4-c4 are slow, and each of these nodes
passes with nodes of leaf b. The path a-c is convicted. A single good run across it, such as a2-c1, would clear it, and
the four slow runs would count as an intermittent fault.

Takes time in proportion to all runs, times the pairs of their members, and only if a run is unexplained.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from muster_coordinator.localize.evidence.fabric import KnownFabric, Path
from muster_coordinator.localize.evidence.hardware import ComparedKind
from muster_coordinator.localize.evidence.reached import ALIKE, amount_reached, number_near_highest, varies
from muster_coordinator.localize.likelihood.likelihood_ratio import bound
from muster_coordinator.localize.rules.clearance import Clearance
from muster_coordinator.localize.rules.culprit import Culprit, Part
from muster_coordinator.localize.rules.evidence_against import disjoint, pairs_missing
from muster_coordinator.localize.rules.wrong_labels import corrected_fabric
from muster_coordinator.model.probes import GroupRun

SEVERAL = 2
"""One bad pair may be chance; one good run clears the path then, whatever the labels."""

QUIET_BESIDE = 3
"""A run across a path is quiet with at most this number of other groups of several nodes beside it. Groups that share
links slow each other: where leaves are oversubscribed, or connections collide on one way to a spine, a path may be slow
in every round of many groups. Few groups fill the uplinks of a small leaf.
"""

SMALL = 0.5
"""A leaf of at most this share of the nodes of the largest one may have so few uplinks that all its paths look slow."""

SLOW_UPLINK = 0.4
"""Links between leaves may be cables of half the speed of a NIC, 200 of 400 Gbit/s. What a path carries while few
groups run is no less than this share of what is reached inside a leaf.
"""


@dataclass(frozen=True)
class PathFaults:
    """The paths and links that are convicted if these nodes are cleared."""

    clearance: Clearance

    @cached_property
    def convicted(self) -> Mapping[Path, Culprit]:
        """Rule: a path is convicted if it was never good, and bad more often than other faults or lies explain.

        `runs_missing` prevents: liar n0 is slow with n4, n5, n6 and n7, all of one leaf. Four bad runs cross the path,
        but always from n0. Pairs without n0 must be bad too.
        """
        nodes = self.clearance.nodes
        return {
            path: nodes.culprit(Part.PATH if path.of_leaves else Part.LINK, path.ends, runs)
            for path, runs in self.never_good.items()
            if not self.runs_missing(path)
            and not self.lacks_control(path)
            and not self.may_be_few_uplinks(path)
            and not self.may_be_the_level(runs)
        }

    def may_be_few_uplinks(self, path: Path) -> bool:
        """Rule: a path between leaves is convicted only if its quiet runs mostly reach the same.

        A fault lets through the same each time. Prevents: connections of a-c collide on one of few ways, now and then.
        Rule: nor if what leaves one of its ends varies or that leaf is small, and never was clearly better across other
        paths. Prevents: leaf c has three nodes, and so few uplinks that all who cross them are slower than control
        pairs of leaves with eight nodes. Twice they reach the same across the path a-c.
        """
        if not self._has_others(path):
            return False
        reached = [run.objective or 0.0 for run in self._quiet(path)]
        is_mostly_alike = number_near_highest(reached) >= len(reached) / 2
        return not is_mostly_alike or any(self._may_have_few_uplinks(end, path) for end in path.ends)

    def _may_have_few_uplinks(self, leaf: str, path: Path) -> bool:
        """Whether a leaf is small or its quiet bad runs vary, and it has not reached clearly more elsewhere."""
        is_doubtful = self._is_small(leaf) or varies(self._quiet_from.get(leaf, ()))
        return is_doubtful and not self._reached_more(leaf, path)

    def small_end(self, path: Path) -> str | None:
        """A small leaf at the end of a path that was bad in a quiet run, if it has not reached more across others."""
        if not self._has_others(path) or not self._quiet(path):
            return None
        small = (end for end in path.ends if self._is_small(end) and not self._reached_more(end, path))
        return next(small, None)

    def _has_others(self, path: Path) -> bool:
        """Whether other paths between leaves start at its ends."""
        return path.of_leaves and len(self.clearance.nodes.evidence.fabric.leaves) > len(path.ends)

    def _is_small(self, leaf: str) -> bool:
        """Whether a leaf has so few nodes that its uplinks may carry less than those of the largest leaf."""
        leaves = self.clearance.nodes.evidence.fabric.leaves
        return len(leaves[leaf]) <= SMALL * max(map(len, leaves.values()))

    def _reached_more(self, leaf: str, path: Path) -> bool:
        """Whether good runs from a leaf reached clearly more than quiet runs across a bad path. Also if those broke.

        Few uplinks break nothing.
        Rule: no single wrong label may explain it. A node that was slow across the path stands at the leaf. Prevents:
        leaf a has few uplinks, and a4 has the label of leaf b. a3-a4 reaches all that NICs can do.
        """
        if not (most := max(map(amount_reached, self._quiet(path)), default=0.0)):
            return True
        good = self._good_from.get(leaf, ())
        better = [frozenset(run.members) for run in good if (run.objective or math.inf) > ALIKE * most]
        slow = {node for run in self.never_good[path] for node in run.members}
        return bool(better) and frozenset.intersection(*better) <= slow

    @cached_property
    def _quiet_from(self) -> Mapping[str, Sequence[float]]:
        """What the quiet bad runs from each leaf have reached."""
        found: dict[str, list[float]] = defaultdict(list)
        for path in (path for path in self.never_good if path.of_leaves):
            for end in path.ends:
                found[end] += [run.objective or 0.0 for run in self._quiet(path)]
        return found

    @cached_property
    def _good_from(self) -> Mapping[str, Sequence[GroupRun]]:
        """The good runs from each leaf to others, unless others may have slowed them."""
        evidence, found = self.clearance.nodes.evidence, defaultdict[str, list[GroupRun]](list)
        good = {run.group: run for history in evidence.histories.values() for run in history.good_together}
        for run in good.values():
            leaves = evidence.fabric.leaves_of(run.members)
            if len(leaves) > 1 and None not in leaves and not evidence.thresholds.is_contended(run):
                for leaf in filter(None, leaves):
                    found[leaf].append(run)
        return found

    def may_be_the_level(self, bad: list[GroupRun]) -> bool:
        """Rule: while no run across leaves was good, a path is convicted only if slow uplinks do not explain it.

        Prevents: the links between leaves are slower than NICs, and one leaf has most of the nodes. Every run across
        leaves has a member there, so nothing tells a bad path from what all paths carry.
        """
        if self._was_good_across_leaves:
            return False
        thresholds = self.clearance.nodes.evidence.thresholds
        quiet = ((run.objective or 0.0, thresholds.like(run).within) for run in bad if run.beside <= QUIET_BESIDE)
        return any(within is not None and reached > SLOW_UPLINK * within.typical for reached, within in quiet)

    @cached_property
    def _was_good_across_leaves(self) -> bool:
        """Whether some run across leaves was good; also if nobody knows, because leaves are unknown."""
        evidence = self.clearance.nodes.evidence
        good = (run for history in evidence.histories.values() for run in history.good_together)
        return not evidence.fabric.all_leaves_known or not all(evidence.fabric.is_inside(run.members) for run in good)

    @cached_property
    def _fabric(self) -> KnownFabric:
        """Where nodes stand by what they reach."""
        return corrected_fabric(self.clearance)

    @cached_property
    def unexplained(self) -> Mapping[Path, list[GroupRun]]:
        """The bad runs of pairs of cleared nodes that reach clearly more with others, by path.

        Rule: crashes do not count. A node sends nonsense and makes its partner crash; a path does neither.
        Prevents: a1 to a4 crash beside c1 to c4, one pair each, and all eight pass with nodes of leaf b afterwards. The
        path a-c would be convicted.
        Rule: nor do runs that are no slower than runs beside many other groups. Prevents: two pairs run across the path
        a-c at the same time, and their connections collide on one way. Control pairs across other paths are faster.
        """
        evidence, cleared = self.clearance.nodes.evidence, self.clearance.cleared
        found: dict[Path, list[GroupRun]] = {}
        for run in {run.group: run for runs in self.clearance.nodes.suspects.values() for run in runs}.values():
            healthy = len(run.members) == 2 and not run.crashed and cleared.issuperset(run.members)
            if healthy and evidence.thresholds.is_bad_in_any_crowd(run) and evidence.members_do_better(run):
                found.setdefault(self._fabric.path(*run.members), []).append(run)
        return found

    @cached_property
    def sometimes_good(self) -> Mapping[Path, list[GroupRun]]:
        """Those of `unexplained` that had good runs too.

        Rule: one good run clears a path. A bad path is bad in every run; what comes and goes is in a node. Prevents: a1
        to a4 are slow with c1 to c4, because a1, a2, c3 and c4 have intermittent faults. a2-c1 passes. Without this
        rule, the path a-c would be convicted by four runs. In 250 simulated sweeps where one node in ten is bad in 30 %
        of its runs, 14 healthy paths between leaves are convicted without it and none with it, and 97 healthy links
        between nodes instead of 27.
        """
        return {path: runs for path, runs in self.unexplained.items() if self._was_good(path, runs)}

    def _was_good(self, path: Path, bad: list[GroupRun]) -> bool:
        """Whether a run across the path was good, in which every node stands where its label says.

        Rule: if several pairs were bad, not if one node was in all good runs and in no bad one. Prevents: the path a-c
        is bad, and a4 has the label of leaf c. a4 passes with a2, and nobody tries the path again. A good run that
        reached hardly more than the bad ones did cross the path.
        """
        good, most = self._good(path, bad), max(run.objective or 0.0 for run in bad)
        if not good or len(disjoint(run.members for run in bad)) < SEVERAL:
            return bool(good)
        if any((run.objective or 0.0) < ALIKE * most for run in good):
            return True
        in_all = frozenset.intersection(*(frozenset(run.members) for run in good))
        return in_all <= {node for run in bad for node in run.members}

    def met_across(self, path: Path) -> set[str]:
        """The nodes that ran across a path that was never good, and need not try it again."""
        bad = self.never_good[path]
        return {node for run in (*bad, *self._good(path, bad)) for node in run.members}

    def _good(self, path: Path, bad: list[GroupRun]) -> list[GroupRun]:
        """The good runs across a path of nodes like those that were bad across it."""
        kinds = {self.clearance.nodes.evidence.hardware.kinds_of(run.members) for run in bad}
        return [run for each in kinds for run in self._good_by_kinds.get(each, {}).get(path, ())]

    @cached_property
    def _good_by_kinds(self) -> Mapping[frozenset[ComparedKind], Mapping[Path, Sequence[GroupRun]]]:
        """The good runs across each path, by the kinds of hardware of their members.

        Rule: a good run clears a path for its kind only. Prevents: the path a-c lets through 60 % of what new nodes can
        do. Old nodes need no more, and pass.
        """
        evidence = self.clearance.nodes.evidence
        good = {run.group: run for history in evidence.histories.values() for run in history.good}
        found: dict[frozenset[ComparedKind], dict[Path, list[GroupRun]]] = {}
        for run in good.values():
            across = found.setdefault(evidence.hardware.kinds_of(run.members), {})
            for path in self._fabric.paths(run.members):
                across.setdefault(path, []).append(run)
        return found

    @cached_property
    def never_good(self) -> Mapping[Path, list[GroupRun]]:
        """Those of `unexplained` that had no good run."""
        return {path: runs for path, runs in self.unexplained.items() if path not in self.sometimes_good}

    @cached_property
    def suspected(self) -> Mapping[Path, list[GroupRun]]:
        """Those of `never_good` that another run may convict.

        Rule: a link between two nodes of unknown leaves only if chance hardly explains its bad runs. Prevents: leaves
        are oversubscribed 2:1 and nobody has declared them. 15 pairs are slow in the first round although their nodes
        pass with others. Each of these links would run again and again.
        """
        ratios = self.clearance.nodes.ratios
        return {path: runs for path, runs in self.never_good.items() if path.of_leaves or ratios.are_worth_a_run(runs)}

    def runs_missing(self, path: Path) -> int:
        """How many more bad runs convict a path that was never good; 0 if there are enough."""
        return max(self.any_runs_missing(path), self.quiet_runs_missing(path))

    def any_runs_missing(self, path: Path) -> int:
        """How many more bad runs are needed, however many other groups run."""
        evidence, bad = self.clearance.nodes.evidence, self.never_good[path]
        further = self.clearance.nodes.ratios.runs_missing(bad, len(self._crossed))
        return max(further, evidence.runs_missing_beyond_noise(bad), pairs_missing(evidence, path, bad))

    @cached_property
    def _crossed(self) -> frozenset[Path]:
        """The paths that pairs have crossed: each may look bad by chance."""
        evidence = self.clearance.nodes.evidence
        pairs = (run.members for run in evidence.runs if len(run.members) == 2)
        return frozenset(evidence.fabric.path(*pair) for pair in pairs)

    def quiet_runs_missing(self, path: Path) -> int:
        """How many more bad runs are needed while few other groups run: by themselves as many as chance requires.

        Prevents: of 64 nodes in pairs, all that cross the path a-c share their ways to the spines, and are slow in
        three rounds. Alone, each of them is fast.
        """
        return self.clearance.nodes.ratios.runs_missing(self._quiet(path), len(self._crossed))

    def log_ratio(self, path: Path) -> float:
        """The logarithm of how much more likely the quiet runs across a path are if it is bad."""
        return self.clearance.nodes.ratios.log_ratio(self._quiet(path))

    @cached_property
    def bound(self) -> float:
        """The least `log_ratio` that convicts a path of this fleet."""
        return bound(len(self._crossed))

    def _quiet(self, path: Path) -> list[GroupRun]:
        """The bad runs across a path while few other groups ran; one of each pair, and one of those at the same time.

        Prevents: 16 nodes, 2:1 oversubscribed. Both nodes of leaf b cross the path a-b at the same time, and each pair
        reaches half. Or another group crosses the uplinks of leaf b at the same time. Or the same pair is slow again
        and again: its ways to the spines are full.
        """
        quiet = [run for run in self.never_good[path] if run.beside <= QUIET_BESIDE]
        if not path.of_leaves:
            return quiet
        quiet = [run for run in quiet if not run.beside or self._is_by_itself(path, run.round)]
        pairs = {run.members: run for run in quiet}.values()
        return [*{(run.round, run.beside or run.group): run for run in pairs}.values()]

    def _is_by_itself(self, path: Path, number: int) -> bool:
        """Whether no group crossed other paths of its leaves in the round of this number."""
        return all(self._crossed_at[number, end] <= {path} for end in path.ends)

    @cached_property
    def _crossed_at(self) -> Mapping[tuple[int, str], set[Path]]:
        """The paths of a leaf that groups crossed in a round."""
        found: dict[tuple[int, str], set[Path]] = defaultdict(set)
        fabric = self.clearance.nodes.evidence.fabric
        for run in self.clearance.nodes.evidence.runs:
            leaves = sorted(leaf for leaf in fabric.leaves_of(run.members) if leaf is not None)
            for ends in combinations(leaves, 2):
                for end in ends:
                    found[run.round, end].add(Path(ends, of_leaves=True))
        return found

    def lacks_control(self, path: Path) -> bool:
        """Whether neither end of a bad link has passed with others since the link's second bad run.

        Rule: a link between two nodes needs such a control. A path between leaves has other nodes to try it.
        Prevents: a-b and b-c pass. Then something slows down the whole fleet, and a-c is slow four times. The link a-c
        would be convicted although a-b would be slow as well by now.
        """
        if path.of_leaves or len(bad := self.never_good[path]) < 2:
            return False
        histories = self.clearance.nodes.evidence.histories
        passed = (run for end in path.ends for run in histories[end].good_together)
        return all(self._order[run.group] < self._order[bad[1].group] for run in passed)

    @cached_property
    def _order(self) -> Mapping[str, int]:
        """The place of each group among all. Kept, because a fleet of unknown leaves has many links that ask."""
        return {run.group: place for place, run in enumerate(self.clearance.nodes.evidence.runs)}
