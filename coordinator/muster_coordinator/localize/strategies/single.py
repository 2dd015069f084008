"""Each node by itself: for checks of one node.

The idea: every node runs alone, once for each pass. A node that was slow without a verdict FAIL runs again until it
passes, or chance explains it no longer: a random failure passes soon. One that had no result runs once more. No node is
a partner of another, so nothing is said about links.

Example: 16 nodes, n3 is slow. Round 2 runs n3 again; slow twice alike, it is convicted. O(n) for each pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.history import NodeHistory
from muster_coordinator.localize.planning.probes import still_to_run
from muster_coordinator.model.probes import CheckAbilities, GroupRun, Probe, Site

EACH = "each node alone"
AGAIN = "{} has neither passed nor certainly failed; it runs once more"

MOST_AGAIN = 3
"""How often a node that was slow runs again: four runs that are bad by chance happen in one of a million fleets."""


@dataclass(frozen=True)
class Single:
    """The strategy over `sites`, with this number of `passes` over all of them."""

    sites: Mapping[str, Site]
    passes: int = 1

    @property
    def max_rounds(self) -> int:
        """The passes, and the rounds for the nodes that are still inconclusive."""
        return self.passes + MOST_AGAIN

    def next_groups(self, runs: Sequence[GroupRun], absent: frozenset[str]) -> list[Probe]:
        """Every node once in each pass, then the inconclusive ones."""
        each = [Probe((node,), EACH) for node in self.sites]
        return still_to_run([each] * self.passes, runs, absent) or self._again(runs, absent)

    def _again(self, runs: Sequence[GroupRun], absent: frozenset[str]) -> list[Probe]:
        diagnosis = Diagnosis(GroupEvidence(self.sites, tuple(runs)), CheckAbilities())
        histories = diagnosis.evidence.histories
        able = (node for node in diagnosis.inconclusive if node not in absent)
        return [Probe((node,), AGAIN.format(node)) for node in able if self._may_run_again(histories[node])]

    def _may_run_again(self, history: NodeHistory) -> bool:
        return history.times_alone < self.passes + (MOST_AGAIN if history.bad else 1)
