"""Whole simulated fleets: what the coordinator finds, and what always holds, however bad the network is.

The invariants of every step stand in the simulation itself: groups are disjoint, no run is stored twice, what has
ended stays as it is.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.lots import seeds

from muster.model import Verdict
from muster_coordinator.localize.strategies.pairs import Pairing
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.sweeps.recovery import AfterRestart

Simulate = Callable[..., Any]

LONGEST_SWEEP_S = 6 * 2 * (5 + 60 + 25 + 2)
"""Every round, and the one that forms its groups again, with every phase at its deadline."""


def ended_sweep(world: Any, strategy: str = "pairs") -> SweepRecord:
    """A sweep over the world, from its request to its end."""
    name = world.sweep(strategy)
    for _ in range(LONGEST_SWEEP_S):
        world.run(1)
        if world.coordinator.summary(name).ended_at is not None:
            record: SweepRecord = world.coordinator.sweeps[name]
            return record
    raise AssertionError(f"sweep {name} did not end within {LONGEST_SWEEP_S} s")


def named(record: SweepRecord) -> set[str]:
    return {failed.node for failed in record.failed_nodes}


@pytest.mark.parametrize("seed", seeds(3))
def test_on_a_good_network_exactly_the_bad_nodes_are_named(simulate: Simulate, seed: int) -> None:
    """A slow node and one whose ranks crash are convicted, by five partners at most; all others are cleared."""
    world = simulate(seed, nodes=8 + seed % 5, slow={"node-2"}, crashing={"node-5"})
    record = ended_sweep(world)
    assert named(record) == {"node-2", "node-5"}
    assert set(record.cleared_nodes) == set(record.nodes) - {"node-2", "node-5"}
    assert (record.failed_links, record.inconclusive, record.suspects) == ((), (), ())
    assert record.verdict is Verdict.FAIL
    assert len(record.rounds) <= 6, "five partners, for a node that may have waited for the second round"


@pytest.mark.parametrize("seed", seeds(4))
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
@pytest.mark.parametrize("seed", seeds(3))
def test_a_healthy_fleet_passes(simulate: Simulate, seed: int, strategy: str) -> None:
    """Noise within bounds convicts nobody."""
    record = ended_sweep(simulate(seed, nodes=7), strategy)
    assert record.verdict is Verdict.PASS
    assert set(record.cleared_nodes) == set(record.nodes)


@pytest.mark.parametrize("seed", seeds(10))
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
    check_nothing_is_lost(world)


def check_nothing_is_lost(world: Any) -> None:
    """In good weather every member is released soon, and each run is stored once."""
    world.weather = type(world.weather)()
    world.run(120)
    for agent in world.agents.values():
        assert agent.group is None, "a member was not released"
        assert agent.outbox == []
        stored = [seq for node, _, seq in world.coordinator.runs if node == agent.name]
        assert stored == list(range(1, agent.sequence + 1))


# Several sweeps at once


BAD_WEATHER = {
    "loss": 0.03,
    "duplication": 0.1,
    "delay_s": 0.8,
    "declining": 0.01,
    "echoes": 0.2,
    "agent_crashes": 0.002,
    "coordinator_crashes": 0.01,
}
LONGEST_WAIT_S = 4 * 3600
"""Far beyond what any of the sweeps takes, and far below for ever."""


def to_end(world: Any, *sweeps: str) -> list[SweepRecord]:
    """The sweeps when all of them have ended."""
    for _ in range(LONGEST_WAIT_S):
        if all(world.coordinator.summary(sweep).ended_at is not None for sweep in sweeps):
            return [world.coordinator.sweeps[sweep] for sweep in sweeps]
        world.run(1)
    raise AssertionError(f"sweeps {sweeps} did not end within {LONGEST_WAIT_S} s")


def any_sweep(lot: random.Random, nodes: int, devices: int) -> dict[str, Any]:
    """A valid request by lot: how, with whom, how urgent, and within which limits."""
    strategy = lot.choice([*Strategy])
    whole = strategy in {Strategy.WHOLE, Strategy.BISECT}
    pairings = [pairing for pairing in Pairing if devices or pairing is not Pairing.RAIL]
    return {
        "strategy": strategy,
        "pairing": lot.choice(pairings) if strategy is Strategy.PAIRS else None,
        "passes": (passes := lot.choice([1, 1, 2])),
        "select": lot.choice([None, "rack=rack-0,rack-1", "rack=rack-1,rack-2"]),
        "priority": lot.choice([-5, 0, 0, 5]),
        "max_parallel": None if whole else lot.choice([None, "50%", "4", str(nodes)]),
        "max_rounds": lot.choice([None, None, passes, 3]),
        "max_node_s": lot.choice([None, None, 600.0]),
    }


def is_settled(record: SweepRecord, bad: set[str]) -> bool:
    """Whether every node has its place, and none of the healthy ones is convicted."""
    assert named(record) <= bad, record.model_dump_json(indent=1)
    assert (record.failed_links, record.failed_fabric) == ((), ())
    groups = [group for stage in record.rounds for group in stage.groups]
    assert all(group.ending for group in groups)
    assert all(stage.waiting == 0 for stage in record.rounds)
    return sorted([*record.cleared_nodes, *named(record), *record.inconclusive]) == sorted(record.nodes)


@pytest.mark.parametrize("after_restart", AfterRestart)
@pytest.mark.parametrize("seed", seeds(5))
def test_sweeps_that_share_the_fleet_keep_every_promise(
    simulate: Simulate, seed: int, after_restart: AfterRestart
) -> None:
    """Whatever they ask for, whoever crashes, declines or is aborted meanwhile; afterwards every node is free."""
    lot = random.Random(seed)
    nodes, devices = lot.choice([9, 12, 15]), lot.choice([0, 8])
    world = simulate(
        seed,
        nodes=nodes,
        devices=devices,
        rack=4,
        noise=0.05,
        slow={"node-2"},
        crashing={"node-5"},
        after_restart=after_restart,
        **BAD_WEATHER,
    )
    sweeps = []
    for _ in range(4):
        sweeps.append(world.sweep(**any_sweep(lot, nodes, devices)))
        world.run(lot.choice([0, 2, 15]))
        if lot.random() < 0.2 and world.coordinator.summary(sweeps[-1]).ended_at is None:
            world.abort(sweeps[-1])
    assert all(is_settled(record, {"node-2", "node-5"}) for record in to_end(world, *sweeps))
    world.weather = type(world.weather)()
    world.run(90)
    assert {agent.group for agent in world.agents.values()} == {None}
    (record,) = to_end(world, world.sweep("whole"))
    assert [group.members for group in record.rounds[0].groups] == [record.nodes], "a node was not free"


def test_the_more_urgent_of_two_sweeps_ends_first(simulate: Simulate) -> None:
    """Though it was asked for last: the other gets no node for which it waits, however many are invited in turn."""
    world = simulate(1, nodes=512)
    running = world.sweep("whole")
    low, high = world.sweep("pairs", priority=-1), world.sweep("pairs", priority=1)
    first, last, urgent = to_end(world, running, low, high)
    begun = [[group.started_at for group in record.rounds[0].groups] for record in (first, urgent, last)]
    assert max(begun[0]) < min(begun[1])
    assert max(begun[1]) < min(begun[2])


@pytest.mark.parametrize("strategy", Strategy)
def test_an_aborted_sweep_frees_everything_within_three_seconds(simulate: Simulate, strategy: Strategy) -> None:
    """Its agents leave, and the sweep that waits behind it has them all."""
    world = simulate(2, nodes=9, devices=8, rack=3)
    aborted, waiting = world.sweep(strategy), world.sweep("whole")
    world.run(2)
    world.abort(aborted)
    world.run(3)
    groups = {agent.group and agent.group.rpartition("-")[0] for agent in world.agents.values()}
    assert groups == {waiting}


@pytest.mark.parametrize(("strategy", "nodes"), [("whole", 4), ("whole", 512), ("adaptive", 64), ("pairs", 512)])
def test_groups_of_any_size_are_formed(simulate: Simulate, strategy: str, nodes: int) -> None:
    """With eight ranks on each node, in one round when all are healthy."""
    world = simulate(3, nodes=nodes, devices=8, rack=16)
    (record,) = to_end(world, world.sweep(strategy))
    assert record.verdict is Verdict.PASS
    (stage,) = record.rounds
    assert max(len(group.members) for group in stage.groups) == (nodes if strategy == "whole" else 2)
    assert sum(place.ranks or 0 for group in stage.groups for place in group.places) == 8 * nodes
