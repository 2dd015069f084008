"""Nodes that look as if their links were bad, while one switch that they share may be the cause.

The idea: what stands behind one switch fails alike. Two links break differently.

Example: nobody has declared leaves. a, b and c reach 0.5, 0.5 and 0.52 of normal with everyone. They may stand behind
one bad switch, so none of their links is convicted.

Takes O(n log n) for n suspects, and for each node that fails with everyone, the suspects that reached about the same.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.evidence.reached import ALIKE, amount_reached, are_alike
from muster_coordinator.localize.rules.clearance import Clearance
from muster_coordinator.localize.rules.leaf import LeafFaults
from muster_coordinator.localize.rules.node import SlowRails
from muster_coordinator.localize.significance import crowds

LEAST_ALIKE, SHARE_ALIKE = 2, 0.25
"""One switch may be the cause if this many nodes, and this share of all that fail with everyone, fail alike.

2 is the least for a switch. At 1, each node is alike to itself, and 3,254 bad nodes are found in 1,728 simulated sweeps
instead of 3,581. At 4, switches with two or three nodes are missed: in 900 sweeps, 885 healthy nodes are convicted
instead of none. The share is chosen by simulation: beside an undeclared switch with four nodes, 421 of 951 bad links
are found in 120 sweeps. At 0.125, 126 are; at 0.5, 682 are, but 140 healthy nodes behind the switch are convicted.
"""

ALIKE_AT_UNKNOWN_LEAVES = 1.25
"""Nodes behind one bad switch differ by noise only; a quarter is much noise.

