"""A node that announces a check differently does not change the check for other nodes."""

from typing import Any

import pytest
from tests.cases import cases
from tests.coordinator.sweeps.test_planning import check, fleet, planned

from muster.check import CheckInfo, Needs, Scope, Worse
from muster.errors import Refused
from muster.model import Health
from muster_coordinator.evidence.announced_checks import AnnouncedChecks
from muster_coordinator.evidence.definitions import Announcements, usual_check, usual_scope
from muster_coordinator.evidence.node import Node
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.sweep_records import SweepRecord, SweepState
from muster_coordinator.sweeps.partners import draw_partners
from muster_coordinator.sweeps.plan import SweepPlan
from muster_coordinator.sweeps.planning import plan_again

OTHER_PARAMS = {"type": "object", "properties": {"size": {"type": "integer"}}, "additionalProperties": False}

LIES: dict[str, dict[str, Any]] = {
    "scope": {"scope": Scope.NODE},
    "objective": {"objective": "latency_s"},
    "no objective": {"objective": None},
    "rails": {"by_rail": None},
    "params": {"params": OTHER_PARAMS},
    "params beyond the bounds": {"params": {"properties": {f"p{number}": {} for number in range(1000)}}},
}

OWN_BUSINESS: dict[str, dict[str, Any]] = {
    "deadline": {"timeout_s": 30_000_000.0},
    "no deadline": {"timeout_s": 0.0},
    "cost": {"cost_s": 30_000_000.0},
    "cost unknown": {"cost_s": None},
    "rhythm": {"cadence_s": 0.001},
    "needs": {"needs": Needs.IDLE_NODE},
    "words": {"summary": "another"},
    "metrics": {"compared": {"busbw_gbps": Worse.HIGHER}, "judged": ("x",)},
}


def lying(lie: dict[str, Any], count: int = 4, **settings: Any) -> dict[str, Node]:
    """A fleet in which the first node in topology order announces `collective` differently."""
    nodes = fleet(count, **settings)
    announce(nodes["n0"], **lie)
    return nodes


def announce(node: Node, **changed: Any) -> None:
    """Lets a node announce `collective` with these fields."""
    collective = CheckInfo(**{**node.checks["collective"].model_dump(), **changed})
    node.announced = AnnouncedChecks.of({**node.checks, "collective": collective}.values())


def drop(node: Node) -> None:
    """Lets a node have `collective` no longer."""
    node.announced = AnnouncedChecks.of(check for name, check in node.checks.items() if name != "collective")


def essence(plan: SweepPlan) -> tuple[Any, ...]:
    """The parts of a plan that come from announcements."""
    return plan.strategy, plan.task, plan.abilities, plan.limits


@cases("lie", LIES.values(), ids=LIES)
def test_a_node_that_differs_is_absent(lie: dict[str, Any]) -> None:
    """The sweep is planned as without that node, and names it with the reason."""
    plan = planned(lying(lie, devices=2))
    assert essence(plan) == essence(planned(fleet(devices=2)))
    assert plan.nodes == ("n2", "n1", "n3")
    assert plan.absent == {"n0": "its definition of check collective differs from that of most nodes"}


@cases("said", OWN_BUSINESS.values(), ids=OWN_BUSINESS)
def test_differences_that_affect_no_other_node_are_allowed(said: dict[str, Any]) -> None:
    """Timeouts and costs of the plan are medians, so one node does not change them."""
    plan = planned(lying(said, devices=2))
    assert essence(plan) == essence(planned(fleet(devices=2)))
    assert (plan.nodes, plan.absent) == (("n0", "n2", "n1", "n3"), {})


def test_a_named_node_that_differs_is_left_out() -> None:
    """The sweep runs with the other named nodes."""
    plan = planned(lying(LIES["scope"]), nodes=("n0", "n1", "n2"))
    assert (plan.nodes, set(plan.absent)) == (("n2", "n1"), {"n0"})


