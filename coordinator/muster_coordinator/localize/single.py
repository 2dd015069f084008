"""Each node by itself: what a check of one node can tell, and no group can.

Round 1 runs every node alone, as often as there are passes. Who was slow without a failed verdict, or got nowhere, is
run once more: what was bad by chance passes then, and what is bad is bad twice. Nobody is anybody's partner, so that
nothing is said about links.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster_coordinator.localize.culprits import Judgement
from muster_coordinator.localize.evidence import Evidence
from muster_coordinator.localize.planned import still_to_run
from muster_coordinator.localize.probe import Abilities, Probe, Site
from muster_coordinator.localize.trial import Trial

EACH = "each node alone"
AGAIN = "{} has neither passed nor failed for certain, and runs once more"


@dataclass(frozen=True)
class Single:
    """The strategy over `sites`, with so many `passes` over all of them."""

    sites: Mapping[str, Site]
    passes: int = 1

    @property
    def max_rounds(self) -> int:
        """The passes, and one round for who is open then."""
        return self.passes + 1

    def next_groups(self, trials: Sequence[Trial], absent: frozenset[str]) -> list[Probe]:
        """Every node once in each pass, then those that are open."""
        each = [Probe((node,), EACH) for node in self.sites]
        return still_to_run([each] * self.passes, trials, absent) or self._again(trials, absent)

    def _again(self, trials: Sequence[Trial], absent: frozenset[str]) -> list[Probe]:
        judgement = Judgement(Evidence(self.sites, tuple(trials)), Abilities())
        histories = judgement.evidence.histories
        able = (node for node in judgement.open if node not in absent)
        return [Probe((node,), AGAIN.format(node)) for node in able if histories[node].tried_alone <= self.passes]
