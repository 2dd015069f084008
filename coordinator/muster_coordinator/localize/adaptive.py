"""The adaptive strategy: each node in one run, and then only what separates what is still possible.

Round 1 puts every node into one pair, across as many paths as there are: no smaller number of node-seconds tries all
of them, and at usual shares of faults few pairs are bad. From then on every node takes part in at most one group of a
round, in this order:

1. Of a leaf of which nobody has passed, two nodes meet each other, some speak for it, and the others wait.
2. A node with a bad run that nothing explains runs alone, the cheapest run that can convict it.
3. A node that is well alone runs rail by rail with one that has passed, first from its rack, then its leaf, then from
   elsewhere: it is cleared, or its link or rail is found.
4. A path that was bad between nodes that are well is tried with other nodes from its ends.
5. Nodes whose bad runs are explained by somebody else clear each other.
6. Nodes that were bad once and have passed since, for no reason that was found, run alone a few times more.

Nodes that have passed lend themselves as partners, and a few of them as measure: without them, nothing says what a
node alone should reach.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from muster_coordinator.localize.culprits import Judgement
from muster_coordinator.localize.evidence import Evidence
from muster_coordinator.localize.next_round import NextRound
from muster_coordinator.localize.probe import Abilities, Probe, Site
from muster_coordinator.localize.tournament import across_leaves
from muster_coordinator.localize.trial import Trial

MAX_ROUNDS = 8
"""Persistent faults need at most five; the others are for what comes and goes."""

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

    def next_groups(self, trials: Sequence[Trial], absent: frozenset[str]) -> list[Probe]:
        """The disjoint groups of the next round; none when nothing more can be learned."""
        if not trials:
            return self._in_order(self._first_round(absent))
        following = NextRound(self.judge(trials), absent, self.passes, self.seed)
        following.plan()
        return self._in_order(following.probes)

    def judge(self, trials: Sequence[Trial]) -> Judgement:
        """What the trials so far say."""
        return Judgement(Evidence(self.sites, tuple(trials)), self.abilities)

    def _first_round(self, absent: frozenset[str]) -> list[Probe]:
        here = [site for node, site in self.sites.items() if node not in absent]
        return [Probe(group, FIRST) for group in across_leaves(here, self.seed, 0)]

    def _in_order(self, probes: Iterable[Probe]) -> list[Probe]:
        """With the members of each in topology order, which is rank order."""
        return [
            Probe(tuple(sorted(probe.members, key=self._places.__getitem__)), probe.reason, probe.by_rail)
            for probe in probes
        ]

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {node: place for place, node in enumerate(self.sites)}
