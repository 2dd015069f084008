"""Whole simulated fleets under quarantine: whatever fails, the promises are kept and all comes to what it should be.

What must hold after every event stands in the simulation itself: budgets, evidence, and whose word counts.
"""

from collections.abc import Callable
from typing import Any

import pytest
from tests.lots import seeds

Simulate = Callable[..., Any]


@pytest.mark.parametrize("chunk", seeds(4))
def test_whatever_happens_every_promise_is_kept(
    simulate: Simulate, run_life: Any, calm_down_and_check: Any, chunk: int
) -> None:
    """Nobody goes beyond the budget or without proof, and in the end all is as it should be.

    In 100 fleets, and in 1,000 with MUSTER_SEEDS=10.
    """
    for seed in range(25 * chunk, 25 * (chunk + 1)):
        world = simulate(seed)
        run_life(world, 120)
        calm_down_and_check(world)


@pytest.mark.parametrize("chunk", seeds(1))
def test_modes_may_change_at_any_time(simulate: Simulate, run_life: Any, calm_down_and_check: Any, chunk: int) -> None:
    """A dry run changes nothing, observe mode tells nobody, and what was really cordoned before comes back."""
    for seed in range(20 * chunk, 20 * (chunk + 1)):
        world = simulate(seed, nodes=1 + seed % 13)
        run_life(world, 150, the_mode_changes=3)
        world.crash(world.settings.model_copy(update={"mode": "enforce"}))
        calm_down_and_check(world)


@pytest.mark.parametrize("chunk", seeds(1))
def test_returns_that_fail_make_no_room(
    simulate: Simulate, run_life: Any, calm_down_and_check: Any, chunk: int
) -> None:
    """Where actors mostly fail and people often release, no more nodes are out at the scheduler than may be."""
    for seed in range(20 * chunk, 20 * (chunk + 1)):
        world = simulate(seed, nodes=4 + seed % 9, faults=0.8)
        run_life(world, 120, it_is_held_or_released=4)
        calm_down_and_check(world)
