"""Simulated sweeps in which a twentieth of all nodes lies in everything that it reports.

Each seed gives another sweep: other liars, lies, claimed places and partners.
"""

import random

import pytest
from tests.lots import seeds
from tests.simulation.liars import PLACES, STRATEGIES, TOGETHER, Placed, at_a_leaf_of_their_own, nowhere, sweep

SIZES = (16, 40, 232)
STYLES = (*TOGETHER, "any")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_liars_convict_no_healthy_node(strategy: str, style: str) -> None:
    """Nor a healthy leaf or path. If they leave a node suspected, one of them is suspected too."""
    lots = random.Random(f"sizes {strategy} {style}")
    for seed in seeds(2):
        for placed in PLACES:
            nodes = lots.choice(SIZES)
            ended = sweep(f"{seed}", nodes, strategy=strategy, style=style, placed=placed, alone=seed % 2 == 0)
            case = (seed, nodes, placed.__name__)
            assert not ended.accused, case
            assert not ended.fabric_accused, case
            assert not ended.unnoticed, case


@pytest.mark.parametrize(
    ("seed", "nodes", "placed"), [("2001", 232, nowhere), ("2016", 232, nowhere), ("2019", 128, at_a_leaf_of_their_own)]
)
def test_a_liar_does_not_leave_its_last_victim_behind(seed: str, nodes: int, placed: Placed) -> None:
    """It crashes beside a node near the end of the sweep, and passes with another liar in the last round."""
    assert not sweep(f"more-{seed}", nodes, strategy="always", style="any", placed=placed).unnoticed


@pytest.mark.parametrize("placed", PLACES[2:])
@pytest.mark.parametrize("strategy", ["always", "first partners", "sleeper"])
def test_liars_convict_no_healthy_node_in_a_large_fleet(strategy: str, placed: Placed) -> None:
    """In which 51 of 1024 nodes work together."""
    ended = sweep("large", 1024, strategy=strategy, style="any", placed=placed)
    assert not ended.accused
    assert not ended.fabric_accused
    assert not ended.unnoticed


@pytest.mark.parametrize("style", ["slow", "fail", "crash", "crash partner", "crash all", "echo"])
@pytest.mark.parametrize("nodes", [16, 64])
@pytest.mark.parametrize("seed", range(3))
def test_nodes_that_always_lie_are_found(seed: int, nodes: int, style: str) -> None:
    """Each liar that met an honest node is convicted or inconclusive in the end."""
    ended = sweep(f"{seed}", nodes, strategy="always", style=style, placed=PLACES[0])
    met = set().union(*ended.fabric.hurt.values())
    assert met
    assert met <= ended.suspected


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(4))
def test_liars_hide_no_slow_node(seed: int, strategy: str) -> None:
    """Slow honest nodes are convicted, or at least not cleared."""
    ended = sweep(f"{seed}", 128, strategy=strategy, style="any", placed=PLACES[0], faults=4)
    slow = set(ended.fabric.faults.nodes)
    assert slow <= ended.suspected
    assert len(slow & ended.diagnosis.convicted) >= 3
    assert ended.accused <= slow
