"""What a planned sweep would do and cost, and how people read it."""

from dataclasses import replace
from typing import Any

import pytest
from tests.cases import cases

from muster_coordinator.localize.strategies.pairs import Pairing
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.probes import CheckAbilities, Site
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.sweeps import forecast as forecasting
from muster_coordinator.sweeps.forecast import Cost, Forecast, forecast
from muster_coordinator.sweeps.formation import GroupTask
from muster_coordinator.sweeps.plan import SweepLimits, SweepPlan
from muster_coordinator.views.sweeps.forecast_text import MOST_GROUPS, forecast_text

TASK = GroupTask(check="collective", params={}, timeout_s=120.0, objective="busbw_gbps", cause="s", expected_s=10.0)


def planned(
    strategy: Strategy, count: int, *, limits: SweepLimits | None = None, task: GroupTask = TASK, **more: Any
) -> SweepPlan:
    """A sweep over nodes in racks of four and leaves of eight, of which each group takes 10 s."""
    sites = tuple(Site(f"n{number}", f"r{number // 4}", f"l{number // 8}") for number in range(count))
    return SweepPlan(
        id="s",
        asked=SweepRequest(check="collective"),
        strategy=strategy,
        task=task,
        nodes=tuple(site.node for site in sites),
        sites=sites,
        abilities=CheckAbilities(),
        limits=limits or SweepLimits(),
        **more,
    )


@cases(
    ("strategy", "least", "most_rounds"),
    [
        (Strategy.SINGLE, Cost(rounds=1, node_s=160, duration_s=10), 4),
        (Strategy.WHOLE, Cost(rounds=1, node_s=160, duration_s=10), 1),
        (Strategy.PAIRS, Cost(rounds=1, node_s=160, duration_s=10), None),
        (Strategy.ADAPTIVE, Cost(rounds=1, node_s=160, duration_s=10), None),
        (Strategy.ROUND_ROBIN, Cost(rounds=15, node_s=15 * 160, duration_s=150), None),
    ],
)
def test_the_range_of_each_strategy(strategy, least, most_rounds):
    """If everything passes, each does what it always does; otherwise it may take all rounds that it has."""
    found = forecast(planned(strategy, 16))
    assert found.first == Cost(rounds=1, node_s=160, duration_s=10)
    assert found.least == least
    assert found.most.rounds >= found.least.rounds
    assert most_rounds is None or found.most.rounds == most_rounds
    assert found.most.node_s == found.most.rounds * 160
    assert found.most.duration_s == found.most.rounds * 10


def test_a_sweep_may_take_more_node_seconds_than_a_year_has():
    """For example a round robin over two thousand nodes, if they announce a check that takes a year."""
    year_s = 366 * 86_400.0
    found = forecast(planned(Strategy.ROUND_ROBIN, 2000, task=replace(TASK, timeout_s=year_s, expected_s=year_s + 20)))
    assert found.most.node_s > found.group_s > year_s


@cases("strategy", Strategy)
@cases("count", [2, 3, 9, 40])
def test_the_groups_of_the_first_round(strategy, count):
    """They are disjoint, each says why, and whoever is in none is left over; the range is one."""
    plan = planned(strategy, count)
    found = forecast(plan)
    members = [node for group in found.groups for node in group.members]
    assert len(members) == len(set(members))
    assert sorted([*members, *found.left_over]) == sorted(plan.nodes)
    assert all(group.reason and group.wave == 1 for group in found.groups)
    assert found.first.node_s <= found.least.node_s <= found.most.node_s
    assert found.first.duration_s <= found.least.duration_s <= found.most.duration_s


def test_passes_repeat_the_rounds():
    """Also where everything passes."""
    assert forecast(planned(Strategy.PAIRS, 16, passes=3)).least == Cost(rounds=3, node_s=480, duration_s=30)


def test_pairs_that_exchange_by_rail_say_so():
    """A group's way of running is part of the plan."""
    found = forecast(planned(Strategy.PAIRS, 16, pairing=Pairing.RAIL))
    assert all(group.by_rail for group in found.groups)
    assert "by rail" in forecast_text(found)


