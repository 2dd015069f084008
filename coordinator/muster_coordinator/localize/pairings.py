"""Who meets whom in a sweep of pairs: by lot, within racks, or across them.

Each function gives the pairs of one turn over all `sites`. In the next turn with the same `seed` others meet, as far as
there are others to meet.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

from muster_coordinator.localize.probe import Probe, Site, have_rails
from muster_coordinator.localize.tournament import meetings, turns_of

Sites = Mapping[str, Site]

BY_LOT = "paired by lot"
WITHIN = "both stand in rack {}"
NEAREST = "{} has no other node of its rack to meet, and meets the nearest that is left"
UNKNOWN = "nobody said in which rack {} stands, and it meets the nearest that is left"
ACROSS = "{} and {} stand in different racks"
ALSO_WITHIN = "{} and {} meet by lot, although both stand in rack {}"
NOT_KNOWN = "{} and {} meet by lot, since nobody said in which racks both stand"


def by_lot(sites: Sites, seed: str, turn: int) -> list[Probe]:
    """Everybody meets anybody. Of an odd number one waits until there are nodes that have passed."""
    nodes = list(sites)
    random.Random(seed).shuffle(nodes)  # noqa: S311 - a draw of lots, not a secret
    return [Probe(pair, BY_LOT) for pair in meetings(nodes, turn)]


def rail_by_rail(sites: Sites, seed: str, turn: int) -> list[Probe]:
    """As by lot, but the ranks of a pair exchange on one rail after the other, where there are rails between them."""
    return [replace(probe, by_rail=have_rails(probe.members, sites)) for probe in by_lot(sites, seed, turn)]


def within_racks(sites: Sites, seed: str, turn: int) -> list[Probe]:
    """Neighbours, between which there is least that could be bad; who finds none meets the nearest that is left."""
    found = [
        Probe(pair, WITHIN.format(rack))
        for rack, nodes in _racks(sites).items()
        if rack is not None and len(nodes) > 1
        for pair in meetings(nodes, turn % turns_of(len(nodes)))
    ]
    paired = {node for probe in found for node in probe.members}
    left = [site for node, site in sites.items() if node not in paired]
    return [*found, *_nearest(left)]


def across_racks(sites: Sites, seed: str, turn: int) -> list[Probe]:
    """Nodes of one half of the racks meet those of the other by lot; of an odd number one waits, as above."""
    lots = random.Random(seed)  # noqa: S311 - a draw of lots, not a secret
    racks = _racks(sites)
    ordered = [node for rack in lots.sample(sorted(racks, key=str), len(racks)) for node in racks[rack]]
    half = len(ordered) // 2
    one, other = ordered[:half], lots.sample(ordered[half : 2 * half], half)
    pairs = ((node, other[(place + turn) % half]) for place, node in enumerate(one))
    return [Probe(pair, _crossing(pair, sites)) for pair in pairs]


def _racks(sites: Sites) -> dict[str | None, list[str]]:
    """The nodes of every rack, and under None those of which nobody said."""
    racks: dict[str | None, list[str]] = {}
    for node, site in sites.items():
        racks.setdefault(site.rack, []).append(node)
    return racks


def _nearest(left: Iterable[Site]) -> list[Probe]:
    """Pairs of those that are next to each other in topology order."""
    places = list(left)
    return [
        Probe((one.node, other.node), (UNKNOWN if one.rack is None else NEAREST).format(one.node))
        for one, other in zip(places[::2], places[1::2], strict=False)
    ]


def _crossing(pair: tuple[str, str], sites: Sites) -> str:
    one, other = (sites[node].rack for node in pair)
    if one is None or other is None:
        return NOT_KNOWN.format(*pair)
    return ALSO_WITHIN.format(*pair, one) if one == other else ACROSS.format(*pair)
