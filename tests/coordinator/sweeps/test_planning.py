"""From what somebody asks for to the plan of a sweep."""

from typing import Any

import pytest
from tests.cases import cases

from muster.check import CheckInfo, Needs, Scope
from muster.errors import Refused
from muster.model import Device, Inventory, Topology
from muster_coordinator.evidence.announced_checks import AnnouncedChecks
from muster_coordinator.evidence.node import Node
from muster_coordinator.localize.strategies.pairs import Pairing
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.events import SweepRequested
from muster_coordinator.model.probes import CheckAbilities, Site
from muster_coordinator.model.sweep_records import SweepRecord, SweepRequest, SweepState
from muster_coordinator.sweeps.plan import SweepLimits, SweepPlan
from muster_coordinator.sweeps.planning import START_UP_S, plan_again, plan_sweep

GROUP_S = START_UP_S + 10.0


def check(name: str, scope: Scope) -> CheckInfo:
    return CheckInfo(
        name=name,
        summary="",
        scope=scope,
        needs=Needs.NOTHING,
        cadence_s=None,
        timeout_s=20.0,
        objective="busbw_gbps",
        params={"type": "object", "properties": {}, "additionalProperties": False},
        by_rail="rails_gbps",
        cost_s=10.0,
    )


def fleet(count: int = 4, *, devices: int = 1, **lost: bool) -> dict[str, Node]:
    nodes = {}
    for number in range(count):
        name = f"n{number}"
        topology = Topology(rack=f"r{number % 2}")
        gpus = tuple(Device(index=it, uuid=f"{name}-{it}", model="stand-in") for it in range(devices))
        node = nodes[name] = Node(name, 0.0, 0.0, online=not lost.get(name))
        node.inventory = Inventory(devices=gpus, topology=topology)
        node.announced = AnnouncedChecks.of([check("collective", Scope.GROUP), check("gemm", Scope.NODE)])
    return nodes


def planned(nodes: dict[str, Node], /, **asked: Any) -> SweepPlan:
    return plan_sweep(SweepRequested("s", SweepRequest(**{"check": "collective", **asked})), nodes, {})


def test_nodes_are_in_topology_order_and_those_that_are_lost_are_absent() -> None:
    """With the reason."""
    plan = planned(fleet(n3=True))
    assert plan.nodes == ("n0", "n2", "n1")
    assert plan.sites[0] == Site("n0", "r0", None, "stand-in", devices=1)
    assert plan.absent == {"n3": "is lost: last heard at 1970-01-01T00:00:00.000Z"}


@pytest.mark.parametrize(
    ("asked", "strategy"),
    [({}, Strategy.ADAPTIVE), ({"check": "gemm"}, Strategy.SINGLE), ({"strategy": "whole"}, Strategy.WHOLE)],
)
def test_the_check_decides_the_strategy_unless_it_is_said(asked: dict[str, Any], strategy: Strategy) -> None:
    """A check of one node runs on each alone."""
    assert planned(fleet(), **asked).strategy is strategy


@pytest.mark.parametrize(
    ("devices", "abilities"),
    [(1, CheckAbilities(alone=False, by_rail=False)), (8, CheckAbilities(alone=True, by_rail=True))],
)
def test_nodes_with_several_devices_can_be_tried_alone_and_by_rail(devices: int, abilities: CheckAbilities) -> None:
    """Others have nothing to exchange with, or no rails to tell apart."""
    assert planned(fleet(devices=devices)).abilities == abilities


def test_a_node_that_is_short_of_devices_takes_nothing_from_the_others() -> None:
    """What most nodes have decides what can be tried, and the plan knows who differs."""
    nodes = fleet(devices=8)
    nodes["n2"].inventory = Inventory(devices=nodes["n2"].inventory.devices[:7])
    plan = planned(nodes, strategy="pairs", pairing="rail")
    assert plan.abilities == CheckAbilities(alone=True, by_rail=True)
    assert {site.node: site.devices for site in plan.sites} == {"n0": 8, "n1": 8, "n2": 7, "n3": 8}


@pytest.mark.parametrize(("devices", "ranks"), [(0, 1), (1, 1), (8, 8), (128, 128)])
def test_a_node_may_have_one_rank_for_each_device(devices: int, ranks: int) -> None:
    """And one rank if it has no devices."""
    assert planned(fleet(devices=devices)).most_ranks == dict.fromkeys(("n0", "n1", "n2", "n3"), ranks)


