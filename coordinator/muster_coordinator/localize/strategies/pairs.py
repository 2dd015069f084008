"""Every node with one other, by a pairing that the operator chooses, then the follow-up.

The idea: most pairs of a usual fleet are healthy, and one run clears both nodes of a healthy pair. A bad pair leaves
two suspects, and the follow-up finds the faulty one. The pairing decides which nodes meet first: at random, within
racks, across racks, or at random on each rail separately. Nodes meet others of their kind of hardware.

Example: 8 nodes in racks r1 and r2, pairing intra_rack. Round 1: n0-n1, n2-n3 in r1, n4-n5, n6-n7 in r2. With three
passes, each node meets all three others of its rack.

One turn takes O(n) for n nodes.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.hardware import KnownHardware
from muster_coordinator.localize.planning.follow_up import FOLLOW_UP_ROUNDS, follow_up
from muster_coordinator.localize.planning.probes import have_rails, in_rank_order, still_to_run
from muster_coordinator.localize.planning.tournament import meetings, turns_of
from muster_coordinator.model.probes import CheckAbilities, GroupRun, Probe, Site

AT_RANDOM = "paired at random"
WITHIN = "both are in rack {}"
NEAREST = "no other node is left in the rack of {}; it runs with the nearest node that is left"
UNKNOWN = "the rack of {} is unknown; it runs with the nearest node that is left"
ACROSS = "{} and {} are in different racks"
ALSO_WITHIN = "{} and {} are paired at random, although both are in rack {}"
NOT_KNOWN = "{} and {} are paired at random; the rack of one or both is unknown"


class Pairing(StrEnum):
    """Which nodes meet in a sweep of pairs."""

    RANDOM = "random"
    INTRA_RACK = "intra_rack"
    INTER_RACK = "inter_rack"
    RAIL = "rail"


@dataclass(frozen=True)
class Pairs:
    """The strategy over `sites`, which are in topology order, with this number of `passes` of pairs by `pairing`."""

    sites: Mapping[str, Site]
    abilities: CheckAbilities
    seed: str
    pairing: Pairing
    passes: int = 1

    @property
    def max_rounds(self) -> int:
        """The passes and the follow-up."""
        return self.passes + FOLLOW_UP_ROUNDS

    def next_groups(self, runs: Sequence[GroupRun], absent: frozenset[str]) -> list[Probe]:
        """The pairs of all passes, then the follow-up."""
        if left := still_to_run(map(self._pairs, range(self.passes)), runs, absent):
            return in_rank_order(left, self.sites)
        diagnosis = Diagnosis(GroupEvidence(self.sites, tuple(runs)), self.abilities)
        return follow_up(diagnosis, absent, seed=self.seed, passes=self.passes)

    def _pairs(self, turn: int) -> list[Probe]:
        """The pairs of one turn: nodes of one kind of hardware meet."""
        pairs_of_turn = PAIRINGS[self.pairing]
        alike = ({node: self.sites[node] for node in nodes} for nodes in KnownHardware(self.sites).by_kind(self.sites))
        return [probe for sites in alike for probe in pairs_of_turn(sites, self.seed, turn)]


def at_random(sites: Mapping[str, Site], seed: str, turn: int) -> list[Probe]:
    """Any node meets any other. If their number is odd, one waits for a healthy partner in the follow-up."""
    nodes = list(sites)
    random.Random(seed).shuffle(nodes)  # noqa: S311 - no secret depends on it
    return [Probe(pair, AT_RANDOM) for pair in meetings(nodes, turn)]


def rail_by_rail(sites: Mapping[str, Site], seed: str, turn: int) -> list[Probe]:
    """As at random, but the ranks of a pair exchange on each rail separately if there are rails between them."""
    return [replace(probe, by_rail=have_rails(probe.members, sites)) for probe in at_random(sites, seed, turn)]


def within_racks(sites: Mapping[str, Site], seed: str, turn: int) -> list[Probe]:
    """Nodes of one rack, with few parts between them; a node without a partner meets the nearest one without."""
    found = [
        Probe(pair, WITHIN.format(rack))
        for rack, nodes in _racks(sites).items()
        if rack is not None and len(nodes) > 1
        for pair in meetings(nodes, turn % turns_of(len(nodes)))
    ]
    paired = {node for probe in found for node in probe.members}
    left = [site for node, site in sites.items() if node not in paired]
    return [*found, *_nearest(left)]


def across_racks(sites: Mapping[str, Site], seed: str, turn: int) -> list[Probe]:
    """Nodes of one half of the racks meet those of the other half at random; an odd node waits."""
    rng = random.Random(seed)  # noqa: S311 - no secret depends on it
    racks = _racks(sites)
    ordered = [node for rack in rng.sample(sorted(racks, key=str), len(racks)) for node in racks[rack]]
    half = len(ordered) // 2
    one, other = ordered[:half], rng.sample(ordered[half : 2 * half], half)
    pairs = ((node, other[(place + turn) % half]) for place, node in enumerate(one))
    return [Probe(pair, _crossing(pair, sites)) for pair in pairs]


def _racks(sites: Mapping[str, Site]) -> dict[str | None, list[str]]:
    """The nodes of every rack, and under None those with unknown racks."""
    racks: dict[str | None, list[str]] = {}
    for node, site in sites.items():
        racks.setdefault(site.rack, []).append(node)
    return racks


def _nearest(left: Iterable[Site]) -> list[Probe]:
    """Pairs of nodes that are next to each other in topology order."""
    places = list(left)
    return [
        Probe((one.node, other.node), (UNKNOWN if one.rack is None else NEAREST).format(one.node))
        for one, other in zip(places[::2], places[1::2], strict=False)
    ]


def _crossing(pair: tuple[str, str], sites: Mapping[str, Site]) -> str:
    one, other = (sites[node].rack for node in pair)
    if one is None or other is None:
        return NOT_KNOWN.format(*pair)
    return ALSO_WITHIN.format(*pair, one) if one == other else ACROSS.format(*pair)


PAIRINGS: Mapping[Pairing, Callable[[Mapping[str, Site], str, int], list[Probe]]] = {
    Pairing.RANDOM: at_random,
    Pairing.INTRA_RACK: within_racks,
    Pairing.INTER_RACK: across_racks,
    Pairing.RAIL: rail_by_rail,
}
"""A function for each pairing that gives the pairs of one turn from the sites and a seed. In the next turn with the
same seed, each node meets another one while there are any.
"""
