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
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.evidence.hardware import ComparedKind
from muster_coordinator.localize.likelihood.likelihood_ratio import candidates_among
from muster_coordinator.localize.likelihood.track_records import TrackRecords
from muster_coordinator.localize.rules.clearance import Clearance
from muster_coordinator.localize.rules.culprit import Culprit, Part
from muster_coordinator.localize.rules.evidence_against import disjoint, drawn_partners_missing
from muster_coordinator.localize.rules.leaf import LeafFaults
from muster_coordinator.localize.rules.one_switch import OneSwitch
from muster_coordinator.localize.rules.path import PathFaults
from muster_coordinator.localize.rules.place import CONTROLLED_LEAF, LeafWitness
from muster_coordinator.model.probes import GroupRun

FEW_SIDES = 5
"""If leaves are unknown and no more sides of the fabric are known, a suspect must fail on each of them.

Chosen by simulation (1,800 sweeps of 8 to 40 nodes with unknown leaves, bad paths and bad links). At 5, 16
healthy nodes are convicted, all in fleets with up to half of all paths bad, and 396 of 600 bad links are found. At 2,
28 healthy nodes are convicted. At 10, 16 are, and 371 bad links are found.
"""

FEWEST_CONTROLS = 2
"""Number of bad runs beside which other nodes of the leaf passed, in a leaf of at least CONTROLLED_LEAF nodes. The
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
            if node not in self._excused
            and self._is_distinct_from_its_link(node)
            and not self.lacks_control(node)
            and not self.may_be_its_uplinks(node)
        }

    def may_be_its_uplinks(self, node: str) -> bool:
        """Rule: where links are busy, no link is convicted of a node that is known to share its leaf with no other.

        Prevents: the leaf of a4 has few uplinks, which others fill, and the other nodes there have no label. a4 passes
        alone, and is slow with everyone.
        """
        nodes = self.clearance.nodes
        fabric = nodes.evidence.fabric
        return bool(fabric.leaves) and not fabric.neighbours(node) and nodes.ratios.are_links_busy

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
        slow = (*self.clearance.nodes.suspects[node], *self.clearance.no_better_elsewhere(node))
        return sum(run.round in rounds for run in slow) < FEWEST_CONTROLS

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
    def places(self) -> LeafWitness:
        """Where the nodes stand whose links look bad."""
        return LeafWitness(self.clearance)

    @cached_property
    def one_switch(self) -> OneSwitch:
        """Which of the nodes whose links look bad may stand behind one switch."""
        return OneSwitch(self.clearance, self.leaves, self._isolated.keys())

    @cached_property
    def _excused(self) -> frozenset[str]:
        return self.one_switch.excused | self.before.of_bad_leaves

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
        candidates = candidates_among(len(nodes.evidence.sites))
        missing = nodes.ratios.runs_missing(runs, candidates)
        if self._is_at_unknown_place(node) and nodes.ratios.runs_missing(runs[:-1], candidates):
            missing += 1
        with_healthy = self.clearance.runs_with_healthy(node)
        return max(
            min(missing, others - len(runs)),
            nodes.evidence.runs_missing_beyond_noise(with_healthy),
            drawn_partners_missing(nodes.evidence, node, [*with_healthy, *self.clearance.no_better_elsewhere(node)]),
        )

    def log_ratio(self, node: str) -> float:
        """The logarithm of how much more likely the runs of a suspect are if its link is bad; partners count once."""
        return self.clearance.nodes.ratios.log_ratio(self._with_different_partners(node))

    def _with_different_partners(self, node: str) -> list[GroupRun]:
        suspects = self.clearance.nodes.suspects
        bad = {run.others(node): run for run in suspects[node] if not self._may_be_the_fabric(run)}
        return [bad[partners] for partners in disjoint(bad)]

    @cached_property
    def _not_convicted(self) -> Mapping[ComparedKind, int]:
        """The number of nodes of each kind of hardware that are not convicted by themselves."""
        nodes = self.clearance.nodes
        return {
            kind: sum(node not in nodes.convicted for node in alike)
            for kind, alike in nodes.evidence.hardware.kinds.items()
        }

    def _may_be_the_fabric(self, run: GroupRun) -> bool:
        """Whether a pair met at a suspected leaf, or across a path between leaves that was bad and never good."""
        paths = self.clearance.nodes.evidence.fabric.paths(run.members) & self.paths.never_good.keys()
        at_leaf = not self.leaves.nodes_of_suspected.isdisjoint(run.members)
        return at_leaf or any(path.of_leaves for path in paths)

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

        Rule: if its leaf has other nodes, one of its healthy partners must be of that leaf, and its place certain.
        Prevents: a4 fails with c1, c2 and c3. The path from leaf a to leaf c may be bad.
        Rule: if no other node shows what its leaf does, it must fail with nodes of two leaves, and what it reaches must
        hardly vary while few groups run. Prevents: a4 has no label, and its leaf has few uplinks.
        Rule: if its leaf is unknown and a link between others is bad, it must fail at both ends of one such link.
        Prevents: b-h is bad and a fails with b, c, d and e. The same switch may be behind both.
        Rule: if its leaf is unknown, it must fail on each side, or on two if there are more than five.
        Prevents: b, c, d and e pass with each other, f, g and h too, but these two sides have not met. a fails with b,
        c, d and e. a may be healthy, and the path to their side bad.
        """
        evidence, partners = self.clearance.nodes.evidence, self._healthy_partners(node)
        neighbours = evidence.neighbours(node)
        if any(neighbours.issuperset(others) for others in partners):
            return self.places.is_doubtful(node)
        met = {other for others in partners for other in others}
        if self._are_at_one_leaf(met) or self.places.varies_quietly(node):
            return True
        if evidence.fabric.neighbours(node) and self.places.may_be_fabric(node):
            return True
        if self.paths.suspected and not any(met.issuperset(path.ends) for path in self.paths.suspected):
            return True
        sides = {evidence.sides[other] for other in met}
        known = len(self._sides(node))
        return len(sides) < min(known, FEW_SIDES if known <= FEW_SIDES else 2)

    def _are_at_one_leaf(self, nodes: Set[str]) -> bool:
        """Whether these stand at one leaf, and there are others."""
        fabric = self.clearance.nodes.evidence.fabric
        return len(fabric.leaves) > 1 and fabric.is_inside(nodes)

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