def test_a_plan_knows_which_nodes_place_themselves() -> None:
    """The topology file and schedulers confirm a leaf; the node itself may claim any leaf."""
    nodes = fleet()
    for node in nodes.values():
        node.inventory = node.inventory.model_copy(update={"topology": Topology(leaf="l1")})
    nodes["n1"].declared = Topology(leaf="l1")
    nodes["n2"].scheduled = Topology(leaf="l1")
    nodes["n3"].scheduled = Topology(leaf="l2")
    places_itself = {site.node: site.places_itself for site in planned(nodes).sites}
    assert places_itself == {"n0": True, "n1": False, "n2": False, "n3": True}


@cases(
    ("asked", "limits"),
    [
        ({}, SweepLimits()),
        ({"max_parallel": "50%"}, SweepLimits(nodes=2)),
        ({"max_parallel": " 3 "}, SweepLimits(nodes=3)),
        ({"max_parallel": "100%", "strategy": "whole"}, SweepLimits(nodes=4)),
        ({"max_parallel": "2", "strategy": "bisect"}, SweepLimits(nodes=2)),
        ({"max_rounds": 2, "max_node_s": 2 * GROUP_S}, SweepLimits(rounds=2, node_s=2 * GROUP_S)),
        ({"max_node_s": 4 * GROUP_S, "strategy": "whole"}, SweepLimits(node_s=4 * GROUP_S)),
    ],
)
def test_limits_are_numbers(asked: dict[str, Any], limits: SweepLimits) -> None:
    """A share is one of the nodes that take part."""
    assert planned(fleet(), **asked).limits == limits


@cases(
    ("asked", "message"),
    [
        ({"max_parallel": "1"}, "max_parallel 1"),
        ({"max_parallel": "0"}, "neither a number of nodes"),
        ({"max_parallel": "2", "strategy": "whole"}, "contradicts strategy whole"),
        ({"max_node_s": 59.0}, "less than the 60 node-seconds that one group of 2 takes"),
        ({"max_node_s": 100.0, "strategy": "whole"}, "less than the 120 node-seconds that one group of 4 takes"),
        ({"passes": 3, "max_rounds": 2}, "max_rounds 2 contradicts passes 3: every pass takes a round"),
        ({"max_parallel": "50%", "strategy": "whole"}, "takes all nodes at once: set it to 100%"),
        ({"pairing": "rail"}, "is for strategy pairs; this sweep's strategy is adaptive"),
    ],
)
def test_limits_within_which_no_group_fits_are_refused(asked: dict[str, Any], message: str) -> None:
    """Rather than ending a sweep that has done nothing."""
    with pytest.raises(Refused, match=message):
        planned(fleet(), **asked)


def test_a_fleet_of_which_everybody_is_lost_is_refused_for_that() -> None:
    """And not for a strategy that nobody asked for."""
    with pytest.raises(Refused, match=r"strategy adaptive needs at least 2 nodes .*; there are 0"):
        planned(fleet(2, n0=True, n1=True))


def test_a_sweep_is_planned_again_as_it_was() -> None:
    """With its nodes as they are now; Refused if none of them has the check any more."""
    nodes = fleet(devices=2)
    asked = SweepRequest(check="collective", strategy="pairs", pairing="rail", max_rounds=3, priority=2)
    record = SweepRecord(
        id="s",
        state=SweepState.RUNNING,
        strategy="pairs",
        check="collective",
        nodes=("n1", "n0"),
        asked=asked,
        origin="new nodes",
        absent={"n9": "lost"},
        created_at=0.0,
    )
    plan = plan_again(record, nodes)
    assert (plan.nodes, plan.strategy, plan.pairing) == (("n1", "n0"), Strategy.PAIRS, Pairing.RAIL)
    assert (plan.limits, plan.priority, plan.origin, plan.absent) == (
        SweepLimits(rounds=3),
        2,
        "new nodes",
        {"n9": "lost"},
    )
    for node in ("n0", "n1"):
        nodes[node].announced = AnnouncedChecks.of([nodes[node].checks["gemm"]])
    with pytest.raises(Refused, match="none of its nodes has check 'collective' any more"):
        plan_again(record, nodes)
