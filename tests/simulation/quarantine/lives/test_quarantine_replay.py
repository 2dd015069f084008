"""Simulated logs gone through again: the same events lead to the same decisions, byte for byte."""

from collections.abc import Callable
from typing import Any

import pytest

from muster_coordinator.model.quarantine_events import Beginning, Step
from muster_coordinator.quarantine.replay import first_difference

Simulate = Callable[..., Any]


def as_read(log: list[Step]) -> list[Step]:
    """A log when it is read again after it was stored."""
    return [Step.model_validate_json(step.model_dump_json()) for step in log]


@pytest.mark.parametrize("seed", range(60))
def test_a_stored_log_gives_the_same_decisions(simulate: Simulate, live: Any, seed: int) -> None:
    """Although of what has led to nothing it holds only when nodes were looked at, over crashes and at any time."""
    world = simulate(seed, nodes=2 + seed % 11)
    world.now += seed * 0.000_123_4
    live(world, 150, the_coordinator_crashes=0.5, the_log_begins_anew=1, time_passes=12)
    for epoch, log in enumerate(world.logs, 1):
        assert first_difference(as_read(log), epoch) is None


@pytest.mark.parametrize("seed", range(20))
def test_what_led_to_nothing_has_left_nothing_behind(simulate: Simulate, live: Any, seed: int) -> None:
    """Events without a decision may be left out of the log or stand in it: the others come out the same."""
    world = simulate(seed, nodes=2 + seed % 11)
    live(world, 150)
    assert sum(map(len, world.logs)) < sum(map(len, world.whole_logs))
    for epoch, log in enumerate(world.whole_logs, 1):
        assert first_difference(log, epoch) is None


@pytest.mark.parametrize("seed", range(40))
def test_a_log_can_be_gone_through_from_each_of_its_beginnings(simulate: Simulate, live: Any, seed: int) -> None:
    """What lies before need not be kept."""
    world = simulate(seed, nodes=2 + seed % 11)
    live(world, 150, the_log_begins_anew=4)
    for epoch, log in enumerate(world.logs, 1):
        stored = as_read(log)
        begins = [number for number, step in enumerate(stored) if isinstance(step.event, Beginning)]
        for number in begins:
            assert first_difference(stored[number:], epoch) is None
