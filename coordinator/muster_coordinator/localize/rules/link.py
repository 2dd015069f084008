"""Nodes whose link or rails are convicted: they are healthy alone, or cannot run alone, and fail with everyone.

The idea: a node that never passes and fails with several healthy partners has a fault of its own. If it passes alone,
only its link or some of its rails are left. If a run alone tells nothing about this check, node and link cannot be told
apart, and the node is convicted.

Example: a4 is slow with c4, passes alone, and is slow with a1, of its own leaf, and with b1. c4, a1 and b1 pass with
others. The link of a4 is convicted. If it ran rail by rail with a1 and b1 and only rail 2 was slow, rail 2 is.

How many bad partners are enough depends on the fleet, on what chance does in it, and on how well the runs agree: see
`likelihood`. Where leaves are unknown, a bad switch or path may look like bad nodes, so more is asked.

Takes time in proportion to the suspects, times their bad runs, times the partners in these.
"""

import statistics
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.evidence.hardware import ComparedKind
from muster_coordinator.localize.likelihood.track_records import TrackRecords
from muster_coordinator.localize.rules.clearance import Clearance
from muster_coordinator.localize.rules.culprit import Culprit, Part
from muster_coordinator.localize.rules.evidence_against import disjoint, drawn_partners_missing
from muster_coordinator.localize.rules.leaf import ALIKE_AT_A_LEAF, LEAST_AT_LEAF, LeafFaults
from muster_coordinator.localize.rules.path import PathFaults
from muster_coordinator.localize.significance import crowds
from muster_coordinator.model.probes import GroupRun, RunOutcome

FEW_SIDES = 5
"""If leaves are unknown and no more sides of the fabric are known, a suspect must fail on each of them.

Chosen by simulation (1,800 sweeps of 8 to 40 nodes with unknown leaves, bad paths and bad links). At 5, 16
healthy nodes are convicted, all in fleets with up to half of all paths bad, and 396 of 600 bad links are found. At 2,
28 healthy nodes are convicted. At 10, 16 are, and 371 bad links are found.
"""

LEAST_ALIKE, SHARE_ALIKE = 2, 0.25
"""One switch may be the cause if this many nodes, and this share of all that fail with everyone, fail alike.

2 is the least for a switch. At 1, each node is alike to itself, and 3,254 bad nodes are found in 1,728 simulated sweeps
instead of 3,581. At 4, switches with two or three nodes are missed: in 900 sweeps, 885 healthy nodes are convicted
instead of none. The share is chosen by simulation: beside an undeclared switch with four nodes, 421 of 951 bad links
are found in 120 sweeps. At 0.125, 126 are; at 0.5, 682 are, but 140 healthy nodes behind the switch are convicted.
"""

ALIKE = 1.25
"""Nodes behind one bad switch differ by noise only; a quarter is much noise.

Chosen by simulation (noise 2 to 10 %). At 1.12, six healthy nodes behind an undeclared switch are convicted in 900
sweeps, and none at 1.25. At 1.5, only 190 of the 951 bad links above are found.
"""

FEWEST_CONTROLS, CONTROLLED_LEAF = 2, 8
"""Number of bad runs beside which other nodes of the leaf passed, and the least size of a leaf that needs them. The
first round is such a control by itself, but one slow run in it may be chance. In a small leaf, chance hits few nodes.

Chosen by simulation: a leaf is bad in half of the rounds, and one run in fifty straggles. With controls, 1 of 200
sweeps of 32 nodes names something healthy, and 6 without. At leaves of four nodes, 2 of 400 do in both.
"""


