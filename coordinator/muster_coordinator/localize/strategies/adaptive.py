"""The adaptive strategy: each node in one run, then only what separates the explanations that are still possible.

The idea: round 1 puts every node into one pair, across as many paths as possible. No smaller number of node-seconds
tries all nodes, and at usual shares of faults few pairs are bad. Everything after that is the follow-up.

Example: 1,024 nodes, ten of them bad. Round 1 has 512 pairs, of which ten are slow; 1,004 nodes are cleared. Rounds 2
and 3 have some tens of groups: the 20 suspects alone, beside controls, and with partners.

Round 1 takes O(n) for n nodes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.fabric import KnownFabric
from muster_coordinator.localize.evidence.hardware import KnownHardware
from muster_coordinator.localize.evidence.prior import NO_PRIOR, SweepPrior
from muster_coordinator.localize.likelihood.track_records import TrackRecords
from muster_coordinator.localize.planning.follow_up import FOLLOW_UP_ROUNDS, TOO_FEW_TO_COMPARE, follow_up
from muster_coordinator.localize.planning.inside_pairs import with_pairs_inside
from muster_coordinator.localize.planning.probes import in_rank_order
from muster_coordinator.localize.planning.suspects import with_suspects
from muster_coordinator.localize.planning.tournament import across_leaves
from muster_coordinator.model.probes import CheckAbilities, GroupRun, Probe, Site

FIRST = "every node once, across as many paths as possible"


@dataclass(frozen=True)
class Adaptive:
    """The strategy over `sites`, which are in topology order.

    Every node runs with others in at least `passes` runs: more of them cross more paths, and see more intermittent
    faults. `seed` draws which nodes meet. Suspects of the sweeps of `prior` meet good partners first.
    """

    sites: Mapping[str, Site]
    abilities: CheckAbilities = field(default_factory=CheckAbilities)
    seed: str = ""
    passes: int = 1
    prior: SweepPrior = NO_PRIOR

    @property
    def max_rounds(self) -> int:
        """The passes and the follow-up."""
        return self.passes + FOLLOW_UP_ROUNDS

    def next_groups(self, runs: Sequence[GroupRun], absent: frozenset[str]) -> list[Probe]:
        """The disjoint groups of the next round; none if nothing more can be learned."""
        if not runs and len(self.sites) != TOO_FEW_TO_COMPARE:
            return in_rank_order(self._first_groups(absent), self.sites)
        return follow_up(self.diagnose(runs), absent, seed=self.seed, passes=self.passes)

    def diagnose(self, runs: Sequence[GroupRun]) -> Diagnosis:
        """The diagnosis from the runs so far."""
        return Diagnosis(GroupEvidence(self.sites, tuple(runs)), self.abilities, self.prior)

    def _first_groups(self, absent: frozenset[str]) -> list[Probe]:
        here = {node: site for node, site in self.sites.items() if node not in absent}
        hardware = KnownHardware(self.sites)
        records = TrackRecords(self.prior.sweeps, self.prior.now, KnownFabric(here)).suspects
        suspects = [*with_suspects(records, here, hardware, self.prior, self.seed)]
        taken = {node for probe in suspects for node in probe.members}
        found = suspects
        for nodes in hardware.by_kind(node for node in here if node not in taken):
            groups = across_leaves([here[node] for node in nodes], self.seed, 0)
            found += (Probe(group, FIRST) for group in with_pairs_inside(groups, self.sites))
        return found
