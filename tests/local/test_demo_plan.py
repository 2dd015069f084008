"""What the demo's fleet is made of, and when it counts as having named the right nodes."""

from pathlib import Path

import pytest

from muster.config import load
from muster.errors import Refused
from muster.model import Action, Health, ServiceState, Severity, Verdict
from muster_coordinator.local.demo_plan import (
    LEAST_NODES,
    LEAST_NODES_WITH_FAULTS,
    MOST_NODES,
    Addresses,
    DemoPlan,
    agent_settings,
    coordinator_settings,
    named,
    plan,
    require_usable,
)
from muster_coordinator.local.processes import environment
from muster_coordinator.model.nodes import NodeFinding, NodeView
from muster_coordinator.model.sweep_records import FailedNode, SweepRecord, SweepState

ADDRESSES = Addresses(broker="127.0.0.1:1", http="127.0.0.1:2")


@pytest.mark.parametrize("count", range(LEAST_NODES_WITH_FAULTS, MOST_NODES + 1))
def test_two_nodes_get_a_fault_each(count):
    """However many nodes there are, two different ones are faulty, each in its way."""
    fleet = plan(count, with_faults=True)
    assert len(set(fleet.nodes)) == count
    assert set(fleet.injected) < set(fleet.nodes)
    assert sorted(fleet.injected.values()) == ["gpu", "slow_link"]


@pytest.mark.parametrize("count", [LEAST_NODES, 8])
def test_without_faults_none_is_put_in(count):
    """A fleet without faults may be as small as a pair."""
    assert plan(count, with_faults=False) == DemoPlan(tuple(f"node-{number}" for number in range(1, count + 1)), {})


@pytest.mark.parametrize(
    ("count", "with_faults", "valid"),
    [(0, False, "2 to 64"), (1, False, "2 to 64"), (5, True, "6 to 64"), (65, True, "6 to 64"), (-8, True, "6 to 64")],
)
def test_a_fleet_that_cannot_show_anything_is_refused(count, with_faults, valid):
    """The message says how many nodes there may be."""
    with pytest.raises(Refused, match=f"--nodes {count}: the demo needs {valid} nodes"):
        plan(count, with_faults)


def test_the_settings_are_valid_and_keep_the_parts_apart():
    """They pass through the environment unharmed; every part has a directory of its own, agents any free port."""
    fleet = plan(8, with_faults=True)
    agents = [load(None, environment(agent_settings(node, fleet, ADDRESSES, Path("/demo")))) for node in fleet.nodes]
    coordinator = load(None, environment(coordinator_settings(ADDRESSES, Path("/demo"))))
    assert (coordinator.broker.listen, coordinator.http.listen) == (ADDRESSES.broker, ADDRESSES.http)
    assert len({part.data_dir for part in (coordinator, *agents)}) == 9
    assert {agent.node for agent in agents} == set(fleet.nodes)
    assert {agent.broker.url for agent in agents} == {"mqtt://127.0.0.1:1"}
    assert {agent.agent.listen for agent in agents} == {"127.0.0.1:0"}
    assert {coordinator.fleet} == {agent.fleet for agent in agents}


def test_settings_of_a_real_fleet_are_refused():
    """All of them are listed; the others in the same tables can be used."""
    require_usable({"http": {"listen": "127.0.0.1:1"}, "store": {"keep_days": 3}, "agent": {"rack": "r1"}}, Path("f"))
    real = {"fleet": "prod", "broker": {}, "store": {"url": "x"}, "agent": {"listen": "127.0.0.1:2"}}
    with pytest.raises(Refused, match=r"--config f: the demo makes its own fleet, broker, store\.url, agent\.listen;"):
        require_usable(real, Path("f"))


def test_only_the_nodes_with_a_fault_are_told_one():
    """Every device is simulated, and every other node's are sound."""
    fleet = plan(8, with_faults=True)
    for node in fleet.nodes:
        simulated = agent_settings(node, fleet, ADDRESSES, Path("/demo"))["plugins"]["simulated"]
        assert simulated["enabled"]
        assert bool(simulated["faults"]) == (node in fleet.injected)


def view(name, health, *severities):
    findings = tuple(
        NodeFinding(code=f"c.{severity.lower()}", summary="", severity=severity, action=Action.NONE, check="c", run="r",
                    since=0.0)
        for severity in severities
    )  # fmt: skip
    return NodeView(
        name=name, health=health, service=ServiceState.IN_SERVICE, lost=False, last_seen=0.0, devices=(),
        findings=findings,
    )  # fmt: skip


def sweep(*convicted):
    return SweepRecord(
        id="s", state=SweepState.FINISHED, strategy="pairs", check="c", nodes=("a", "b"), verdict=Verdict.PASS,
        failed_nodes=tuple(FailedNode(node=node, confidence=0.9, reasons=()) for node in convicted), created_at=0.0,
    )  # fmt: skip


@pytest.mark.parametrize("convicted", [True, False])
@pytest.mark.parametrize("health", [Health.FAILED, Health.SUSPECT, Health.HEALTHY])
def test_who_is_failed_or_convicted_is_named_by_its_errors(health, convicted):
    """Suspicion names nobody, and findings that are no errors name nothing."""
    nodes = [view("a", health, Severity.ERROR, Severity.WARNING, Severity.ERROR), view("b", Health.HEALTHY)]
    expected = {"a": ["c.error"]} if health is Health.FAILED or convicted else {}
    assert named(nodes, sweep(*("a" for _ in range(convicted)))) == expected
