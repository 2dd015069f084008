"""Adaptive sweeps over whole simulated fleets, of which nobody knows the topology and no node can be tried alone."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.lots import seeds

from muster.model import Verdict
from muster_coordinator.model.sweep_records import SweepRecord, SweepState

Simulate = Callable[..., Any]

LONGEST_SWEEP_S = 8 * 2 * (5 + 60 + 25 + 2)
"""Every round, and the one that forms its groups again, with every phase at its deadline."""


def adaptive_sweep(world: Any) -> SweepRecord:
    """A sweep over the world, from its request to its end."""
    name = world.sweep("adaptive")
    for _ in range(LONGEST_SWEEP_S):
        world.run(1)
        record: SweepRecord = world.coordinator.sweeps[name]
        if record.state is not SweepState.RUNNING:
            return record
    raise AssertionError(f"sweep {name} did not end within {LONGEST_SWEEP_S} s")


def named(record: SweepRecord) -> set[str]:
    return {failed.node for failed in record.failed_nodes}


@pytest.mark.parametrize("seed", seeds(5))
def test_on_a_good_network_exactly_the_bad_nodes_are_named(simulate: Simulate, seed: int) -> None:
    """A slow node and one whose ranks crash are convicted, with reasons; all others are cleared."""
    record = adaptive_sweep(simulate(seed, nodes=8 + seed % 5, slow={"node-2"}, crashing={"node-5"}))
    assert named(record) == {"node-2", "node-5"}
    assert all(failed.reasons and failed.confidence > 0.5 for failed in record.failed_nodes)
    assert set(record.cleared_nodes) == set(record.nodes) - {"node-2", "node-5"}
    assert (record.failed_links, record.inconclusive, record.verdict) == ((), (), Verdict.FAIL)
    assert len(record.rounds) <= 6


@pytest.mark.parametrize("seed", seeds(4))
def test_a_healthy_fleet_passes(simulate: Simulate, seed: int) -> None:
    """The first round takes every node once, an odd one in a group of three; noise of a fifth convicts nobody."""
    record = adaptive_sweep(simulate(seed, nodes=7 + seed % 2))
    assert sorted(node for group in record.rounds[0].groups for node in group.members) == sorted(record.nodes)
    assert (record.verdict, set(record.cleared_nodes)) == (Verdict.PASS, set(record.nodes))
    assert len(record.rounds) <= 3


@pytest.mark.parametrize("seed", seeds(5))
def test_a_bad_link_is_told_from_bad_nodes(simulate: Simulate, seed: int) -> None:
    """A link that was tried is convicted alone, with both its nodes cleared."""
    record = adaptive_sweep(simulate(seed, nodes=6, links=[("node-1", "node-4")]))
    assert record.failed_nodes == ()
    assert set(record.cleared_nodes) == set(record.nodes)
    tried = any(set(group.members) >= {"node-1", "node-4"} for stage in record.rounds for group in stage.groups)
    assert {link.between for link in record.failed_links} == ({("node-1", "node-4")} if tried else set())


@pytest.mark.parametrize("seed", seeds(10))
def test_whatever_happens_nobody_healthy_is_convicted(simulate: Simulate, seed: int) -> None:
    """Under loss, repeats, reordering and crashes sweeps end, and every node is settled or inconclusive."""
    weather = {"loss": 0.03, "duplication": 0.1, "delay_s": 0.8, "agent_crashes": 0.002, "coordinator_crashes": 0.01}
    record = adaptive_sweep(simulate(seed, slow={"node-2"}, **weather))
    assert named(record) <= {"node-2"}, record.model_dump_json(indent=1)
    assert (record.failed_links, record.failed_fabric) == ((), ())
    assert sorted([*record.cleared_nodes, *named(record), *record.inconclusive]) == sorted(record.nodes)
