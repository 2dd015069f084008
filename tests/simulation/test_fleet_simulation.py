"""Whole simulated fleets: what the coordinator finds, and what always holds, however bad the network is.

The invariants of every step stand in the simulation itself: groups are disjoint, no run is stored twice, what has
ended stays as it is.
"""

from collections.abc import Callable
from typing import Any

import pytest

from muster.model import Verdict
from muster_coordinator.sweep_records import SweepRecord

Simulate = Callable[..., Any]

LONGEST_SWEEP_S = 6 * 2 * (5 + 60 + 25 + 2)
"""Every round, and the one that forms its groups again, with every phase at its deadline."""


def ended_sweep(world: Any, strategy: str = "pairs") -> SweepRecord:
    """A sweep over the world, from its request to its end."""
    name = world.sweep(strategy)
    for _ in range(LONGEST_SWEEP_S):
        world.run(1)
        record: SweepRecord = world.coordinator.sweeps[name]
        if record.ended_at is not None:
            return record
    raise AssertionError(f"sweep {name} did not end within {LONGEST_SWEEP_S} s")


def named(record: SweepRecord) -> set[str]:
    return {failed.node for failed in record.failed_nodes}


@pytest.mark.parametrize("seed", range(40))
def test_on_a_good_network_exactly_the_bad_nodes_are_named(simulate: Simulate, seed: int) -> None:
    """A slow node and one whose ranks crash are convicted, by three partners at most; all others are cleared."""
    world = simulate(seed, nodes=8 + seed % 5, slow={"node-2"}, crashing={"node-5"})
    record = ended_sweep(world)
    assert named(record) == {"node-2", "node-5"}
    assert set(record.cleared_nodes) == set(record.nodes) - {"node-2", "node-5"}
    assert (record.failed_links, record.inconclusive, record.suspects) == ((), (), ())
    assert record.verdict is Verdict.FAIL
    assert len(record.rounds) <= 4, "three partners, for a node that may have waited for the second round"


@pytest.mark.parametrize("seed", range(40))
def test_a_bad_link_is_told_from_bad_nodes(simulate: Simulate, seed: int) -> None:
    """A link that was tried is convicted alone, with both its nodes cleared; one that was not tried harms nobody."""
    world = simulate(seed, nodes=6, links=[("node-1", "node-4")])
    record = ended_sweep(world)
    assert record.failed_nodes == ()
    assert set(record.cleared_nodes) == set(record.nodes)
    assert {link.between for link in record.failed_links} <= {("node-1", "node-4")}
    tried = [group for stage in record.rounds for group in stage.groups if set(group.members) == {"node-1", "node-4"}]
    assert bool(record.failed_links) == bool(tried)


@pytest.mark.parametrize("strategy", ["single", "pairs", "whole"])
@pytest.mark.parametrize("seed", range(10))
def test_a_healthy_fleet_passes(simulate: Simulate, seed: int, strategy: str) -> None:
    """Noise within bounds convicts nobody."""
    record = ended_sweep(simulate(seed, nodes=7), strategy)
    assert record.verdict is Verdict.PASS
    assert set(record.cleared_nodes) == set(record.nodes)


@pytest.mark.parametrize("seed", range(150))
def test_whatever_happens_every_promise_is_kept(simulate: Simulate, seed: int) -> None:
    """Under loss, repeats, reordering and crashes sweeps end, nobody healthy is convicted and no run is lost."""
    world = simulate(
        seed,
        slow={"node-2"},
        loss=0.03,
        duplication=0.1,
        delay_s=0.8,
        agent_crashes=0.002,
        coordinator_crashes=0.01,
    )
    for strategy in ("pairs", "whole", "pairs"):
        record = ended_sweep(world, strategy)
        assert named(record) <= {"node-2"}, record.model_dump_json(indent=1)
        assert record.failed_links == ()
        settled = [*record.cleared_nodes, *named(record), *record.inconclusive]
        assert sorted(settled) == sorted(record.nodes)
    world.weather = type(world.weather)()
    world.run(90)
    for agent in world.agents.values():
        assert agent.group is None, "a member was not released"
        assert agent.outbox == []
        stored = [seq for node, _, seq in world.coordinator.runs if node == agent.name]
        assert stored == list(range(1, agent.sequence + 1))
