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

LARGE_LEAF, NODES_PER_WRONG_LABEL = 16, 8
"""Size from which a leaf may have wrong labels, and the number of nodes for each of them. Labels come from lists that
people keep. If 5 % of all labels are wrong, one leaf of 16 nodes in five has two. In a smaller leaf, the one node that
passes may as well show that the switch is healthy.
"""

ALIKE_AT_A_LEAF = 1.1
"""What one switch lets through differs by less: five standard deviations of the noise of a usual fabric."""

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

        In a large leaf, one node in eight may pass: its label is wrong, and it stands elsewhere. Nodes that took no
        part do not count, nor do nodes that are slow alike or need less: they tell nothing about the switch.

        Rule: nothing is suspected if only one leaf is known. Then no node is known to be at another leaf, and a slow
        fleet would look like a bad switch.
        """
        evidence, slow_alike = self.clearance.nodes.evidence, self.clearance.nodes.slow_alike
        if len(evidence.fabric.leaves) < 2:
            return {}
        failing = self.clearance.nodes.suspects.keys() - slow_alike - evidence.cleared
        found = {}
        for leaf, all_nodes in evidence.fabric.leaves.items():
            suspects = [node for node in all_nodes if node in failing]
            silent = slow_alike | self._need_less(all_nodes, suspects)
            nodes = [node for node in all_nodes if node not in silent]
            present = sum(evidence.histories[node].has_shown_something for node in nodes)
            enough = max(LEAST_AT_LEAF, MOST_OF_LEAF * present)
            if len(suspects) >= enough and len(evidence.cleared.intersection(nodes)) <= _wrong_labels(len(nodes)):
                found[leaf] = self._representatives(suspects)
        return found

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
            if evidence.histories[node].best_together < ALIKE_AT_A_LEAF * max(others, default=0.0):
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
            failing = sum(node in nodes.suspects and node not in nodes.evidence.cleared for node in leaf)
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
            outside = [run for node in representatives for run in self.clearance.runs_with_healthy(node)[:1]]
            inside = self.bad_runs_inside(leaf)
            all_fail_outside = len(outside) == len(representatives)
            healthy_alone = all(map(nodes.is_healthy_alone, representatives))
            if (
                not self.runs_inside_missing(leaf)
                and all_fail_outside
                and healthy_alone
                and not may_be_all_liars(nodes.evidence, leaf)
            ):
                found[leaf] = nodes.culprit(Part.LEAF, (leaf,), (*inside, *outside))
        return found

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


def _wrong_labels(nodes: int) -> int:
    """How many labels of a leaf may be wrong that seems to have this number of nodes."""
    return nodes // NODES_PER_WRONG_LABEL if nodes >= LARGE_LEAF else 0
