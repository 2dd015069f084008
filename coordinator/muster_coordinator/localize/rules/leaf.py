"""Leaves whose switch is convicted.

The idea: if no node of a leaf passes with any other, and these nodes are healthy alone, their switch is bad.

Example: leaf a has four nodes. a1 to a4 are slow with nodes of leaves b and c, which pass among each other. a1 to a4
pass alone, and a1-a2 is slow. Leaf a is convicted; its nodes are behind it, neither cleared nor convicted.

Takes time in proportion to the nodes of the suspected leaves, times their bad runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.evidence.hardware import ComparedKind
from muster_coordinator.localize.evidence.reached import ALIKE, amount_reached, are_alike
from muster_coordinator.localize.likelihood.likelihood_ratio import bound
from muster_coordinator.localize.rules.clearance import Clearance
from muster_coordinator.localize.rules.culprit import Culprit, Part
from muster_coordinator.localize.rules.evidence_against import disjoint, may_be_all_liars
from muster_coordinator.model.probes import GroupRun

LEAST_AT_LEAF, MOST_OF_LEAF = 3, 0.75
"""A leaf is suspected if this many of its nodes, and this share of them, are suspects.

Two suspects are mostly the two members of one bad pair. The share leaves room for nodes that are no suspects although
the leaf is bad: convicted by themselves, or without a result. It is chosen by simulation: of 180 bad leaves where each
node is also bad by itself with probability 0.15, 144 are convicted at 0.75, and 103 at 1. At half, 0.375, little
changes: 146 are convicted. No healthy part is convicted with any of the three in 900 sweeps.
"""

NODES_PER_WRONG_LABEL = 8
"""Number of nodes of a leaf for each wrong label. Labels come from lists that people keep. If 5 % of all labels are
wrong, one leaf of 16 nodes in five has two. In a leaf of fewer than eight nodes, the one node that passes may as well
show that the switch is healthy.
"""

REPRESENTATIVES = 4
"""The other nodes of a leaf wait while this many run for all. If this many links that look healthy fail at once, there
is no other likely cause.
"""


@dataclass(frozen=True)
class LeafFaults:
    """The leaves that are suspected or convicted if these nodes are cleared."""

    clearance: Clearance

    @cached_property
    def suspected(self) -> Mapping[str, tuple[str, ...]]:
        """The leaves without a node that has passed, where most nodes are suspects; with the nodes that represent each.

        Rule: one node that passes ends the suspicion of its leaf. Its run crossed the switch, and a bad switch is bad
        for all. Prevents: the path a-c is bad, so a1, a2 and a3 are slow with c1, c2 and c3. a1-a2 is slow, too,
        because the link of a2 is bad. a4 passes with b4, but three of four nodes fail outside and inside, and healthy
        switch a would be convicted. In 150 simulated sweeps with bad paths and a bad link, 12 healthy leaves are
        convicted without this rule, and none with it.

        In a leaf of eight nodes or more, one in eight may pass: its label is wrong, and it stands elsewhere. Nodes that
        took no part do not count, nor do nodes that need less: they tell nothing about the switch.

        Rule: nothing is suspected if only one leaf is known. Then no node is known to be at another leaf, and a slow
        fleet would look like a bad switch.
        """
        evidence = self.clearance.nodes.evidence
        if len(evidence.fabric.leaves) < 2:
            return {}
        found = {}
        for leaf, all_nodes in evidence.fabric.leaves.items():
            suspects = self._failing_at(all_nodes)
            silent = self._need_less(all_nodes, suspects)
            nodes = [node for node in all_nodes if node not in silent]
            present = sum(evidence.histories[node].has_shown_something for node in nodes)
            enough = max(LEAST_AT_LEAF, MOST_OF_LEAF * present)
            passed = len(evidence.cleared.intersection(nodes))
            if len(suspects) >= enough and passed <= self._wrong_labels(len(nodes), suspects):
                found[leaf] = self._representatives(suspects)
        return found

    def _failing_at(self, leaf: Sequence[str]) -> list[str]:
        """The suspects among the nodes of a leaf that no run has cleared."""
        suspects, cleared = self.clearance.nodes.suspects, self.clearance.nodes.evidence.cleared
        return [node for node in leaf if node in suspects and node not in cleared]

    def _wrong_labels(self, nodes: int, suspects: Sequence[str]) -> int:
        """How many labels of a leaf may be wrong that seems to have this number of nodes, with these suspects."""
        return max(nodes // NODES_PER_WRONG_LABEL, int(self._fail_alike(suspects)))

    def _fail_alike(self, suspects: Sequence[str]) -> bool:
        """Rule: one node may pass if all suspects reached the same with healthy nodes of several leaves.

        Three links of one leaf hardly break alike, and no path explains them. Prevents: leaf a has three nodes and a
        bad switch, and b4 has its label by mistake. b4 passes, so the switch would not be found.
        """
        runs = {node: self.clearance.runs_with_healthy(node) for node in suspects}
        reached = [max(map(amount_reached, those), default=0.0) for those in runs.values()]
        met = {other for node, those in runs.items() for run in those for other in run.others(node)}
        leaves = self.clearance.nodes.evidence.fabric.leaves_of(met)
        return len(leaves) > 1 and max(reached) > 0 and are_alike(reached)

    def _representatives(self, suspects: Sequence[str]) -> tuple[str, ...]:
        """Rule: nodes with void runs represent their leaf last.

        Prevents: the agent of a2 has vanished, and everybody waits for its run with a healthy node.
        """
        histories = self.clearance.nodes.evidence.histories
        return tuple(sorted(suspects, key=lambda node: len(histories[node].void))[:REPRESENTATIVES])

    def _need_less(self, nodes: Sequence[str], suspects: Sequence[str]) -> frozenset[str]:
        """The nodes of a leaf that passed although they have reached no more than suspects of other hardware there.

        Prevents: the switch lets through 40 % of what new nodes can do. Old ones do half of that at best, and pass.
        """
        evidence, reached = self.clearance.nodes.evidence, dict[ComparedKind, float]()
        for node in suspects if evidence.hardware.are_several else ():
            most = max(run.objective or 0.0 for run in self.clearance.nodes.suspects[node])
            kind = evidence.hardware.kind_of(node)
            reached[kind] = max(most, reached.get(kind, 0.0))
        found = set()
        for node in evidence.cleared.intersection(nodes) if reached else ():
            others = (most for kind, most in reached.items() if kind != evidence.hardware.kind_of(node))
            if evidence.histories[node].best_together < ALIKE * max(others, default=0.0):
                found.add(node)
        return frozenset(found)

    @cached_property
    def mostly_failing(self) -> frozenset[str]:
        """Rule: if most nodes of a leaf that have shown something fail, none of their links is convicted.

        Prevents: the switch of leaf a is bad. A healthy node has its label by mistake and passes, so the switch is not
        convicted. Its nodes reach less beside more groups, so they do not fail alike, and two links would be convicted.
        """
        nodes, found = self.clearance.nodes, set[str]()
        for leaf in nodes.evidence.fabric.leaves.values():
            failing = len(self._failing_at(leaf))
            passed = len(self.clearance.cleared.intersection(leaf))
            if failing >= max(LEAST_AT_LEAF, MOST_OF_LEAF * (failing + passed)):
                found.update(leaf)
        return frozenset(found)

    @cached_property
    def nodes_of_suspected(self) -> frozenset[str]:
        return frozenset(node for leaf in self.suspected for node in self.clearance.nodes.evidence.fabric.leaves[leaf])

    @cached_property
    def convicted(self) -> Mapping[str, Culprit]:
        """Rule: a suspected leaf is convicted if its representatives fail outside, fail inside, and are healthy alone.

        Outside means with a healthy node of another leaf. Inside means two nodes of the leaf together.
        Without inside: the uplink of leaf a is bad. a1-a2 passes, so the switch is healthy and the paths are bad.
        Without alone: four old nodes at leaf a are slow in themselves, and a healthy switch would be replaced.
        Without outside: no node of another leaf has passed yet, and the whole fabric may be slow.

        Limit: if all three nodes of a leaf have bad links, or are bad and the check cannot run alone, that looks just
        like a bad switch, and the leaf is convicted.
        """
        nodes, found = self.clearance.nodes, {}
        for leaf, representatives in self.suspected.items():
            inside = self.bad_runs_inside(leaf)
            outside = [run for node in representatives for run in self._outside(node, inside)[:1]]
            all_fail_outside = len(outside) == len(representatives)
            healthy_alone = all(map(nodes.is_healthy_alone, representatives))
            if (
                not self.runs_inside_missing(leaf)
                and all_fail_outside
                and healthy_alone
                and not self._lets_more_through(leaf, inside)
                and not may_be_all_liars(nodes.evidence, leaf)
            ):
                found[leaf] = nodes.culprit(Part.LEAF, (leaf,), (*inside, *outside))
        return found

    def _lets_more_through(self, leaf: str, inside: Sequence[GroupRun]) -> bool:
        """Whether nodes of a leaf have reached clearly more with other leaves than in the bad runs inside.

        Rule: then its switch is not to blame. Prevents: a1 has a bad rail, so a1-a2 is slow. Connections collide on the
        uplinks, so a2 and a3 are mostly as slow with others, and it clears neither that they were faster once.
        """
        evidence, most = self.clearance.nodes.evidence, max(map(amount_reached, inside), default=0.0)
        nodes = evidence.fabric.leaves[leaf]
        better = sum(evidence.histories[node].best_together > ALIKE * most for node in nodes)
        return most > 0 and better > self._wrong_labels(len(nodes), self._failing_at(nodes))

    def _outside(self, node: str, inside: Sequence[GroupRun]) -> list[GroupRun]:
        """The bad runs of a node with healthy ones that the switch explains: they reached no more than those inside.

        Prevents: leaves of three nodes, and the link of a1 hangs, so a1-a2 hangs. Across leaves, all share links, and
        a2 and a3 are slow there. A single bad pair inside tells even less, so they must have reached as much then.
        """
        most = max(map(amount_reached, inside), default=0.0)
        least = most / ALIKE if len(inside) == 1 else 0.0
        runs = self.clearance.runs_with_healthy(node)
        return [run for run in runs if least <= amount_reached(run) <= ALIKE * most]

    def next_outside(self, leaf: str) -> str | None:
        """The representative of a suspected leaf that runs with other leaves next; None if no other must wait.

        Rule: one at a time after a single bad pair inside. Prevents: leaf a has three nodes, a bad switch, and
        oversubscribed uplinks. a1-a2 reaches 160 inside, and a1, a2 and a3 reach 80 as long as all three run across.
        """
        inside = self.bad_runs_inside(leaf)
        if len(inside) != 1 or self.runs_inside_missing(leaf):
            return None
        return next((node for node in self.suspected[leaf] if not self._outside(node, inside)), None)

    def bad_runs_inside(self, leaf: str) -> list[GroupRun]:
        """The unexplained bad runs among nodes of one leaf, each once, in topology order of the nodes."""
        nodes = self.clearance.nodes.evidence.fabric.leaves[leaf]
        runs = {run.group: run for node in nodes for run in self.clearance.nodes.suspects.get(node, ())}
        inside = frozenset(nodes)
        return [run for run in runs.values() if inside.issuperset(run.members)]

    def runs_inside_missing(self, leaf: str) -> int:
        """How many more bad runs among nodes of a suspected leaf convict it; 0 if there are enough.

        Rule: pairs that share no node, so that no bad link explains two of them, and as many as chance requires.
        Prevents: others congest the uplinks of leaf a in the first round, and all its nodes are slow. a1 and a2 run
        together, and a1 has a bad rail.
        """
        evidence, runs = self.clearance.nodes.evidence, self._disjoint_inside(leaf)
        possible = sum(evidence.histories[node].has_shown_something for node in evidence.fabric.leaves[leaf]) // 2
        missing = self.clearance.nodes.ratios.runs_missing(runs, len(evidence.fabric.leaves))
        return max(min(missing, possible - len(runs)), 0 if runs else 1)

    def log_ratio(self, leaf: str) -> float:
        """The logarithm of how much more likely the runs inside a leaf are if its switch is bad."""
        return self.clearance.nodes.ratios.log_ratio(self._disjoint_inside(leaf))

    @cached_property
    def bound(self) -> float:
        """The least `log_ratio` that convicts a leaf of this fleet."""
        return bound(len(self.clearance.nodes.evidence.fabric.leaves))

    def _disjoint_inside(self, leaf: str) -> list[GroupRun]:
        bad = {run.members: run for run in self.bad_runs_inside(leaf)}
        return [bad[pair] for pair in disjoint(bad)]

    @cached_property
    def behind(self) -> frozenset[str]:
        """The nodes of convicted leaves, unless convicted or cleared: their own health cannot be seen."""
        leaves, nodes = self.clearance.nodes.evidence.fabric.leaves, self.clearance.nodes
        settled = nodes.convicted.keys() | self.clearance.cleared
        return frozenset(node for leaf in self.convicted for node in leaves[leaf] if node not in settled)
