"""The strategies of a sweep by name, and their common interface."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from muster_coordinator.localize.evidence.prior import NO_PRIOR, SweepPrior
from muster_coordinator.localize.strategies.adaptive import Adaptive
from muster_coordinator.localize.strategies.bisection import Bisection
from muster_coordinator.localize.strategies.pairs import Pairing, Pairs
from muster_coordinator.localize.strategies.round_robin import RoundRobin
from muster_coordinator.localize.strategies.single import Single
from muster_coordinator.localize.strategies.whole import Whole
from muster_coordinator.model.probes import CheckAbilities, GroupRun, Probe, Site


class RoundPlanner(Protocol):
    """A strategy over the nodes of one sweep: a pure function from the results of groups to the next groups."""

    @property
    def max_rounds(self) -> int:
        """Maximum number of rounds of the sweep, even if nodes are still inconclusive."""

    def next_groups(self, runs: Sequence[GroupRun], absent: frozenset[str]) -> list[Probe]:
        """The disjoint groups of the next round, without `absent` nodes; none if nothing more can be learned."""


class Strategy(StrEnum):
    """How a sweep groups nodes; each strategy has its own module."""

    SINGLE = "single"
    PAIRS = "pairs"
    ROUND_ROBIN = "round_robin"
    WHOLE = "whole"
    BISECT = "bisect"
    ADAPTIVE = "adaptive"


def planner_of(
    strategy: Strategy,
    sites: Mapping[str, Site],
    *,
    abilities: CheckAbilities,
    seed: str,
    pairing: Pairing = Pairing.RANDOM,
    passes: int = 1,
    prior: SweepPrior = NO_PRIOR,
) -> RoundPlanner:
    """The planner of a sweep over `sites`, which are in topology order.

    `abilities` are the check's. `seed` determines all draws, so a replay takes the same groups. Every node is in at
    least `passes` runs; in a round robin it meets every other node anyway. `pairing` is for strategy pairs, `prior` for
    strategy adaptive.
    """
    match strategy:
        case Strategy.SINGLE:
            return Single(sites, passes)
        case Strategy.WHOLE:
            return Whole(sites, passes)
        case Strategy.PAIRS:
            return Pairs(sites, abilities, seed, pairing, passes)
        case Strategy.ROUND_ROBIN:
            return RoundRobin(sites, abilities, seed)
        case Strategy.BISECT:
            return Bisection(sites, abilities, seed, passes)
        case Strategy.ADAPTIVE:
            return Adaptive(sites, abilities, seed, passes, prior)