def test_enough_nodes_must_be_left() -> None:
    """The refusal counts the nodes that announce the check as most nodes do."""
    with pytest.raises(Refused, match=r"needs at least 2 nodes .* there are 1"):
        planned(lying(LIES["params"]), nodes=("n0", "n1"))


def test_parameters_are_validated_with_the_usual_schema() -> None:
    """A parameter that only one node announces is refused."""
    nodes = lying(LIES["params"])
    with pytest.raises(Refused, match="unknown parameter of 'collective': 'size'"):
        planned(nodes, params={"size": 1})


def test_in_a_tie_the_fleet_decides() -> None:
    """If two nodes differ, the announcement counts that other nodes share; without other nodes, the first one."""
    nodes = lying(LIES["objective"])
    two = [nodes["n0"], nodes["n1"]]
    assert usual_check("collective", two, nodes.values()).objective == "busbw_gbps"
    assert usual_check("collective", two, two).objective == "latency_s"


def test_the_timeout_is_the_median() -> None:
    """The lower one of two."""
    nodes = fleet(3)
    for name, timeout_s in (("n0", 10.0), ("n1", 90.0)):
        announce(nodes[name], timeout_s=timeout_s)
    drop(nodes["n2"])
    assert usual_check("collective", [nodes["n0"], nodes["n1"]], ()).timeout_s == 10.0


def test_another_description_makes_no_other_check() -> None:
    """For example while a fleet is upgraded."""
    said = {"properties": {"size": {"type": "integer", "description": "a"}}}
    nodes = lying({"params": said})
    for name in ("n1", "n2", "n3"):
        announce(nodes[name], params=OTHER_PARAMS)
    assert planned(nodes, params={"size": 1}).absent == {}


def test_a_resumed_sweep_leaves_out_nodes_that_differ() -> None:
    """And nodes without the check; otherwise one node could end a sweep of the others."""
    nodes = lying(LIES["objective"])
    drop(nodes["n1"])
    record = SweepRecord(
        id="s",
        state=SweepState.RUNNING,
        strategy="pairs",
        check="collective",
        nodes=("n0", "n1", "n2", "n3"),
        created_at=0.0,
    )
    plan = plan_again(record, nodes)
    assert (plan.nodes, plan.strategy, plan.task.objective) == (record.nodes, Strategy.PAIRS, "busbw_gbps")
    assert plan.absent == {
        "n0": "its definition of check collective differs from that of most nodes",
        "n1": "does not have check 'collective' any more",
    }


def test_partners_are_alike() -> None:
    """A node that announces the check differently is no partner, even if it is the nearest healthy one."""
    nodes = lying(LIES["objective"], 6)
    for node in nodes.values():
        node.health = Health.HEALTHY
    partners = draw_partners(nodes["n2"], nodes, "collective", 6, seed="test")
    assert {node.name for node in partners} == {"n1", "n3", "n4", "n5"}


def test_the_scope_is_that_of_most() -> None:
    """None for a check that no node has."""
    nodes = lying(LIES["scope"]).values()
    assert usual_scope("collective", nodes) is Scope.GROUP
    assert usual_scope("unheard", nodes) is None


def announcing(**compared: Worse) -> CheckInfo:
    return check("gemm", Scope.NODE).model_copy(update={"compared": compared})


def test_the_compared_metrics_are_those_of_most_nodes() -> None:
    """The count follows nodes that join, change and leave."""
    metrics = Announcements()
    assert metrics.compared("gemm") == {}
    honest, liar = announcing(tflops=Worse.LOWER), announcing(tflops=Worse.HIGHER, made_up=Worse.LOWER)
    for one in (liar, honest, honest):
        metrics.replace((), [one])
    assert metrics.compared("gemm") == {"tflops": Worse.LOWER}
    metrics.replace([honest], [liar])
    assert metrics.compared("gemm") == liar.compared
    metrics.replace([liar, liar], [])
    assert metrics.compared("gemm") == {"tflops": Worse.LOWER}
