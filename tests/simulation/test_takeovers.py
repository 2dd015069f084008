"""Leaders die or stand still at any moment of a sweep: every promise is kept over all of them."""

from typing import Any

import pytest
from tests.lots import seeds
from tests.simulation.conftest import Simulate
from tests.simulation.test_fleet_simulation import check_nothing_is_lost, ended_sweep, named

WORLDS = 5
TAKEOVERS_OF_A_WORLD = 25
"""Each world sweeps until it has had this many: 125 in all, and 1,250 with MUSTER_SEEDS=10."""

LONGEST_SWEEPS = 60


def check_orders(agent: Any) -> None:
    """No order is obeyed twice, and none of an earlier leader after one of a later."""
    ids = [order.id for order in agent.obeyed]
    assert len(ids) == len(set(ids))
    epochs = [order.epoch for order in agent.obeyed]
    assert epochs == sorted(epochs)
    assert len(set(epochs)) > 1, "it has obeyed only one leader: nothing was tried"


@pytest.mark.parametrize("seed", seeds(WORLDS))
def test_whoever_leads_every_promise_is_kept(simulate: Simulate, seed: int) -> None:
    """Sweeps end, nobody healthy is convicted, no run is lost, and none is stored twice."""
    world = simulate(
        seed,
        slow={"node-2"},
        loss=0.02,
        duplication=0.1,
        delay_s=0.5,
        coordinator_crashes=0.03,
        coordinator_pauses=0.004,
    )
    for _ in range(LONGEST_SWEEPS):
        record = ended_sweep(world, "pairs")
        assert named(record) <= {"node-2"}, record.model_dump_json(indent=1)
        assert record.failed_links == ()
        if world.coordinator.takeovers >= TAKEOVERS_OF_A_WORLD:
            break
    assert world.coordinator.takeovers >= TAKEOVERS_OF_A_WORLD
    check_nothing_is_lost(world)
    for agent in world.agents.values():
        check_orders(agent)
