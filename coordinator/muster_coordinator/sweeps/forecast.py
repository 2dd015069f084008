"""The forecast of a planned sweep: its groups and cost, round 1 exactly, the rest as a range.

The idea: round 1 is known in advance. The number of further rounds depends on the results of the runs. The lower end
assumes that every group passes. The upper end assumes that every round of the strategy runs, with all nodes. Neither
end exceeds the limits of the sweep.

Example: 16 nodes in two leaves, strategy adaptive, 10 s for each group. Round 1 has 8 pairs: 160 node-seconds, 10 s. If
all pass, two pairs follow in round 2: 200 node-seconds, 20 s. All 8 rounds of the strategy take 1,280 node-seconds and
80 s. With at most 4 nodes at once, the 8 pairs of round 1 run in 4 waves, and round 1 takes 40 s.

The forecast plans round after round as the sweep would, up to MOST_FORESEEN groups.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from muster.model import Data, Seconds, TotalSeconds
from muster_coordinator.localize.strategies.strategy import RoundPlanner, Strategy
from muster_coordinator.model.probes import GroupRun, RunOutcome
from muster_coordinator.sweeps.cost import SweepCost
from muster_coordinator.sweeps.formation import Formation, formations
from muster_coordinator.sweeps.plan import SweepPlan
from muster_coordinator.sweeps.sweep_evidence import SweepEvidence

MOST_FORESEEN = 20_000
"""Groups up to which rounds are planned ahead, which takes a second. A round robin can have millions."""

DRAWN_AT_RANDOM = frozenset({Strategy.ADAPTIVE, Strategy.PAIRS})
"""Strategies that draw the groups of the first round at random: another sweep of the same nodes has other groups."""


class ForecastGroup(Data):
    """A group of round 1. Groups of the same `wave`, counted from 1, run at the same time."""

    members: tuple[str, ...]
    reason: str
    by_rail: bool = False
    wave: int


class Cost(Data):
    """The cost of rounds: node-seconds, and the seconds from the first invitation to the last result."""

    rounds: int
    node_s: TotalSeconds
    duration_s: TotalSeconds


class Forecast(Data):
    """The forecast of a sweep: the groups of round 1 and their cost (`first`), and the range for the whole sweep.

    `least` is the cost if everything passes, `most` the cost of all rounds that strategy and limits allow. A group is
    expected to take `group_s` seconds including its start. A run is ended after `timeout_s` seconds. `left_over` are
    the nodes in no group of round 1. `absent` are selected nodes that cannot take part, each with the reason.
    """

    check: str
    strategy: str
    nodes: tuple[str, ...]
    absent: dict[str, str] = {}
    group_s: TotalSeconds
    timeout_s: Seconds
    groups: tuple[ForecastGroup, ...]
    left_over: tuple[str, ...] = ()
    first: Cost
    least: Cost
    most: Cost
    warnings: tuple[str, ...] = ()


def forecast(plan: SweepPlan) -> Forecast:
    """The forecast for a sweep that begins now."""
    planner = SweepEvidence(plan).planner
    wanted = formations(planner.next_groups((), frozenset(plan.absent)))
    rounds = _if_all_pass(plan, planner, wanted)
    first = _cost(plan, rounds[:1])
    in_groups = {node for groups in rounds[:1] for group in groups for node in group.members}
    return Forecast(
        check=plan.task.check,
        strategy=plan.strategy,
        nodes=plan.nodes,
        absent=dict(plan.absent),
        group_s=plan.task.expected_s,
        timeout_s=plan.task.timeout_s,
        groups=tuple(group for groups in rounds[:1] for group in _groups(plan, groups)),
        left_over=tuple(node for node in plan.nodes if node not in in_groups),
        first=first,
        least=_cost(plan, rounds),
        most=_most(plan, planner, wanted, first),
        warnings=tuple(_warnings(plan, wanted, rounds)),
    )


def _if_all_pass(plan: SweepPlan, planner: RoundPlanner, wanted: list[Formation]) -> list[list[Formation]]:
    """The rounds of a sweep in which every group passes, up to MOST_FORESEEN groups."""
    rounds: list[list[Formation]] = []
    runs: list[GroupRun] = []
    cost = SweepCost(plan.task)
    most = _most_rounds(plan, planner)
    while len(rounds) < most and len(runs) < MOST_FORESEEN:
        if not (groups := cost.affordable(wanted, plan.limits.node_s)):
            break
        rounds.append(groups)
        cost.spent_node_s += _node_s(plan, groups)
        runs += [_passing(group, f"{len(rounds)}.{number}") for number, group in enumerate(groups)]
        wanted = formations(planner.next_groups(tuple(runs), frozenset(plan.absent)))
    return rounds


def _passing(group: Formation, id: str) -> GroupRun:
    rails = (1.0,) if group.by_rail else ()
    return GroupRun(group=id, members=group.members, outcome=RunOutcome.GOOD, objective=1.0, rails=rails)


def _groups(plan: SweepPlan, groups: Sequence[Formation]) -> Iterator[ForecastGroup]:
    for group, wave in zip(groups, _waves(plan, groups), strict=True):
        yield ForecastGroup(members=group.members, reason=group.reason, by_rail=group.by_rail, wave=wave)


def _waves(plan: SweepPlan, groups: Iterable[Formation]) -> list[int]:
    """The wave of each group if all take equally long. A sweep forms groups in order while the limit allows."""
    most = plan.limits.nodes or math.inf
    waves: list[int] = []
    wave, taken = 1, 0
    for group in groups:
        if taken and taken + len(group.members) > most:
            wave, taken = wave + 1, 0
        taken += len(group.members)
        waves.append(wave)
    return waves


# Costs


def _cost(plan: SweepPlan, rounds: Sequence[Sequence[Formation]]) -> Cost:
    waves = sum(max(_waves(plan, groups), default=0) for groups in rounds)
    node_s = sum(_node_s(plan, groups) for groups in rounds)
    return Cost(rounds=len(rounds), node_s=node_s, duration_s=waves * plan.task.expected_s)


def _most(plan: SweepPlan, planner: RoundPlanner, wanted: Sequence[Formation], first: Cost) -> Cost:
    """The cost if every allowed round runs with all nodes and takes as long as the first."""
    if not first.rounds:
        return first
    group_s, rounds = plan.task.expected_s, _most_rounds(plan, planner)
    waves = rounds * max(_waves(plan, wanted))
    most = Cost(rounds=rounds, node_s=rounds * len(plan.nodes) * group_s, duration_s=waves * group_s)
    return most if plan.limits.node_s is None else _within(plan.limits.node_s, most, first, group_s)


def _within(limit_node_s: float, most: Cost, first: Cost, group_s: float) -> Cost:
    """`most` within a limit of node-seconds. After round 1, the duration is longest if each round has one node."""
    left_s = limit_node_s - first.node_s
    return Cost(
        rounds=min(most.rounds, 1 + int(left_s // group_s)),
        node_s=min(most.node_s, limit_node_s),
        duration_s=min(most.duration_s, first.duration_s + left_s),
    )


def _most_rounds(plan: SweepPlan, planner: RoundPlanner) -> int:
    return min(planner.max_rounds, plan.limits.rounds or planner.max_rounds)


def _node_s(plan: SweepPlan, groups: Iterable[Formation]) -> float:
    return sum(len(group.members) for group in groups) * plan.task.expected_s


# Warnings


def _warnings(plan: SweepPlan, wanted: Sequence[Formation], rounds: Sequence[Sequence[Formation]]) -> Iterator[str]:
    yield "a busy node declines and is left out; the coordinator learns this only when the sweep asks it"
    if plan.strategy in DRAWN_AT_RANDOM:
        yield "groups are drawn at random when a sweep begins: the sweep will have other groups of the same kind"
    if (begun := sum(map(len, rounds[:1]))) < len(wanted):
        yield f"max_node_s is enough for {begun} of the {len(wanted)} groups of round 1"
    if sum(map(len, rounds)) >= MOST_FORESEEN:
        yield f"planned ahead up to round {len(rounds)} only: more rounds may follow even if everything passes"
