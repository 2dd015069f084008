"""What explanations say of the runs of simulated sweeps is what the diagnosis made of these runs."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.lots import seeds

from muster.model import Topology
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.model.probes import GroupRun, Site
from muster_coordinator.model.sweep_records import Ending, SweepRecord
from muster_coordinator.sweeps.group_run import beside_of, group_run_of
from muster_coordinator.views.sweeps.amounts import amounts_of
from muster_coordinator.views.sweeps.explained import SweepStanding
from muster_coordinator.views.sweeps.explanation import explain
from muster_coordinator.views.sweeps.node_in_sweep import CaseFile

Simulate = Callable[..., Any]

BAD_LUCK: list[dict[str, Any]] = [
    {"slow": {"node-2"}, "loss": 0.03, "coordinator_crashes": 0.01},
    {"slow": {"node-1"}, "crashing": {"node-5"}},
    {"links": [("node-1", "node-4")], "declining": 0.02},
    {"crashing": {"node-3"}, "agent_crashes": 0.002, "declining": 0.02},
    {"slow": {"node-2", "node-7"}, "crashing": {"node-5"}, "declining": 0.05, "coordinator_crashes": 0.02},
]


def ended(world: Any, strategy: str) -> SweepRecord:
    name = world.sweep(strategy)
    for _ in range(1500):
        world.run(1)
        record: SweepRecord = world.coordinator.sweeps[name]
        if record.ended_at is not None:
            return record
    raise AssertionError(f"sweep {name} did not end")


def evidence_of(record: SweepRecord, places: Mapping[str, Topology]) -> GroupEvidence:
    runs: list[GroupRun] = []
    for stage in record.rounds:
        counting = [it for it in stage.groups if not it.formed_again and it.ending is not Ending.INTERRUPTED]
        runs += (group_run_of(it, beside=beside) for it, beside in zip(counting, beside_of(counting), strict=True))
    sites = {node: Site(node, places[node].rack, places[node].leaf) for node in record.nodes}
    return GroupEvidence(sites, tuple(runs))


@pytest.mark.parametrize("strategy", ["adaptive", "pairs", "bisect"])
@pytest.mark.parametrize("seed", seeds(len(BAD_LUCK)))
def test_runs_are_told_as_they_were_judged(simulate: Simulate, seed: int, strategy: str) -> None:
    """Which speak against whom, which clear, and what is typical; nobody is told to be what the evidence denies."""
    world = simulate(seed, nodes=8 + seed % 5, devices=seed % 3, rack=4 * (seed % 2), **BAD_LUCK[seed % len(BAD_LUCK)])
    record = ended(world, strategy)
    places = world.coordinator.fleet.places(record.nodes)
    evidence = evidence_of(record, places)
    levels = [evidence.thresholds.of(run) for run in evidence.runs]
    groups = [group for stage in record.rounds for group in stage.groups if group.is_evidence]
    amounts = amounts_of(record, places)
    assert [*map(amounts.typical, groups)] == [None if level is None else level.typical for level in levels]
    for node in record.nodes:
        runs, history = CaseFile(record, node, places).runs, evidence.histories[node]
        assert [run.group.id for run in runs if node in run.charged] == [run.group for run in history.bad]
        assert [run.group.id for run in runs if run.passed] == [run.group for run in history.good]
        told = explain(record, node, places)
        assert (told.standing is SweepStanding.CLEARED) == (node in record.cleared_nodes)
        if told.standing is SweepStanding.CLEARED:
            assert ": it passed " in told.conclusion
