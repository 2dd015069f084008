"""The cases on the fabric of the localisation benchmark itself: which faults it has, drawn by lot."""

import random
from collections.abc import Callable

from benchmarks.localisation.fabric import RAILS, Faults

from muster_coordinator.model.probes import Site

SHARES = (0.0, 0.001, 0.01, 0.05, 0.2)

PART_SHARE = 0.01
"""Of nodes with a bad rail or link, and at least one of them."""

CRASHING = 0.2
"""Of bad nodes; the others are slow."""

LEAST, MOST = 0.1, 0.7
"""What slow parts deliver, as a share of normal."""

CHANCE = 0.3
"""In how many of its runs a fault that comes and goes shows."""

Sites = dict[str, Site]
Draw = Callable[[Sites, random.Random], Faults]


def slow_share(lots: random.Random) -> float:
    """What a slow part delivers."""
    return lots.uniform(LEAST, MOST)


def nodes_at(share: float, chance: float = 1.0) -> Draw:
    """Each node is bad with this probability."""

    def draw(sites: Sites, lots: random.Random) -> Faults:
        bad = [node for node in sites if lots.random() < share]
        crashing = {node: 0.0 if lots.random() < CRASHING else slow_share(lots) for node in bad}
        return Faults(nodes=crashing, chance=dict.fromkeys(bad, chance))

    return draw


def rails(sites: Sites, lots: random.Random) -> Faults:
    """One rail of each of some nodes."""
    return Faults(rails={(node, lots.randrange(RAILS)): slow_share(lots) for node in some(sites, lots)})


def links(sites: Sites, lots: random.Random) -> Faults:
    """The links of some nodes."""
    return Faults(links={node: slow_share(lots) for node in some(sites, lots)})


def leaf(sites: Sites, lots: random.Random) -> Faults:
    """One leaf's switch."""
    return Faults(leaves={lots.choice(leaves_of(sites)): slow_share(lots)})


def path(sites: Sites, lots: random.Random) -> Faults:
    """What lies between two leaves."""
    one, other = sorted(lots.sample(leaves_of(sites), 2))
    return Faults(paths={(one, other): slow_share(lots)})


def some(sites: Sites, lots: random.Random) -> list[str]:
    """The nodes of which a part is bad."""
    return lots.sample(list(sites), max(1, round(PART_SHARE * len(sites))))


def leaves_of(sites: Sites) -> list[str]:
    """All leaves of a fleet."""
    return sorted({site.leaf for site in sites.values() if site.leaf is not None})


OWN_CASES: dict[str, Draw] = {
    **{f"nodes {share:.1%}": nodes_at(share) for share in SHARES},
    "rails": rails,
    "links": links,
    "leaf": leaf,
    "path": path,
    "intermittent 1.0%": nodes_at(0.01, CHANCE),
    "intermittent 5.0%": nodes_at(0.05, CHANCE),
}
