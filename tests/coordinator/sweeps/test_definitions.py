"""One node that announces a check otherwise than the others decides nothing about what they do."""

from typing import Any

import pytest
from tests.coordinator.sweeps.test_planning import check, fleet, planned

from muster.check import CheckInfo, Needs, Scope, Worse
from muster.errors import Refused
from muster.model import Health
from muster_coordinator.definitions import Announcements, usual_check, usual_scope
from muster_coordinator.localize.strategy import Strategy
from muster_coordinator.node import Node
from muster_coordinator.sweep_records import SweepRecord, SweepState
from muster_coordinator.sweeps.neighbours import draw_partners
from muster_coordinator.sweeps.plan import Plan
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
    """A fleet of which the first node in topology order says something else about `collective`."""
    nodes = fleet(count, **settings)
    said = {**nodes["n0"].checks["collective"].model_dump(), **lie}
    nodes["n0"].checks["collective"] = CheckInfo(**said)
    return nodes


def essence(plan: Plan) -> tuple[Any, ...]:
    """What a plan has from the announcements of checks."""
    return plan.strategy, plan.task, plan.abilities, plan.limits


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_node_that_differs_is_absent(lie: dict[str, Any]) -> None:
    """The sweep is what it would be without that node, and says whom it goes without and why."""
    plan = planned(lying(lie, devices=2))
    assert essence(plan) == essence(planned(fleet(devices=2)))
    assert plan.nodes == ("n2", "n1", "n3")
    assert plan.absent == {"n0": "its definition of check collective differs from that of most nodes"}


@pytest.mark.parametrize("said", OWN_BUSINESS.values(), ids=OWN_BUSINESS)
def test_what_concerns_no_other_node_keeps_nobody_out(said: dict[str, Any]) -> None:
    """Deadlines and costs are those in the middle, whatever one node says."""
    plan = planned(lying(said, devices=2))
    assert essence(plan) == essence(planned(fleet(devices=2)))
    assert (plan.nodes, plan.absent) == (("n0", "n2", "n1", "n3"), {})


def test_a_node_that_is_named_is_left_out_as_well() -> None:
    """It may not keep from a sweep those that are named beside it."""
    plan = planned(lying(LIES["scope"]), nodes=("n0", "n1", "n2"))
    assert (plan.nodes, set(plan.absent)) == (("n2", "n1"), {"n0"})


def test_who_is_left_must_be_enough() -> None:
    """The refusal counts those that have the check as most have it."""
    with pytest.raises(Refused, match=r"needs at least 2 nodes .* there are 1"):
        planned(lying(LIES["params"]), nodes=("n0", "n1"))


def test_parameters_are_held_against_what_most_announce() -> None:
    """A parameter that only one node takes is refused, and none that the others take."""
    nodes = lying(LIES["params"])
    with pytest.raises(Refused, match="unknown parameter of 'collective': 'size'"):
        planned(nodes, params={"size": 1})


def test_in_a_tie_the_fleet_decides() -> None:
    """Of two nodes that differ, the one is believed that says what others say; if nobody else is there, the first."""
    nodes = lying(LIES["objective"])
    two = [nodes["n0"], nodes["n1"]]
    assert usual_check("collective", two, nodes.values()).objective == "busbw_gbps"
    assert usual_check("collective", two, two).objective == "latency_s"


def test_the_middle_is_that_of_those_that_are_alike() -> None:
    """Of two, the lower."""
    nodes = fleet(3)
    for name, timeout_s in (("n0", 10.0), ("n1", 90.0)):
        nodes[name].checks["collective"] = check("collective", Scope.GROUP).model_copy(update={"timeout_s": timeout_s})
    del nodes["n2"].checks["collective"]
    assert usual_check("collective", [nodes["n0"], nodes["n1"]], ()).timeout_s == 10.0


def test_another_description_makes_no_other_check() -> None:
    """As while a fleet is upgraded."""
    said = {"properties": {"size": {"type": "integer", "description": "a"}}}
    nodes = lying({"params": said})
    for name in ("n1", "n2", "n3"):
        others = {**nodes[name].checks["collective"].model_dump(), "params": OTHER_PARAMS}
        nodes[name].checks["collective"] = CheckInfo(**others)
    assert planned(nodes, params={"size": 1}).absent == {}


def test_a_sweep_is_taken_up_without_those_that_differ_now() -> None:
    """Or have the check no more: otherwise one node could end what the others are in the middle of."""
    nodes = lying(LIES["objective"])
    del nodes["n1"].checks["collective"]
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
    """A healthy node that stands nearest and announces something else is nobody's partner."""
    nodes = lying(LIES["objective"], 6)
    for node in nodes.values():
        node.health = Health.HEALTHY
    partners = draw_partners(nodes["n2"], nodes, "collective", 6, lots="test")
    assert {node.name for node in partners} == {"n1", "n3", "n4", "n5"}


def test_the_scope_is_that_of_most() -> None:
    """Unknown for a check that nobody has."""
    nodes = lying(LIES["scope"]).values()
    assert usual_scope("collective", nodes) is Scope.GROUP
    assert usual_scope("unheard", nodes) is None


def announcing(**compared: Worse) -> CheckInfo:
    return check("gemm", Scope.NODE).model_copy(update={"compared": compared})


def test_what_is_compared_is_what_most_have_compared() -> None:
    """Counted as nodes come, change and go."""
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