Chosen by simulation (noise 2 to 10 %). At 1.12, six healthy nodes behind an undeclared switch are convicted in 900
sweeps, and none at 1.25. At 1.5, only 190 of the 951 bad links above are found.
"""

LEAST_ROUNDS, SHARE_OF_ROUNDS = 2, 0.75
"""Number and share of the rounds in which nodes behind one switch reach the same. In a single round, other nodes may,
too. Something else may make one of them slower in one round of four.
"""

FEWEST_VARYING = 3
"""Number of rounds after which it is no chance that two nodes reach the same, if what they reach varies."""


@dataclass(frozen=True)
class OneSwitch:
    """Which of the nodes that are `isolated`, so that their links look bad, may stand behind one switch."""

    clearance: Clearance
    leaves: LeafFaults
    isolated: Set[str]

    @cached_property
    def excused(self) -> frozenset[str]:
        """The nodes whose links are not convicted for one of these reasons."""
        return self.alike | self.perhaps_behind | self.alike_at_a_leaf | self.leaves.mostly_failing

    @cached_property
    def alike(self) -> frozenset[str]:
        """Rule: nodes at unknown leaves, or alone at theirs, that fail with everyone and alike are not convicted.

        Prevents: a, b and c stand behind one bad switch that nobody has declared, and reach 0.5, 0.5 and 0.52 of normal
        with everyone. Three healthy links would be convicted. At 0.1, 0.3 and 0.9 they fail differently, so one switch
        is not the cause.

        Nodes with known neighbours are not among them: their own leaf says whether its switch is bad. Liars of one leaf
        that crash alike would meet, and clear each other.
        """
        reached = {node: self.clearance.reached_with_healthy(node) for node in self._failing_without_neighbours}
        return alike(reached, self.clearance.nodes.rails_of)

    @cached_property
    def _failing_without_neighbours(self) -> frozenset[str]:
        nodes = self.clearance.nodes
        failing = filter(self.clearance.runs_with_healthy, nodes.suspects.keys() - nodes.evidence.cleared)
        return frozenset(node for node in failing if not nodes.evidence.neighbours(node))

    @cached_property
    def alike_at_a_leaf(self) -> frozenset[str]:
        """Rule: if two nodes of a leaf fail with everyone and alike, none of their links is convicted.

        Two bad links of one leaf rarely reach the same. Prevents: leaf a has a bad switch, and three healthy nodes are
        labelled as if they stood there. They pass, so the switch is not convicted, but 13 healthy links would be.
        """
        leaves = self.clearance.nodes.evidence.fabric.leaves.values()
        return frozenset(node for nodes in leaves for node in self._crowd(self.isolated, nodes))

    @cached_property
    def perhaps_behind(self) -> frozenset[str]:
        """Rule: a node that fails with everyone like several suspects of one leaf is not convicted.

        Prevents: leaf a has a bad switch or bad uplinks, and a4 is labelled as if it stood at leaf b. Its link looks
        bad: it passes alone, and is slow with nodes of all leaves, those of leaf b included.
        """
        return frozenset(
            node for node in self.isolated if self._fails_like_a_leaf(node) or self._keeps_pace_with_others(node)
        )

    def _fails_like_a_leaf(self, node: str) -> bool:
        """Rule: not like a leaf where a node that it fails with passes with others of that leaf.

        Then only uplinks may have slowed these, and it does not stand behind them. Prevents: in the first round, all
        nodes of small leaf c cross its busy uplinks and reach as much as the link of a4 lets through. Later c1-c2
        passes, and a4-c1 is slow.
        """
        reached = self.clearance.reached_with_healthy(node)
        apart = self._leaves_apart_from(node, reached)
        return any(_has_near(levels, reached) for leaf, levels in self._levels.items() if leaf not in apart)

    def _leaves_apart_from(self, node: str, reached: float) -> Set[str | None]:
        """The leaves where healthy nodes fail with this one and have reached clearly more with each other.

        Rule: they have failed with no other node of their leaf. Prevents: leaf a has a bad switch, and b4 and c4 are
        labelled as if they stood there. b4-c4 passes, as if leaf a were good. The link of a5, labelled as if it stood
        at leaf b, would be convicted.
        """
        evidence = self.clearance.nodes.evidence
        as_much = (run for run in self.clearance.runs_with_healthy(node) if are_alike((amount_reached(run), reached)))
        met = {other for run in as_much for other in run.others(node) if not self._fails_at_its_leaf(other, node)}
        inside = (run for other in met for run in evidence.histories[other].good_together)
        better = (run for run in inside if (run.objective or math.inf) > ALIKE * reached)
        return {evidence.sites[run.members[0]].leaf for run in better if evidence.fabric.is_inside(run.members)}

    def _fails_at_its_leaf(self, healthy: str, node: str) -> bool:
        """Whether a healthy node has failed with others of its leaf than `node`."""
        evidence = self.clearance.nodes.evidence
        neighbours = evidence.fabric.neighbours(healthy)
        bad = (run.others(healthy) for run in evidence.histories[healthy].bad_together)
        return any(node not in others and neighbours.issuperset(others) for others in bad)

    @cached_property
    def _levels(self) -> Mapping[str, Sequence[float]]:
        """What suspects that fail alike have reached at each leaf, or its nodes if it is convicted; sorted."""
        suspects, leaves = self.clearance.nodes.suspects.keys(), self.clearance.nodes.evidence.fabric.leaves
        found = {leaf: [*self._crowd(suspects, nodes).values()] for leaf, nodes in leaves.items()}
        for leaf, culprit in self.leaves.convicted.items():
            found[leaf].append(max(run.objective or 0.0 for run in culprit.runs))
        return {leaf: sorted(levels) for leaf, levels in found.items()}

    def _keeps_pace_with_others(self, node: str) -> bool:
        """Rule: nor is a node that reaches in each round what others behind one switch may reach in that round.

        These are several suspects of another leaf, or a quarter of the failing nodes whose leaves nobody knows. One is
        enough if what both reach varies: a bad link is as bad in each round. Prevents: leaf a has three nodes, and
        fewer uplinks than other leaves. a4 has no label. The less its groups share the uplinks with others, the more
        they reach, and a1 to a3 reach the same in each round.
        """
        alike, unknown = self._alike_in_most_rounds(node), self._failing_without_neighbours
        rails_of, sites = self.clearance.nodes.rails_of, self.clearance.nodes.evidence.sites
        near = {other for other in alike if _may_be_one_switch(rails_of.get(node), rails_of.get(other))}
        at_leaf = Counter(sites[other].leaf for other in near - self.clearance.nodes.evidence.fabric.neighbours(node))
        return (
            len(near & unknown) >= _enough(len(unknown)) - (node in unknown)
            or any(self._enough_at.get(leaf, math.inf) <= number for leaf, number in at_leaf.items())
            or self._varies_as_another(node, alike)
        )

    def _alike_in_most_rounds(self, node: str) -> Mapping[str, list[float]]:
        """The suspects that reached the same in most common rounds, and what `node` reached in these rounds."""
        own = self._by_round[node]
        rounds = Counter(other for number, level in own.items() for other in self._near(number, level))
        often = (other for other, times in rounds.items() if times >= LEAST_ROUNDS and other != node)
        found = {other: _alike(own, self._by_round[other]) for other in often}
        return {other: levels for other, levels in found.items() if levels}

    def _near(self, number: int, reached: float) -> Iterable[str]:
        """The suspects that reached about as much in a round."""
        levels, nodes = self._sorted_by_level[number]
        return nodes[bisect_left(levels, reached / ALIKE) : bisect_right(levels, reached * ALIKE)]

    def _varies_as_another(self, node: str, alike: Mapping[str, Sequence[float]]) -> bool:
        """Whether what a node reaches varies in the same way as what a suspect reaches that is not of its leaf."""
        strangers = alike.keys() - self.clearance.nodes.evidence.fabric.neighbours(node)
        return any(len(alike[other]) >= FEWEST_VARYING and not are_alike(alike[other]) for other in strangers)

    @cached_property
    def _sorted_by_level(self) -> Mapping[int, tuple[list[float], list[str]]]:
        """What the suspects reached in each round, in order, and who they are."""
        rounds: dict[int, list[tuple[float, str]]] = defaultdict(list)
        for node, reached in self._by_round.items():
            for number, level in reached.items():
                rounds[number].append((level, node))
        ordered = {number: sorted(pairs) for number, pairs in rounds.items()}
        return {n: ([level for level, _ in pairs], [node for _, node in pairs]) for n, pairs in ordered.items()}

    @cached_property
    def _by_round(self) -> Mapping[str, Mapping[int, float]]:
        """What each suspect reached with healthy nodes in each round in which it was bad."""
        runs_of = self.clearance.runs_with_healthy
        suspects = self.clearance.nodes.suspects
        return {node: {run.round: run.objective or 0.0 for run in runs_of(node)} for node in suspects}

    @cached_property
    def _enough_at(self) -> Mapping[str | None, float]:
        """How many suspects of each leaf are enough.

        Prevents: 205 of 4,096 nodes have bad links. For each of them there are two somewhere at one leaf that reach the
        same, and 65 of the links would not be convicted.
        """
        suspects, leaves = self.clearance.nodes.suspects.keys(), self.clearance.nodes.evidence.fabric.leaves
        return {name: self._enough_of(suspects & {*nodes}, nodes) for name, nodes in leaves.items()}

    def _crowd(self, suspects: Set[str], leaf: Iterable[str]) -> Mapping[str, float]:
        """What suspects of a `leaf` that fail alike have reached with healthy nodes.

        Rule: they are also a quarter of those of the leaf that fail or have passed. Prevents: of 16 nodes, two have bad
        links that let through the same, and 14 pass. Two bad links would be excused.
        Rule: none has reached clearly more with other leaves. Prevents: six of the eight nodes of leaf c were slow in
        the first round, because all crossed its uplinks at once. Later they pass. The link of a4 lets through as much
        as those uplinks did, and would be excused.
        """
        failing, reached = suspects & {*leaf}, self.clearance.reached_with_healthy
        levels = {node: reached(node) for node in failing if self._is_bad_without_contention(node)}
        elsewhere = self.clearance.nodes.evidence.best_elsewhere
        held_back = {node: level for node, level in levels.items() if elsewhere[node] <= ALIKE * level}
        enough, rails_of = self._enough_of(failing, leaf), self.clearance.nodes.rails_of
        return {node: levels[node] for node in _crowds_at_one_switch(held_back, rails_of, ALIKE, enough)}

    def _enough_of(self, failing: Set[str], leaf: Iterable[str]) -> float:
        """How many must fail alike if these nodes of a leaf fail, and others of it may have passed."""
        return _enough(len(failing | self.clearance.cleared.intersection(leaf)))

    def _is_bad_without_contention(self, node: str) -> bool:
        thresholds = self.clearance.nodes.evidence.thresholds
        return not all(map(thresholds.is_contended, self.clearance.runs_with_healthy(node)))


def alike(reached: Mapping[str, float], rails_of: Mapping[str, SlowRails]) -> frozenset[str]:
    """The nodes that fail with everyone and whose bad runs are so similar that one switch may be the cause.

    `reached` is the bandwidth of their bad runs by node, 0 if they broke. Two may fail alike by coincidence. They
    stay inconclusive nevertheless: a bad switch with two nodes looks just the same.
    """
    return _crowds_at_one_switch(reached, rails_of, ALIKE_AT_UNKNOWN_LEAVES, _enough(len(reached)))


def _crowds_at_one_switch(
    reached: Mapping[str, float], rails_of: Mapping[str, SlowRails], ratio: float, enough: float
) -> frozenset[str]:
    """The nodes that are among enough others that reached the same and may have the same slow rails.

    Rule: a switch slows the same rails of all its nodes. Prevents: nobody has declared leaves. Of 64 nodes, a lacks
    rail 0, b lacks rail 3 and the whole link of c is bad. All reach a third, and none of them would be convicted.

    O(n log n) for n nodes and each set of slow rails. Many nodes have the same, so sets are compared, not nodes.
    """
    by_rails: dict[SlowRails | None, dict[str, float]] = defaultdict(dict)
    for node in crowds(reached, ratio, enough):
        by_rails[rails_of.get(node)][node] = reached[node]
    found: set[str] = set()
    for rails, own in by_rails.items():
        at_one_switch: dict[str, float] = {}
        for other, those in by_rails.items():
            if _may_be_one_switch(rails, other):
                at_one_switch |= those
        found |= crowds(at_one_switch, ratio, enough) & own.keys()
    return frozenset(found)


def _may_be_one_switch(one: SlowRails | None, other: SlowRails | None) -> bool:
    """Whether one switch may have slowed the rails of two nodes; also if those of one have never run separately."""
    return one is None or other is None or one.may_be_of_one_switch(other)


def _enough(telling: int) -> float:
    """How many of the nodes that tell something must fail alike before one switch may be the cause."""
    return max(LEAST_ALIKE, SHARE_ALIKE * telling)


def _alike(one: Mapping[int, float], other: Mapping[int, float]) -> list[float]:
    """What one of two nodes reached when the other reached the same; nothing if that was in too few common rounds."""
    common = one.keys() & other.keys()
    found = [one[number] for number in common if other[number] and are_alike((one[number], other[number]))]
    return found if len(found) >= max(LEAST_ROUNDS, SHARE_OF_ROUNDS * len(common)) else []


def _has_near(levels: Sequence[float], reached: float) -> bool:
    """Whether one of these sorted levels is as close as those of nodes behind one switch."""
    place = bisect_left(levels, reached / ALIKE)
    return place < len(levels) and levels[place] <= ALIKE * reached