@pytest.mark.parametrize(
    ("nodes", "waves"),
    [
        (16, [1, 1, 1, 1, 1, 1, 1, 1]),
        (5, [1, 1, 2, 2, 3, 3, 4, 4]),
        (2, [1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_waves_are_as_large_as_the_limit_allows(nodes, waves):
    """So many nodes at once, and the duration says what that costs."""
    found = forecast(planned(Strategy.PAIRS, 16, limits=SweepLimits(nodes=nodes)))
    assert [group.wave for group in found.groups] == waves
    assert found.first == Cost(rounds=1, node_s=160, duration_s=10 * waves[-1])
    assert found.most.duration_s == found.most.rounds * 10 * waves[-1]


def test_a_group_that_is_larger_than_the_limit_runs_alone():
    """As in the sweep itself."""
    assert [group.wave for group in forecast(planned(Strategy.WHOLE, 16, limits=SweepLimits(nodes=4))).groups] == [1]


def test_a_limit_of_rounds_ends_the_range():
    """Also when nothing fails."""
    found = forecast(planned(Strategy.ROUND_ROBIN, 16, limits=SweepLimits(rounds=3)))
    assert (found.least.rounds, found.most.rounds) == (3, 3)
    assert found.most.node_s == 480


def test_a_limit_of_node_seconds_ends_the_range():
    """What is left after the first round buys at most so many runs of one node, one after the other."""
    found = forecast(planned(Strategy.PAIRS, 16, limits=SweepLimits(node_s=185.0)))
    assert found.least == Cost(rounds=1, node_s=160, duration_s=10)
    assert found.most == Cost(rounds=3, node_s=185, duration_s=35)


def test_a_limit_of_node_seconds_can_cut_the_first_round_short():
    """The groups that are left out are counted, and their nodes left over."""
    found = forecast(planned(Strategy.PAIRS, 16, limits=SweepLimits(node_s=70.0)))
    assert len(found.groups) == 3
    assert len(found.left_over) == 10
    assert found.least.rounds == 1
    assert "max_node_s is enough for 3 of the 8 groups of round 1" in found.warnings


def test_a_sweep_that_cannot_begin_costs_nothing():
    """Its one group is beyond what may be spent."""
    found = forecast(planned(Strategy.WHOLE, 16, limits=SweepLimits(node_s=70.0)))
    nothing = Cost(rounds=0, node_s=0, duration_s=0)
    assert (found.groups, found.first, found.least, found.most) == ((), nothing, nothing, nothing)
    assert "round 1: 0 groups in 0 waves" in forecast_text(found)


def test_nobody_looks_ahead_for_ever(monkeypatch):
    """Of a sweep with very many groups the least is what was looked at, and it says so."""
    monkeypatch.setattr(forecasting, "MOST_FORESEEN", 20)
    found = forecast(planned(Strategy.ROUND_ROBIN, 16))
    assert found.least.rounds == 3
    assert found.warnings[-1] == "planned ahead up to round 3 only: more rounds may follow even if everything passes"


def test_the_same_plan_has_the_same_forecast():
    """It draws as the sweep with this id would; for strategies that draw at random, it warns of other groups."""
    assert forecast(planned(Strategy.ADAPTIVE, 40)) == forecast(planned(Strategy.ADAPTIVE, 40))
    assert any("at random" in warning for warning in forecast(planned(Strategy.PAIRS, 16)).warnings)
    assert not any("at random" in warning for warning in forecast(planned(Strategy.WHOLE, 16)).warnings)


def test_what_people_read():
    """Who is left out and why, the groups by their reason, and what it costs."""
    absent = {"n98": "is lost: last heard of long ago", "n99": "is lost: last heard of long ago", "n97": "has no check"}
    found = forecast(planned(Strategy.SINGLE, 3, limits=SweepLimits(nodes=2), absent=absent))
    assert forecast_text(found).splitlines() == [
        "would sweep 3 nodes with collective, strategy single",
        "left out: n98, n99 (is lost: last heard of long ago)",
        "left out: n97 (has no check)",
        "round 1: 3 groups in 2 waves, 30 node-seconds, 20 s",
        "  each node alone",
        "    wave 1: n0",
        "    wave 1: n1",
        "    wave 2: n2",
        "in all at least 1 round, 30 node-seconds and 20 s, if everything passes",
        "at most 4 rounds, 120 node-seconds and 80 s",
        "a group is expected to take 10 s with its start; a run that takes longer than 120 s is ended",
        "note: a busy node declines and is left out; the coordinator learns this only when the sweep asks it",
    ]


def test_the_groups_of_a_large_fleet_are_counted():
    """A few are enough to see what they are like; the JSON form has all."""
    found = forecast(planned(Strategy.PAIRS, 101))
    lines = forecast_text(found).splitlines()
    assert sum(line.startswith("    wave ") for line in lines) == MOST_GROUPS
    assert "  and 30 other groups" in lines
    assert f"  not in any group: {found.left_over[0]}" in lines
    assert Forecast.model_validate_json(found.model_dump_json()) == found
