"""Whether a suspect stands where its label says, and whether others of its leaf show that the leaf is not to blame.

The idea: labels come from lists that people keep, so no single label convicts a link.

Example: a4 is slow with a1, a2 and b1, and reaches the same with each. a1 and a2 have passed with other leaves. That a4
stands elsewhere explains one of these runs at most, so its link is bad.

Takes time in proportion to the bad runs of a node, times their partners.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass

from muster_coordinator.localize.evidence.reached import ALIKE, amount_reached, are_alike, number_near_highest
from muster_coordinator.localize.rules.clearance import Clearance
from muster_coordinator.model.probes import GroupRun

SEVERAL = 2
"""One label may be wrong: labels come from lists that people keep."""

CONTROLLED_LEAF = 8
"""In a leaf of this size or more, others must pass beside the bad runs of a node: see `LinkFaults.lacks_control`."""


@dataclass(frozen=True)
class LeafWitness:
    """What shows, if these nodes are cleared, whether suspects stand at their leaf and whether it is to blame."""

    clearance: Clearance

    def needs_neighbour(self, node: str) -> bool:
        """Whether a suspect that has met healthy nodes must meet one more of its leaf before its link is convicted."""
        return self._lacks_neighbour(node) or (len(self._met_healthy(node)) > SEVERAL and self._lacks_agreement(node))

    def is_doubtful(self, node: str) -> bool:
        """Whether a single wrong label may be why a node seems to fail inside its leaf: its own, or that of a partner.

        Rule: what it reaches hardly varies, inside its leaf or while few groups run. Prevents: a4 has the label of leaf
        b. Its runs with b1 and b2 cross uplinks that others use.
        """
        varies = _varies(self._inside(node)) and self.varies_quietly(node)
        return varies or self._lacks_places(node) or self._lacks_neighbour(node) or self._lacks_agreement(node)

    def _lacks_agreement(self, node: str) -> bool:
        """Rule: what it reaches with some node of its leaf, it reaches in another run, too.

        Prevents: the uplinks of leaf a are bad, so a4 fails with all other leaves, and once it straggles with a1.
        """
        runs = (*self.clearance.runs_with_healthy(node), *self.clearance.no_better_elsewhere(node))
        reached = [*map(amount_reached, runs)]
        agreeing = (sum(are_alike((amount_reached(run), level)) for level in reached) for run in self._inside(node))
        return max(agreeing, default=SEVERAL) < SEVERAL

    def _lacks_places(self, node: str) -> bool:
        """Rule: it fails with another leaf, too. Its partners of its own leaf and the other leaves make three together.

        Where links between leaves hide what it lacks, it is enough that it reaches no more there.

        Prevents: the path a-c hangs, and c4 has the label of leaf a. a1 hangs with c2 and with c4.
        """
        fabric, met = self.clearance.nodes.evidence.fabric, self._met_healthy(node)
        met |= {other for run in self.clearance.no_better_elsewhere(node) for other in run.others(node)}
        here, elsewhere = met & fabric.neighbours(node), fabric.leaves_of(met) - fabric.leaves_of((node,)) - {None}
        others = len(fabric.leaves) - 1
        enough = min(SEVERAL + 1, len(self._measured_at_leaf_of(node)) + others)
        return len(elsewhere) < min(others, 1) or len(here) + len(elsewhere) < enough

    def _lacks_neighbour(self, node: str) -> bool:
        """Rule: two other nodes of its leaf must show that the leaf is not to blame; or one, if it has no others.

        They fail with the node, or have reached clearly more with other leaves. Prevents: leaf a has three nodes and a
        bad switch, and b4 has its label by mistake. a1 fails with everyone, b4 included, and b4 passes.

        In a leaf that needs controls, these show it. In a fleet of 4,096 nodes with leaves oversubscribed 2:1, 205
        nodes are bad. Runs with second neighbours would take so many rounds that 185 of them are found and not 201.
        """
        measured = self._measured_at_leaf_of(node)
        if len(measured) >= CONTROLLED_LEAF - 1:
            return False
        witnesses = (self._met_healthy(node) & measured) | self._better_at_leaf_of(node)
        return len(witnesses) < min(SEVERAL, len(measured))

    def _inside(self, node: str) -> list[GroupRun]:
        """The bad runs of a suspect with healthy nodes of its leaf."""
        neighbours = self.clearance.nodes.evidence.neighbours(node)
        return [run for run in self.clearance.runs_with_healthy(node) if neighbours.issuperset(run.others(node))]

    def _met_healthy(self, node: str) -> frozenset[str]:
        """The healthy nodes with which a suspect was bad."""
        return frozenset(other for run in self.clearance.runs_with_healthy(node) for other in run.others(node))

    def varies_quietly(self, node: str) -> bool:
        """Whether what a suspect reaches with healthy nodes varies where other groups did not slow it.

        Where nobody has declared leaves, there is no leaf that others show to have few uplinks.
        """
        evidence = self.clearance.nodes.evidence
        runs = self.clearance.runs_with_healthy(node) if evidence.fabric.leaves else ()
        return _varies(run for run in runs if not evidence.thresholds.is_contended(run))

    def _measured_at_leaf_of(self, node: str) -> Set[str]:
        """The other nodes of its leaf of any hardware that have run."""
        evidence = self.clearance.nodes.evidence
        return evidence.fabric.neighbours(node) & evidence.measured

    def _better_at_leaf_of(self, node: str) -> Set[str]:
        """The other nodes of its leaf that have reached clearly more with other leaves than it has with anyone."""
        evidence = self.clearance.nodes.evidence
        least = ALIKE * max(map(amount_reached, self.clearance.runs_with_healthy(node)), default=0.0)
        return {other for other in evidence.fabric.neighbours(node) if evidence.best_elsewhere[other] > least}

    def may_be_fabric(self, node: str) -> bool:
        """Whether the leaf may be bad, for a node that has met nobody of its leaf.

        Rule: two nodes of its leaf must have reached clearly more with nodes of other leaves than it has. Prevents:
        leaf a has one new node and three old ones, and a bad switch. The old ones do not need all of what it lets
        through, so they pass. The link of the new node would be convicted.
        One is not enough. Prevents: a1 and a2 are all nodes of leaf a, whose uplinks others fill. By chance, a2 once
        reaches more than a1 ever does.
        """
        return len(self._better_at_leaf_of(node)) < SEVERAL


def _varies(runs: Iterable[GroupRun]) -> bool:
    """Whether those of these runs that did not break reached more different values than one bad link lets through.

    Rule: not if most reached the same. Prevents: a4 reaches a third in four runs, and by chance a tenth in a fifth one.
    """
    reached = [*filter(None, map(amount_reached, runs))]
    return 2 * number_near_highest(reached) <= len(reached) > 0