@dataclass(frozen=True)
class LinkFaults:
    """The nodes whose link or rails are convicted, given these faults of paths and leaves.

    `before` are the track records of earlier sweeps. Rule: if most nodes of a leaf were bad in these, none of their
    links is convicted. Prevents: the switch of the leaf is bad half of the time, and one node is unlucky today.
    """

    clearance: Clearance
    paths: PathFaults
    leaves: LeafFaults
    before: TrackRecords

    @cached_property
    def convicted(self) -> Mapping[str, Culprit]:
        """Rule: an isolated node has a bad link if it ran alone or has slow rails, and no unknown switch explains it.

        Prevents: a4 fails with everyone and has not run alone yet. It may be slow in itself, and its link would be
        replaced for nothing.
        """
        return {
            node: self._culprit(node, [run for run in runs if self._isolated.keys().isdisjoint(run.others(node))])
            for node, runs in self._isolated.items()
            if node not in self._excused and self._is_distinct_from_its_link(node) and not self.lacks_control(node)
        }

    def needs_control(self, node: str) -> bool:
        """Whether the next bad run with a partner would convict the link of a node if there were a control."""
        nodes = self.clearance.nodes
        is_suspect = node in nodes.suspects and node not in nodes.evidence.cleared
        return is_suspect and self.partners_missing(node) <= FEWEST_CONTROLS and self.lacks_control(node)

    def lacks_control(self, node: str) -> bool:
        """Rule: while a link is bad, other nodes of its leaf must have passed with others, in two of its bad runs.

        Prevents: a4 straggles in the first round, and the switch of leaf a is bad whenever a4 runs again.
        """
        evidence = self.clearance.nodes.evidence
        neighbours = self.clearance.healthy & evidence.neighbours(node)
        if len(neighbours) < CONTROLLED_LEAF - 1 or len(evidence.fabric.leaves) < 2:
            return False
        rounds = {run.round for other in neighbours for run in evidence.histories[other].good_together}
        return sum(run.round in rounds for run in self.clearance.nodes.suspects[node]) < FEWEST_CONTROLS

    def _is_distinct_from_its_link(self, node: str) -> bool:
        nodes = self.clearance.nodes
        ran_alone = nodes.evidence.histories[node].times_alone or not nodes.abilities.alone
        return bool(ran_alone or nodes.slow_rails(node))

    def _culprit(self, node: str, runs: list[GroupRun]) -> Culprit:
        nodes = self.clearance.nodes
        if rails := nodes.slow_rails(node):
            return nodes.culprit(Part.RAIL, (node,), runs, rails=rails)
        return nodes.culprit(Part.NODE_LINK if self._is_fast_alone(node) else Part.NODE, (node,), runs)

    def _is_fast_alone(self, node: str) -> bool:
        """Rule: a run alone speaks against the link only if it was compared with what others reach alone.

        Prevents: a, b and c are all nodes of a sweep. a is slow with b and with c. Alone it is slow too, but that is
        the only run alone. Its healthy link would be convicted.
        Rule: what it reaches alone must be nearer to normal than to what it reaches with others. Prevents: runs differ
        by 10 %, and a delivers 70 %. It reaches 0.72 alone, which is not slow among such runs, and 0.68 with others.
        """
        evidence = self.clearance.nodes.evidence
        alone = [run for run in evidence.histories[node].good if len(run.members) == 1]
        if not any(run.objective is None or evidence.thresholds.of(run) is not None for run in alone):
            return False
        with_others = self._log_share(self.clearance.runs_with_healthy(node))
        return self._log_share(run for run in alone if run.objective is not None) >= with_others / 2

    def _log_share(self, runs: Iterable[GroupRun]) -> float:
        """What runs reached on average, as the logarithm of a share of normal; next to nothing if they broke."""
        reached = [*map(self.clearance.nodes.ratios.log_share, runs)]
        return statistics.fmean(reached) if reached else 0.0

    @cached_property
    def alike(self) -> frozenset[str]:
        """Rule: if leaves are unknown, nodes that fail with everyone and alike are not convicted.

        Prevents: a, b and c stand behind one bad switch that nobody has declared, and reach 0.5, 0.5 and 0.52 of normal
        with everyone. Three healthy links would be convicted. At 0.1, 0.3 and 0.9 they fail differently, so one switch
        is not the cause.

        Nodes with known neighbours are not among them: their own leaf says whether its switch is bad.
        """
        nodes = self.clearance.nodes
        if nodes.evidence.fabric.all_leaves_known:
            return frozenset()
        with_neighbours = {node for node in self._isolated if nodes.evidence.neighbours(node)}
        candidates = nodes.suspects.keys() - nodes.evidence.cleared - with_neighbours
        return alike({node: self._reached(node) for node in candidates if self.clearance.runs_with_healthy(node)})

    @cached_property
    def _excused(self) -> frozenset[str]:
        of_bad_leaves = self.leaves.mostly_failing | self.before.of_bad_leaves
        return self.alike | self.perhaps_behind | self.alike_at_a_leaf | of_bad_leaves

    @cached_property
    def alike_at_a_leaf(self) -> frozenset[str]:
        """Rule: if two nodes of a leaf fail with everyone and alike, none of their links is convicted.

        Two bad links of one leaf rarely reach the same. Prevents: leaf a has a bad switch, and three healthy nodes are
        labelled as if they stood there. They pass, so the switch is not convicted, but 13 healthy links would be.
        """
        leaves = self.clearance.nodes.evidence.fabric.leaves.values()
        return frozenset(node for nodes in leaves for node in self._crowd(self._isolated.keys(), nodes, LEAST_ALIKE))

    @cached_property
    def perhaps_behind(self) -> frozenset[str]:
        """Rule: a node that fails with everyone like several suspects of one leaf is not convicted.

        Prevents: leaf a has a bad switch or bad uplinks, and a4 is labelled as if it stood at leaf b. Its link looks
        bad: it passes alone, and is slow with nodes of all leaves, those of leaf b included.
        """
        suspects = self.clearance.nodes.suspects.keys()
        leaves = self.clearance.nodes.evidence.fabric.leaves.values()
        crowded = (level for nodes in leaves for level in self._crowd(suspects, nodes, LEAST_AT_LEAF).values())
        convicted = (max(run.objective or 0.0 for run in culprit.runs) for culprit in self.leaves.convicted.values())
        levels = sorted((*crowded, *convicted))
        return frozenset(node for node in self._isolated if _has_near(levels, self._reached(node)))

    def _crowd(self, suspects: Set[str], leaf: Iterable[str], least: int) -> Mapping[str, float]:
        """What suspects of a `leaf` have reached with healthy nodes that are at least `least` and fail alike.

        Rule: they are also a quarter of those of the leaf that fail or have passed. Prevents: of 16 nodes, two have bad
        links that let through the same, and 14 pass. Two bad links would be excused.
        """
        failing = suspects & {*leaf}
        reached = {node: self._reached(node) for node in failing if self._is_bad_without_contention(node)}
        telling = len(failing | self.clearance.cleared.intersection(leaf))
        return {node: reached[node] for node in crowds(reached, ALIKE_AT_A_LEAF, max(least, SHARE_ALIKE * telling))}

    def _is_bad_without_contention(self, node: str) -> bool:
        thresholds = self.clearance.nodes.evidence.thresholds
        return not all(map(thresholds.is_contended, self.clearance.runs_with_healthy(node)))

    @cached_property
    def _isolated(self) -> Mapping[str, list[GroupRun]]:
        """Failing nodes that only a fault of the node itself, or an undeclared switch, explains; with their bad runs.

        Nodes of suspected leaves are not among them: no other node of their leaf is healthy.
        """
        return {node: runs for node, runs in self._failing_with_everyone.items() if not self._may_be_a_path(node)}

    @cached_property
    def _failing_with_everyone(self) -> Mapping[str, list[GroupRun]]:
        """The suspects that have never passed with others and have failed with enough partners, with their bad runs.

        Rule: a node that has passed with others is exempt. A bad link is bad in every run; if one was good, the cause
        lies elsewhere. Prevents: the paths between the leaves of a, c and e are bad. a is slow with c and e, and each
        of the three passes with g. Three healthy nodes would be convicted. Without this rule, 55 healthy nodes are
        convicted in 1,152 simulated sweeps with bad paths, and none with it. With intermittent nodes it is 954 in 768
        sweeps: a partner that fails in three or five of ten runs makes others look as bad as itself.
        """
        nodes = self.clearance.nodes
        return {
            node: runs
            for node, runs in nodes.suspects.items()
            if node not in nodes.evidence.cleared and self.partners_missing(node) == 0
        }

    def partners_missing(self, node: str) -> int:
        """How many more partners a suspect must fail with; 0 if there are enough.

        Rule: enough that chance does not explain them, and enough of them healthy and drawn at random that they cannot
        all be liars. That is two at least, in the smallest fleet. Prevents: a fails with b and c, which have passed
        with no other node either. Each of the three may be the bad one, and the one that was tried most would be
        convicted.
        """
        nodes = self.clearance.nodes
        runs = self._with_different_partners(node)
        others = self._not_convicted[nodes.evidence.hardware.kind_of(node)] - 1
        candidates = len(nodes.evidence.sites)
        missing = nodes.ratios.runs_missing(runs, candidates)
        if self._is_at_unknown_place(node) and nodes.ratios.runs_missing(runs[:-1], candidates):
            missing += 1
        with_healthy = self.clearance.runs_with_healthy(node)
        return max(
            min(missing, others - len(runs)),
            nodes.evidence.runs_missing_beyond_noise(with_healthy),
            drawn_partners_missing(nodes.evidence, node, with_healthy),
        )

    def log_ratio(self, node: str) -> float:
        """The logarithm of how much more likely the runs of a suspect are if its link is bad; partners count once."""
        return self.clearance.nodes.ratios.log_ratio(self._with_different_partners(node))

    def _with_different_partners(self, node: str) -> list[GroupRun]:
        suspects = self.clearance.nodes.suspects
        bad = {run.others(node): run for run in suspects[node] if not self._crosses_bad_path(run)}
        return [bad[partners] for partners in disjoint(bad)]

    @cached_property
    def _not_convicted(self) -> Mapping[ComparedKind, int]:
        """The number of nodes of each kind of hardware that are not convicted by themselves."""
        nodes = self.clearance.nodes
        return {
            kind: sum(node not in nodes.convicted for node in alike)
            for kind, alike in nodes.evidence.hardware.kinds.items()
        }

    def _crosses_bad_path(self, run: GroupRun) -> bool:
        """Whether healthy nodes were bad across the path between leaves that a pair crossed, and never good."""
        paths = self.clearance.nodes.evidence.fabric.paths(run.members)
        return any(path.of_leaves for path in paths & self.paths.never_good.keys())

    def _is_at_unknown_place(self, node: str) -> bool:
        """Whether no other node is known to be at its leaf, and there are too many sides to try all.

        Rule: such a node needs one more partner. Prevents: nobody has declared leaves, and the partners of a on two of
        six sides may all be behind one bad path.
        """
        return not self.clearance.nodes.evidence.neighbours(node) and len(self._sides(node)) > FEW_SIDES

    def _healthy_partners(self, node: str) -> list[tuple[str, ...]]:
        return disjoint(run.others(node) for run in self.clearance.runs_with_healthy(node))

    def _may_be_a_path(self, node: str) -> bool:
        """Whether all healthy partners of a suspect may stand across something bad.

        Rule: if its leaf has other nodes, one of its healthy partners must be of that leaf.
        Prevents: a4 fails with c1, c2 and c3. The path from leaf a to leaf c may be bad.
        Rule: if its leaf is unknown and a link between others is bad, it must fail at both ends of one such link.
        Prevents: b-h is bad and a fails with b, c, d and e. The same switch may be behind both.
        Rule: if its leaf is unknown, it must fail on each side, or on two if there are more than five.
        Prevents: b, c, d and e pass with each other, f, g and h too, but these two sides have not met. a fails with b,
        c, d and e. a may be healthy, and the path to their side bad.
        """
        evidence, partners = self.clearance.nodes.evidence, self._healthy_partners(node)
        if neighbours := evidence.neighbours(node):
            return not any(neighbours.issuperset(others) for others in partners)
        met = {other for others in partners for other in others}
        if evidence.fabric.neighbours(node) and self._may_be_fabric(node, met):
            return True
        if self.paths.suspected and not any(met.issuperset(path.ends) for path in self.paths.suspected):
            return True
        sides = {evidence.sides[other] for other in met}
        known = len(self._sides(node))
        return len(sides) < min(known, FEW_SIDES if known <= FEW_SIDES else 2)

    def _may_be_fabric(self, node: str, met: set[str]) -> bool:
        """Whether the leaf or a path may be bad, for a node whose leaf has nodes of other hardware only.

        Rule: a node of its leaf must have reached clearly more with others than it has, and it must fail at two leaves.
        Prevents: leaf a has one new node and three old ones, and a bad switch. The old ones do not need all of what it
        lets through, so they pass. The link of the new node would be convicted.
        """
        evidence = self.clearance.nodes.evidence
        best = max(evidence.histories[other].best_together for other in evidence.fabric.neighbours(node))
        return best < ALIKE_AT_A_LEAF * self._reached(node) or len(evidence.fabric.leaves_of(met)) == 1

    def _sides(self, node: str) -> frozenset[frozenset[str]]:
        """The known sides of the fabric with nodes of its kind of hardware; others run with it never."""
        evidence = self.clearance.nodes.evidence
        return self._sides_by_kind[evidence.hardware.kind_of(node)]

    @cached_property
    def _sides_by_kind(self) -> Mapping[ComparedKind, frozenset[frozenset[str]]]:
        evidence = self.clearance.nodes.evidence
        return {
            kind: frozenset(evidence.sides[node] for node in nodes if node in evidence.sides)
            for kind, nodes in evidence.hardware.kinds.items()
        }

    def _reached(self, node: str) -> float:
        """The highest bandwidth of the bad runs of a node among healthy nodes; 0 if all broke.

        Other groups that shared the links made the others slower.
        """
        runs = self.clearance.runs_with_healthy(node)
        return max((run.objective if run.outcome is RunOutcome.GOOD else None) or 0.0 for run in runs)


def alike(reached: Mapping[str, float]) -> frozenset[str]:
    """The nodes that fail with everyone and whose bad runs are so similar that one switch may be the cause.

    `reached` is the bandwidth of their bad runs by node, 0 if they broke. Two may fail alike by coincidence. They
    stay inconclusive nevertheless: a bad switch with two nodes looks just the same. O(n log n) for n nodes.
    """
    return crowds(reached, ALIKE, max(LEAST_ALIKE, SHARE_ALIKE * len(reached)))


def _has_near(levels: Sequence[float], reached: float) -> bool:
    """Whether one of these sorted levels is as close as those of nodes behind one switch."""
    place = bisect_left(levels, reached / ALIKE_AT_A_LEAF)
    return place < len(levels) and levels[place] <= ALIKE_AT_A_LEAF * reached
