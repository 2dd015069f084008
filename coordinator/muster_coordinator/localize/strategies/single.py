"""Each node by itself: for checks of one node.

The idea: every node runs alone, once for each pass. A node that was slow without a verdict FAIL, or had no result, runs
once more: a random failure passes then, and a fault is bad twice. No node is a partner of another, so nothing is said
about links.

Example: 16 nodes, n3 is slow. Round 2 runs n3 again; slow twice, it is convicted. O(n) for each pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.planning.probes import still_to_run
from muster_coordinator.model.probes import CheckAbilities, GroupRun, Probe, Site

EACH = "each node alone"
AGAIN = "{} has neither passed nor certainly failed; it runs once more"


@dataclass(frozen=True)
class Single:
    """The strategy over `sites`, with this number of `passes` over all of them."""

    sites: Mapping[str, Site]
    passes: int = 1

    @property
    def max_rounds(self) -> int:
        """The passes, and one round for the nodes that are still inconclusive."""
        return self.passes + 1

    def next_groups(self, runs: Sequence[GroupRun], absent: frozenset[str]) -> list[Probe]:
        """Every node once in each pass, then the inconclusive ones."""
        each = [Probe((node,), EACH) for node in self.sites]
        return still_to_run([each] * self.passes, runs, absent) or self._again(runs, absent)

    def _again(self, runs: Sequence[GroupRun], absent: frozenset[str]) -> list[Probe]:
        diagnosis = Diagnosis(GroupEvidence(self.sites, tuple(runs)), CheckAbilities())
        histories = diagnosis.evidence.histories
        able = (node for node in diagnosis.inconclusive if node not in absent)
        return [Probe((node,), AGAIN.format(node)) for node in able if histories[node].times_alone <= self.passes]
