"""Paths between leaves that are convicted, and links between two nodes if the leaves are unknown.

The idea: if two nodes that are healthy with all others are bad together, something between them is bad.

Example: in a fleet of 12 nodes at leaves a, b and c, a1-c1, a2-c2, a3-c3 and a4-c4 are slow, and each of these nodes
passes with nodes of leaf b. The path a-c is convicted. A single good run across it, such as a2-c1, would clear it, and
the four slow runs would count as an intermittent fault.

Takes time in proportion to all runs, times the pairs of their members, and only if a run is unexplained.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.evidence.fabric import Path
from muster_coordinator.localize.evidence.hardware import ComparedKind
from muster_coordinator.localize.likelihood.likelihood_ratio import bound
from muster_coordinator.localize.rules.clearance import Clearance
from muster_coordinator.localize.rules.culprit import Culprit, Part
from muster_coordinator.localize.rules.evidence_against import pairs_missing
from muster_coordinator.model.probes import GroupRun

QUIET_BESIDE = 3
"""A run across a path is quiet with at most this number of other groups of several nodes beside it. Groups that share
links slow each other: where leaves are oversubscribed, or connections collide on one way to a spine, a path may be slow
in every round of many groups. Few groups fill the uplinks of a small leaf.
"""

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
            if not self.runs_missing(path) and not self.lacks_control(path) and not self.may_be_the_level(runs)
        }

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
                found.setdefault(evidence.fabric.path(*run.members), []).append(run)
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
        if not self.unexplained:
            return {}
        hardware, good = self.clearance.nodes.evidence.hardware, self._good_by_kinds
        return {
            path: runs
            for path, runs in self.unexplained.items()
            if any(path in good.get(hardware.kinds_of(run.members), ()) for run in runs)
        }

    @cached_property
    def _good_by_kinds(self) -> Mapping[frozenset[ComparedKind], Set[Path]]:
        """The paths with good runs, by the kinds of hardware of their members.

        Rule: a good run clears a path for its kind only. Prevents: the path a-c lets through 60 % of what new nodes can
        do. Old nodes need no more, and pass.
        """
        evidence = self.clearance.nodes.evidence
        good = {run.group: run for history in evidence.histories.values() for run in history.good}
        found: dict[frozenset[ComparedKind], set[Path]] = {}
        for run in good.values():
            found.setdefault(evidence.hardware.kinds_of(run.members), set()).update(evidence.fabric.paths(run.members))
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
        return [run for run in self.never_good[path] if run.beside <= QUIET_BESIDE]

    def lacks_control(self, path: Path) -> bool:
        """Whether neither end of a bad link has passed with others since the link's second bad run.

        Rule: a link between two nodes needs such a control. A path between leaves has other nodes to try it.
        Prevents: a-b and b-c pass. Then something slows down the whole fleet, and a-c is slow four times. The link a-c
        would be convicted although a-b would be slow as well by now.
        """
        if path.of_leaves or len(bad := self.never_good[path]) < 2:
            return False
        evidence = self.clearance.nodes.evidence
        order = {run.group: place for place, run in enumerate(evidence.runs)}
        passed = [run for end in path.ends for run in evidence.histories[end].good_together]
        return all(order[run.group] < order[bad[1].group] for run in passed)
