"""Simulated fleets under quarantine; see `world`."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.simulation.quarantine.world import World

from muster.quarantine_settings import AcceptanceTest, BudgetSettings, QuarantineSettings, ReturnSettings

RETURNING = ReturnSettings(passes=2, pause_s=10, wait_s=60, longest_wait_s=600, times=3)


def settings_of(lot: random.Random, mode: str = "enforce") -> QuarantineSettings:
    """Settings within what is sensible, as a seed draws them."""
    budget = BudgetSettings(
        share=lot.choice(["10%", "30%", "100%"]),
        nodes=lot.choice([None, None, 3]),
        domain_share=lot.choice(["50%", "100%"]),
        per_minute=lot.choice([2.0, 6.0, 600.0]),
    )
    return QuarantineSettings(
        mode=mode,  # type: ignore[arg-type]  # drawn from the modes
        budget=budget,
        returning=RETURNING,
        tests=lot.choice([(), (AcceptanceTest(check="gemm"),)]),
        keep_new_out=lot.random() < 0.3,
    )


@pytest.fixture
def simulate() -> Callable[..., World]:
    """A world of so many nodes, with settings that the seed draws unless they are given."""

    def build(seed: int, nodes: int | None = None, **given: Any) -> World:
        lot = random.Random(seed)
        size = nodes or lot.choice([1, 2, 3, 4, 5, 6, 8, 12, 16, 60 if seed % 3 == 0 else 7])
        settings = given.pop("settings", None) or settings_of(lot, given.pop("mode", "enforce"))
        return World(seed, settings, size, **given)

    return build
