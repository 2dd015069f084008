"""How long it takes until every rank of a group is at its rendezvous, and until it is let go."""

import argparse
import time
from pathlib import Path

from benchmarks.figures import Figure, median_of
from benchmarks.fleet import Fleet
from benchmarks.sweep_agents import fleet_of

from muster.model import Metric
from muster_coordinator.model.sweep_records import GroupRecord

MAX_P50_MS = 300.0
MAX_P99_MS = 1_000.0
STRATEGIES = ("pairs", "whole")


async def formation(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of every number of agents and of every strategy."""
    figures = []
    for agents in options.agents:
        async with fleet_of(agents, directory / str(agents)) as fleet:
            for strategy in STRATEGIES:
                figures += await formed(fleet, strategy, options.formations, options.work_s)
    return figures


async def formed(fleet: Fleet, strategy: str, groups: int, work_s: float) -> list[Figure]:
    """The figures of at least this number of groups, which one sweep after the other forms of the whole fleet."""
    arrived_ms: list[float] = []
    released_ms: list[float] = []
    while len(arrived_ms) < groups:
        asked_at = time.time()
        sweep = await fleet.swept(check="noop-group", strategy=strategy, params={"work_s": work_s})
        for group in sweep.rounds[0].groups:
            arrived_ms.append(1e3 * (last(group, "arrived_at") - asked_at))
            released_ms.append(1e3 * (last(group, "released_at") - asked_at))
    where = f"{len(fleet.agents)} agents, {strategy}"
    median = median_of(f"formation, {where}", "ms", arrived_ms, ("<=", MAX_P50_MS))
    return [
        median,
        Figure(what=f"p99 of {median.what}", unit="ms", value=median.spread["p99"], target=("<=", MAX_P99_MS)),
        median_of(f"from the request until let go, {where}", "ms", released_ms),
    ]


def last(group: GroupRecord, metric: str) -> float:
    """The latest time that any rank of the group tells, in seconds since the epoch."""
    return max(_moment(rank[metric]) for place in group.places for rank in place.measured)


def _moment(value: Metric) -> float:
    assert isinstance(value, float), "the check tells one time for each rank"
    return value
