"""A simulation of sweeps in which a twentieth of all nodes lies in everything that it can say.

Each sweep has another fleet: who lies, how, where it says it stands, and who meets whom are drawn by seed.
"""

import itertools

import pytest
from tests.simulation.liars import PLACES, STRATEGIES, TOGETHER, Placed, sweep

SEEDS = 2
STYLES = (*TOGETHER, "any")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nobody_is_convicted_by_the_word_of_liars(strategy: str, style: str) -> None:
    """No healthy node, leaf or path; and of those who leave anybody suspected, one is suspected itself."""
    for seed, nodes in itertools.product(range(SEEDS), (16, 40, 232)):
        for placed in PLACES:
            ended = sweep(f"{seed}", nodes, strategy=strategy, style=style, placed=placed, alone=seed % 2 == 0)
            case = (seed, nodes, placed.__name__)
            assert not ended.accused, case
            assert not ended.fabric_accused, case
            assert not ended.untouched, case


@pytest.mark.parametrize("placed", PLACES[2:])
@pytest.mark.parametrize("strategy", ["always", "whoever is met first", "sleeper"])
def test_nor_in_a_large_fleet(strategy: str, placed: Placed) -> None:
    """Where 51 of 1024 nodes know of each other."""
    ended = sweep("large", 1024, strategy=strategy, style="any", placed=placed)
    assert not ended.accused
    assert not ended.fabric_accused
    assert not ended.untouched


@pytest.mark.parametrize("style", ["slow", "fail", "crash", "crash partner", "crash all", "echo"])
@pytest.mark.parametrize("nodes", [16, 64])
@pytest.mark.parametrize("seed", range(3))
def test_who_always_lies_is_found(seed: int, nodes: int, style: str) -> None:
    """Each of them is convicted or inconclusive in the end, unless it was met by friends only."""
    ended = sweep(f"{seed}", nodes, strategy="always", style=style, placed=PLACES[0])
    met = set().union(*ended.fabric.hurt.values())
    assert met <= ended.suspected


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(4))
def test_liars_hide_nobody_who_is_slow(seed: int, strategy: str) -> None:
    """Nodes that are slow themselves are convicted beside them, or at least not cleared."""
    ended = sweep(f"{seed}", 128, strategy=strategy, style="any", placed=PLACES[0], faults=4)
    slow = set(ended.fabric.faults.nodes)
    assert slow <= ended.suspected
    assert len(slow & ended.judgement.failed) >= 3
    assert ended.accused <= slow
