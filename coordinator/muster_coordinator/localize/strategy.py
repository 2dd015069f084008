"""How a sweep can group nodes, by name, and the policies that do so."""

from collections.abc import Mapping
from enum import StrEnum

from muster_coordinator.localize.adaptive import Adaptive
from muster_coordinator.localize.bisection import Bisection
from muster_coordinator.localize.pairings import across_racks, by_lot, rail_by_rail, within_racks
from muster_coordinator.localize.pairs import Paired, Pairs
from muster_coordinator.localize.probe import Abilities, Policy, Site
from muster_coordinator.localize.round_robin import RoundRobin
from muster_coordinator.localize.single import Single
from muster_coordinator.localize.whole import Whole


class Strategy(StrEnum):
    """How a sweep groups nodes; each has a module of its own that tells how it goes about it."""

    SINGLE = "single"
    PAIRS = "pairs"
    ROUND_ROBIN = "round_robin"
    WHOLE = "whole"
    BISECT = "bisect"
    ADAPTIVE = "adaptive"


class Pairing(StrEnum):
    """Who meets whom in a sweep of pairs."""

    RANDOM = "random"
    INTRA_RACK = "intra_rack"
    INTER_RACK = "inter_rack"
    RAIL = "rail"


PAIRED: Mapping[Pairing, Paired] = {
    Pairing.RANDOM: by_lot,
    Pairing.INTRA_RACK: within_racks,
    Pairing.INTER_RACK: across_racks,
    Pairing.RAIL: rail_by_rail,
}


def policy_of(
    strategy: Strategy,
    sites: Mapping[str, Site],
    *,
    abilities: Abilities,
    seed: str,
    pairing: Pairing = Pairing.RANDOM,
    passes: int = 1,
) -> Policy:
    """The policy of a sweep over `sites`, which are in topology order.

    `abilities` say what the check can tell; `seed` draws all lots, so that a replay takes the same groups. Every node
    takes part in at least so many `passes`; in a round robin it meets every other one anyway. `pairing` is for pairs.
    """
    match strategy:
        case Strategy.SINGLE:
            return Single(sites, passes)
        case Strategy.WHOLE:
            return Whole(sites, passes)
        case Strategy.PAIRS:
            return Pairs(sites, abilities, seed, PAIRED[pairing], passes)
        case Strategy.ROUND_ROBIN:
            return RoundRobin(sites, abilities, seed)
        case Strategy.BISECT:
            return Bisection(sites, abilities, seed, passes)
        case Strategy.ADAPTIVE:
            return Adaptive(sites, abilities, seed, passes)
