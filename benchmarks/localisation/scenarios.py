"""What a method meets: a fabric to run groups on, what it is told about it, and the truth."""

import random
import statistics
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from benchmarks.fabric.defects import BrokenPart, Defect
from benchmarks.fabric.disturbances import Disturbances, generations
from benchmarks.fabric.membership import Membership, labelled, leaf_name, name_of
from benchmarks.fabric.swept_fleet import FleetSetup, SweptFleet, number_of
from benchmarks.localisation.cases import OWN_CASES, Sites
from benchmarks.localisation.fabric import Fabric, Faults, lots_of, sites_of
from benchmarks.localisation.hidden import KnownFleet
from benchmarks.localisation.network_cases import NETWORK_CASES, NetworkCase
from benchmarks.localisation.scoring import RoundRunner
from benchmarks.localisation.truth import Named, Truth

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.model.probes import Probe

CASES = (*OWN_CASES, *NETWORK_CASES)

PARTS = {
    BrokenPart.NODE: Part.NODE,
    BrokenPart.LINK: Part.NODE_LINK,
    BrokenPart.RAIL: Part.RAIL,
    BrokenPart.LEAF: Part.LEAF,
    BrokenPart.PATH: Part.PATH,
}
"""How a method can name what is broken. It has no name for one switch or way of several."""


class Scenario(NamedTuple):
    """A fabric, its sites as a method knows them, the truth, and the `normal` objective of a pair.

    Methods with an absolute threshold get the normal objective, because they do not measure it.
    """

    fabric: RoundRunner
    sites: Sites
    truth: Truth
    normal: float


class Drawing(NamedTuple):
    """What decides about a scenario: all that lasts is drawn under `name`, and the same for every method."""

    case: str
    nodes: int
    name: str
    method: str
    noise: float
    max_parallel: int | None = None


def scenario_of(drawing: Drawing) -> Scenario:
    """The scenario, on the fabric of its own or on the simulated network."""
    return _of_own(drawing) if drawing.case in OWN_CASES else on_network(drawing, NETWORK_CASES[drawing.case])


def _of_own(drawing: Drawing) -> Scenario:
    sites = sites_of(drawing.nodes)
    faults = OWN_CASES[drawing.case](sites, lots_of(drawing.name))
    fabric = Fabric(sites, faults, drawing.noise, lots_of(f"{drawing.name} {drawing.method}"))
    leaf_of = {node: site.leaf or "" for node, site in sites.items()}
    return Scenario(fabric, sites, Truth(faults=frozenset(_named(faults)), leaf_of=leaf_of), 1.0)


def on_network(drawing: Drawing, case: NetworkCase) -> Scenario:
    """The scenario of this case on the simulated network."""
    lots = lots_of(f"{drawing.name} fleet")  # and not those of the method, or both would draw the same nodes
    drawn = case(drawing.nodes, lots)
    noisy = replace(drawn.disturbances, noise=max(drawing.noise, drawn.disturbances.noise))
    setup = replace(drawn, disturbances=noisy, max_parallel=drawing.max_parallel)
    generation = generations(setup.disturbances, drawing.nodes, np.random.default_rng(number_of(drawing.name)))
    sites = labelled(setup.network, setup.membership, lots, generation.tolist())
    fabric = SweptFleet(setup, sites, drawing.name, drawing.method)
    fleet = KnownFleet(setup=setup, sites=sites, busy=fabric.busy, generation=generation.tolist())
    return Scenario(fabric, sites, truth_of(fleet), normal_of(setup))


def normal_of(setup: FleetSetup) -> float:
    """The median of random pairs of the same fleet if nothing is wrong with it and all of them run at once, in GB/s.

    An operator gets to know it from sweeps of better days.
    """
    healthy = replace(setup, defects=(), disturbances=Disturbances(noise=0.0), membership=Membership())
    sites = labelled(setup.network, healthy.membership, random.Random(0))  # noqa: S311 - not a secret
    drawn = random.Random(0).sample(list(sites), len(sites))  # noqa: S311 - not a secret
    probes = [Probe(pair, "") for pair in zip(drawn[::2], drawn[1::2], strict=False)]
    runs = SweptFleet(healthy, sites, "normal", "pairs").run_round(probes)
    return statistics.median(run.objective or 0.0 for run in runs)


def truth_of(fleet: KnownFleet) -> Truth:
    """The defects of the fleet by the names that methods use."""
    network, defects = fleet.setup.network, fleet.setup.defects
    switches, ways = (
        tuple(leaf_name(defect.of[0]) for defect in defects if defect.part is part)
        for part in (BrokenPart.SWITCH, BrokenPart.WAY)
    )
    faults = {_fault(defect): fleet.reason_hidden(defect) for defect in defects if defect.part in PARTS}
    return Truth(
        faults=frozenset(faults),
        leaf_of={name_of(node): leaf_name(int(leaf)) for node, leaf in enumerate(network.leaf_of)},
        bad_switches=switches,
        bad_ways=ways,
        hidden={fault: reason for fault, reason in faults.items() if reason is not None},
    )


def _fault(defect: Defect) -> Named:
    part, of = PARTS[defect.part], defect.of
    match defect.part:
        case BrokenPart.RAIL:
            return Named(part, (name_of(of[0]),), (of[1],))
        case BrokenPart.LEAF | BrokenPart.PATH:
            return Named(part, tuple(sorted(map(leaf_name, of))))
    return Named(part, (name_of(of[0]),))


def _named(faults: Faults) -> Iterable[Named]:
    """The faults of a fabric of its own."""
    yield from (Named(Part.NODE, (node,)) for node in faults.nodes)
    yield from (Named(Part.NODE_LINK, (node,)) for node in faults.links)
    yield from (Named(Part.RAIL, (node,), (rail,)) for node, rail in faults.rails)
    yield from (Named(Part.LEAF, (leaf,)) for leaf in faults.leaves)
    yield from (Named(Part.PATH, path) for path in faults.paths)
