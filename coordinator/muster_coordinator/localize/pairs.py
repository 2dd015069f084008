"""Every node with one other, and then what the judgement still misses.

Most pairs of a usual fleet are well, and every node in such a pair is cleared by one run. A bad pair leaves two
suspects: these are told apart by runs alone and by partners that have passed, round by round until everybody is
settled. Who meets whom at first is a matter of the pairing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from muster_coordinator.localize.culprits import Judgement
from muster_coordinator.localize.evidence import Evidence
from muster_coordinator.localize.planned import still_to_run
from muster_coordinator.localize.probe import Abilities, Probe, Site, in_rank_order
from muster_coordinator.localize.settling import SETTLING_ROUNDS, settling
from muster_coordinator.localize.trial import Trial

Paired = Callable[[Mapping[str, Site], str, int], list[Probe]]
"""Pairs sites by a seed, in one turn after the other."""


@dataclass(frozen=True)
class Pairs:
    """The strategy over `sites`, which are in topology order: so many `passes` of pairs as `paired` has them."""

    sites: Mapping[str, Site]
    abilities: Abilities
    seed: str
    paired: Paired
    passes: int = 1

    @property
    def max_rounds(self) -> int:
        """The passes, and what settling takes."""
        return self.passes + SETTLING_ROUNDS

    def next_groups(self, trials: Sequence[Trial], absent: frozenset[str]) -> list[Probe]:
        """The pairs of all passes, then what settles who is open."""
        rounds = (self.paired(self.sites, self.seed, turn) for turn in range(self.passes))
        if left := still_to_run(rounds, trials, absent):
            return in_rank_order(left, self.sites)
        judgement = Judgement(Evidence(self.sites, tuple(trials)), self.abilities)
        return settling(judgement, absent, seed=self.seed, passes=self.passes)
