"""The adaptive strategy: each node in one run, and then only what separates what is still possible.

Round 1 puts every node into one pair, across as many paths as there are: no smaller number of node-seconds tries all
of them, and at usual shares of faults few pairs are bad. From then on every node takes part in at most one group of a
round, in this order:

1. Of a leaf of which nobody has passed, two nodes meet each other, some speak for it, and the others wait.
2. A node with a bad run that nothing explains runs alone, the cheapest run that can convict it. Of two suspects only
   that one does which the next step has not cleared: their measure would cost as much as they do.
3. It then runs rail by rail with one that has passed, first from its rack, then its leaf, then from elsewhere: it is
   cleared, or its link or rail is found.
4. A path that was bad between nodes that are well is tried with other nodes from its ends.
5. Nodes whose bad runs are explained by somebody else clear each other.
6. Nodes that were bad once and have passed since, for no reason that was found, run alone a few times more.

Nodes that have passed lend themselves as partners, and one of them as measure: without it, nothing says what a node
alone should reach.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muster_coordinator.localize.culprits import Judgement
from muster_coordinator.localize.evidence import Evidence
from muster_coordinator.localize.probe import Abilities, Probe, Site, in_rank_order
from muster_coordinator.localize.settling import SETTLING_ROUNDS, settling
from muster_coordinator.localize.tournament import across_leaves
from muster_coordinator.localize.trial import Trial

FIRST = "every node once, across as many paths as there are"


@dataclass(frozen=True)
class Adaptive:
    """The strategy over `sites`, which are in topology order.

    Every node meets others in at least so many `passes`: more of them cross more paths, and see more of what comes and
    goes. `seed` draws the lots of who meets whom.
    """

    sites: Mapping[str, Site]
    abilities: Abilities = field(default_factory=Abilities)
    seed: str = ""
    passes: int = 1

    @property
    def max_rounds(self) -> int:
        """The passes, and what settling takes."""
        return self.passes + SETTLING_ROUNDS

    def next_groups(self, trials: Sequence[Trial], absent: frozenset[str]) -> list[Probe]:
        """The disjoint groups of the next round; none when nothing more can be learned."""
        if not trials:
            here = [site for node, site in self.sites.items() if node not in absent]
            return in_rank_order([Probe(group, FIRST) for group in across_leaves(here, self.seed, 0)], self.sites)
        return settling(self.judge(trials), absent, seed=self.seed, passes=self.passes)

    def judge(self, trials: Sequence[Trial]) -> Judgement:
        """What the trials so far say."""
        return Judgement(Evidence(self.sites, tuple(trials)), self.abilities)
