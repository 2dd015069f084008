"""The adaptive strategy over the simulated fabric of the benchmark, racks, leaves and rails."""

import itertools
import math

import pytest
from benchmarks.localisation.fabric import Fabric, Faults, lots_of, sites_of
from benchmarks.localisation.scoring import play
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.check import CheckInfo, Needs, Scope
from muster.model import Device, Inventory, Topology
from muster_coordinator.evidence.announced_checks import AnnouncedChecks
from muster_coordinator.evidence.node import Node
from muster_coordinator.localize.planning.inside_pairs import MOST_LEFT_OUT
from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.strategies.adaptive import Adaptive
from muster_coordinator.model.events import SweepRequested
from muster_coordinator.model.probes import CheckAbilities, Probe, Site
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.sweeps.planning import plan_sweep
from muster_coordinator.sweeps.sweep_evidence import SweepEvidence

COLLECTIVE = CheckInfo(
    name="collective",
    summary="all-reduce",
    scope=Scope.GROUP,
    needs=Needs.IDLE_NODE,
    cadence_s=None,
    timeout_s=20.0,
    objective="busbw_gbps",
    by_rail="rail_busbw_gbps",
    params={"type": "object", "properties": {}, "additionalProperties": False},
)


def nowhere(count: int) -> dict[str, Site]:
    """Nodes of which nobody knows where they stand."""
    return {f"n{number}": Site(f"n{number}") for number in range(count)}


@pytest.mark.parametrize("count", [2, 4, 5, 16, 17, 57, 232])
@pytest.mark.parametrize("sites", [sites_of, nowhere])
def test_the_first_round_takes_every_node_once(sites, count: int) -> None:
    """In pairs with one group of three at most, each in topology order, the same for the same seed."""
    strategy = Adaptive(sites(count), seed="s")
    groups = [probe.members for probe in strategy.next_groups((), frozenset())]
    assert sorted(node for group in groups for node in group) == sorted(strategy.sites)
    assert sorted(map(len, groups), reverse=True)[1:] in ([], [2] * (len(groups) - 1))
    assert all([*group] == sorted(group, key=list(strategy.sites).index) for group in groups)
    assert groups == [probe.members for probe in strategy.next_groups((), frozenset())]


@pytest.mark.parametrize(("count", "passes"), [(256, 1), (1024, 1), (4096, 4)])
def test_passes_cross_nearly_every_path(count: int, passes: int) -> None:
    """As soon as there are nodes enough for each pair of leaves to have one run; a few pairs run inside leaves."""
    sites = sites_of(count)
    strategy = Adaptive(sites, passes=passes)
    fabric = Fabric(sites, Faults(), 0.02, lots_of("1"))
    played = play(strategy, fabric)
    assert len(played.rounds) == passes
    leaves = {site.leaf for site in sites.values()}
    crossed = {frozenset(sites[node].leaf for node in run.members) for run in played.runs}
    missed = {frozenset(pair) for pair in itertools.combinations(leaves, 2)} - crossed
    assert len(missed) <= (0 if count < 1024 else MOST_LEFT_OUT * math.comb(len(leaves), 2))


@pytest.mark.parametrize("size", [2, 3, 33, 512])
@pytest.mark.parametrize(
    ("faults", "share"),
    [
        (Faults(), 1.0),
        (Faults(nodes={"n1": 0.7, "n0": 0.4}), 0.4),
        (Faults(rails={("n1", 7): 0.5}, nodes={"n0": 0.6}), 0.5),
        (Faults(links={"n1": 0.3}, leaves={"leaf0": 0.2}), 0.2),
    ],
    ids=["healthy", "nodes", "rail", "link and leaf"],
)
def test_a_group_of_any_size_is_as_fast_as_the_slowest_of_its_parts(faults: Faults, share: float, size: int) -> None:
    """But for noise; a rail that is tried apart carries an eighth."""
    sites = sites_of(1024)
    members = tuple(sites)[:size]
    fabric = Fabric(sites, faults, 0.02, lots_of("1"))
    together, apart = (fabric.run(Probe(members, "", by_rail)) for by_rail in (False, True))
    assert together.objective == pytest.approx(share, rel=0.06)
    assert len(apart.rails) == 8
    assert 8 * min(apart.rails) == pytest.approx(share, rel=0.06)


def test_a_group_uses_the_paths_between_all_its_leaves() -> None:
    """A bad one slows down those that have nodes at both its ends, and nobody else."""
    sites = sites_of(1024)
    fabric = Fabric(sites, Faults(paths={("leaf0", "leaf15"): 0.5}), 0.0, lots_of("1"))
    reached = {size: fabric.run(Probe(tuple(sites)[:size], "")).objective for size in (32, 480, 481, 512)}
    assert reached == {32: 1.0, 480: 1.0, 481: 0.5, 512: 0.5}


