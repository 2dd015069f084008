"""Who meets whom in a sweep of pairs: by lot, within racks, or across them.

Each function gives the pairs of one turn over all `sites`. In the next turn with the same `seed` everybody meets
somebody else, as long as there is anybody else to meet.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

from muster_coordinator.localize.probe import Probe, Site
from muster_coordinator.localize.tournament import across_leaves, meetings, turns_of

Sites = Mapping[str, Site]

BY_LOT = "paired by lot"
WITHIN = "both stand in rack {}"
NEAREST = "{} has no other node of its rack to meet, and meets the nearest that is left"
UNKNOWN = "nobody said in which rack {} stands, and it meets the nearest that is left"
ACROSS = "from racks {} and {}"
NOT_ACROSS = "{} and {} are left when the racks have met, and are not known to stand in different ones"


def by_lot(sites: Sites, seed: str, turn: int) -> list[Probe]:
    """Everybody meets anybody. Of an odd number one waits until there are nodes that have passed."""
    nodes = list(sites)
    random.Random(seed).shuffle(nodes)  # noqa: S311 - a draw of lots, not a secret
    return [Probe(pair, BY_LOT) for pair in meetings(nodes, turn)]


def rail_by_rail(sites: Sites, seed: str, turn: int) -> list[Probe]:
    """As by lot, but the ranks of a pair exchange on one rail after the other."""
    return [replace(probe, by_rail=True) for probe in by_lot(sites, seed, turn)]


def within_racks(sites: Sites, seed: str, turn: int) -> list[Probe]:
    """Neighbours, between which there is least that could be bad; who finds none meets the nearest that is left."""
    found = [
        Probe(pair, WITHIN.format(rack))
        for rack, nodes in _racks(sites).items()
        if len(nodes) > 1
        for pair in meetings(nodes, turn % turns_of(len(nodes)))
    ]
    paired = {node for probe in found for node in probe.members}
    left = [site for node, site in sites.items() if node not in paired]
    return [*found, *_nearest(left)]


def across_racks(sites: Sites, seed: str, turn: int) -> list[Probe]:
    """Nodes of different racks, which cross as many pairs of racks as they can."""
    groups = across_leaves((Site(node, leaf=site.rack) for node, site in sites.items()), seed, turn)
    return [Probe(group, _crossing(group, sites)) for group in groups]


def _racks(sites: Sites) -> dict[str, list[str]]:
    racks: dict[str, list[str]] = {}
    for node, site in sites.items():
        if site.rack is not None:
            racks.setdefault(site.rack, []).append(node)
    return racks


def _nearest(left: Iterable[Site]) -> list[Probe]:
    """Pairs of those that are next to each other in topology order."""
    places = list(left)
    return [
        Probe((one.node, other.node), (UNKNOWN if one.rack is None else NEAREST).format(one.node))
        for one, other in zip(places[::2], places[1::2], strict=False)
    ]


def _crossing(group: tuple[str, ...], sites: Sites) -> str:
    racks = [rack for node in group if (rack := sites[node].rack) is not None]
    return ACROSS.format(*racks[:2]) if len(set(racks)) > 1 else NOT_ACROSS.format(*group[:2])
