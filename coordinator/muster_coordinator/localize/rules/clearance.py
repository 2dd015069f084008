"""The cleared nodes: they have passed with others, and did not obviously cause their unexplained bad runs.

The idea: a good run with others shows that a node can do its work. Faults are mostly permanent, so that is enough. A
liar, however, decides when it passes, so two patterns take the clearance away.

Example: of 16 nodes, n1 passes with n0, and is slow with n2, n4 and n6, which pass with all others. n1 is not cleared.

Takes time in proportion to the unexplained bad runs, times the bad runs of their members.
"""

from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.evidence.fabric import Path
from muster_coordinator.localize.evidence.history import suspected_members
from muster_coordinator.localize.evidence.reached import ALIKE, amount_reached
from muster_coordinator.localize.rules.node import NodeFaults
from muster_coordinator.model.probes import GroupRun

LEAST_SPOILED = 3
"""This many bad paths from one node to nodes that are bad with no other node are hardly a coincidence."""


@dataclass(frozen=True)
class Clearance:
    """The cleared nodes if those in `nodes` are convicted."""

    nodes: NodeFaults

    @cached_property
    def cleared(self) -> frozenset[str]:
        """The nodes that have passed with others and are neither spoilers nor partners in an unexplained crash."""
        return self.nodes.evidence.cleared - self.spoilers - self.crash_partners

    @cached_property
    def healthy(self) -> frozenset[str]:
        """The cleared nodes that are not convicted: a node with an intermittent fault passes now and then."""
        return self.cleared - self.nodes.convicted.keys()

    @cached_property
    def _passed_suspects(self) -> frozenset[str]:
        """The nodes that have passed with others but have unexplained bad runs. Convicted nodes are not among them."""
        return self.nodes.evidence.cleared & self.nodes.suspects.keys()

    def runs_with_healthy(self, node: str) -> list[GroupRun]:
        """The unexplained bad runs of a node in which all other members are healthy."""
        return [run for run in self.nodes.suspects.get(node, ()) if self.healthy.issuperset(run.others(node))]

    def reached_with_healthy(self, node: str) -> float:
        """The highest bandwidth of these runs, 0 if all broke: groups that shared links made the others slower."""
        runs = self.runs_with_healthy(node)
        return max(map(amount_reached, runs))

    def no_better_elsewhere(self, node: str) -> list[GroupRun]:
        """The good runs of a suspect with healthy nodes of other leaves that reached as little, and do not clear it.

        Example: links between leaves carry 75 %, the link of a4 carries 65 %. a4 fails with a1. With b1 it reaches the
        same, which is too little to clear it and too much to be slow. Both runs show what the link lets through.

        None if it has reached more. Prevents: a4 stands at leaf b, and reaches with a1 what links between leaves carry.
        """
        evidence, history = self.nodes.evidence, self.nodes.evidence.histories[node]
        if history.best_together > ALIKE * max(map(amount_reached, self.runs_with_healthy(node)), default=0.0):
            return []
        return [
            run
            for run in history.unclear
            if not evidence.thresholds.is_contended(run)
            and not evidence.fabric.is_inside(run.members)
            and self.healthy.issuperset(run.others(node))
        ]

    @cached_property
    def spoilers(self) -> frozenset[str]:
        """Rule: a node is not cleared if it was bad across three paths with nodes that are bad with no other node.

        Prevents: liar n1 passes with n0 and slows down its runs with n2, n4 and n6. It would be cleared by the first
        run, and a healthy path would be blamed for each of the others.
        """
        return frozenset(node for node in self._passed_suspects if len(self._spoiled_by(node)) >= LEAST_SPOILED)

    def _spoiled_by(self, node: str) -> frozenset[Path]:
        """The paths across which `node` was bad with a node that has passed and is bad with no other node."""
        evidence, suspects = self.nodes.evidence, self.nodes.suspects
        pairs = (run.others(node) for run in suspects[node] if len(run.members) == 2)
        return frozenset(
            evidence.fabric.path(node, other)
            for (other,) in pairs
            if evidence.histories[other].good_together and all(node in run.members for run in suspects[other])
        )

    @cached_property
    def crash_partners(self) -> frozenset[str]:
        """Rule: after a crash, a node is not cleared before its partner in the crash is.

        It holds while the partner is bad with no other node: one of the two caused the crash, and nobody knows which.
        Prevents: liar n1 makes n0 crash near the end of a sweep and passes with liar n2 in the last round. If the first
        to pass were cleared, n0 would be the only suspect left.
        """
        return frozenset(node for node in self._passed_suspects if self._has_uncleared_crash_partner(node))

    def _has_uncleared_crash_partner(self, node: str) -> bool:
        suspects, cleared = self.nodes.suspects, self.nodes.evidence.cleared
        crashes = (run for run in suspects[node] if run.crashed and node in suspected_members(run))
        partners = (other for run in crashes for other in suspected_members(run) if other not in cleared)
        return any(all(node in run.members for run in suspects.get(other, ())) for other in partners)