def node_at(site: Site, *, devices: int) -> Node:
    """A node that stands there and has the check."""
    node = Node(site.node, 0.0, 0.0, online=True)
    gpus = tuple(Device(index=index, uuid=f"{site.node}-{index}", model="H100") for index in range(devices))
    node.inventory = Inventory(devices=gpus, topology=Topology(rack=site.rack, leaf=site.leaf))
    node.announced = AnnouncedChecks.of([COLLECTIVE])
    return node


FAULTS = {
    "slow and crashing nodes": (Faults(nodes={"n5": 0.7, "n9": 0.1, "n40": 0.0}), {"n5", "n9", "n40"}),
    "two bad nodes in most pairs": (Faults(nodes={f"n{n}": 0.3 + n / 200 for n in range(0, 60, 3)}), None),
    "links": (Faults(links={"n7": 0.6, "n33": 0.2}), {"n7", "n33"}),
    "rails": (Faults(rails={("n7", 3): 0.6, ("n33", 0): 0.2}), {"n7", "n33"}),
    "a leaf": (Faults(leaves={"leaf1": 0.6}), {"leaf1"}),
    "a path": (Faults(paths={("leaf0", "leaf2"): 0.6}), {"leaf0", "leaf2"}),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("faults", "named"), FAULTS.values(), ids=FAULTS)
def test_faults_of_a_simulated_fabric_are_named_as_what_they_are(faults: Faults, named: set | None, seed: int) -> None:
    """Everything that is at fault and nothing else, and nobody is left open."""
    sites = sites_of(60)
    strategy = Adaptive(sites, seed=str(seed))
    played = play(strategy, Fabric(sites, faults, 0.02, lots_of(str(seed))))
    diagnosis = strategy.diagnose(played.runs)
    assert {name for culprit in diagnosis.culprits for name in culprit.of} == (named or set(faults.nodes))
    assert diagnosis.inconclusive == ()


SHORT = "n5"
"""A node that has seven devices where all others have eight."""


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        (Faults(rails={("n9", 3): 0.4}), {(Part.RAIL, "n9", (3,))}),
        (Faults(links={"n9": 0.4}), {(Part.NODE_LINK, "n9", ())}),
        (Faults(links={SHORT: 0.4}), {(Part.NODE_LINK, SHORT, ())}),
        (Faults(nodes={SHORT: 0.4}, rails={("n9", 3): 0.4}), {(Part.NODE, SHORT, ()), (Part.RAIL, "n9", (3,))}),
    ],
    ids=["rail", "link", "its own link", "itself and a rail"],
)
@pytest.mark.parametrize("seed", range(5))
def test_a_node_that_is_short_of_devices_hides_no_fault(faults: Faults, expected: set, seed: int) -> None:
    """What is at fault is named as what it is, and nobody asks for rails where there are none."""
    sites = sites_of(64)
    nodes = {name: node_at(site, devices=7 if name == SHORT else 8) for name, site in sites.items()}
    plan = plan_sweep(SweepRequested(str(seed), SweepRequest(check="collective")), nodes, {})
    strategy = Adaptive(SweepEvidence(plan).sites, plan.abilities, plan.id)
    played = play(strategy, Fabric(sites, faults, 0.02, lots_of(str(seed))))
    assert not any(SHORT in probe.members for probes in played.rounds for probe in probes if probe.by_rail)
    diagnosis = strategy.diagnose(played.runs)
    assert {(culprit.part, *culprit.of, culprit.rails) for culprit in diagnosis.culprits} == expected
    assert diagnosis.inconclusive == ()


@settings(max_examples=60)
@given(
    st.integers(4, 40),
    st.floats(0.0, 0.05),
    st.sets(st.integers(0, 39), max_size=6),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_no_healthy_node_is_convicted(count: int, noise: float, bad: set[int], seed: int, alone: bool) -> None:
    """Whatever is wrong with others and however noisy the fabric is."""
    sites, lots = sites_of(count), lots_of(str(seed))
    nodes = {f"n{number}": lots.choice([0.0, lots.uniform(0.1, 0.7)]) for number in bad if number < count}
    strategy = Adaptive(sites, abilities=CheckAbilities(alone=alone, by_rail=alone), seed=str(seed))
    played = play(strategy, Fabric(sites, Faults(nodes=nodes), noise, lots))
    diagnosis = strategy.diagnose(played.runs)
    assert diagnosis.convicted <= nodes.keys()
