"""The labels that schedulers have on nodes: what they are told for, and what goes before them."""

import pytest
import structlog

from muster.check import CheckInfo, Needs, Scope
from muster.config import Config, Settings
from muster.hookspecs import hookimpl
from muster.model import Inventory, ServiceState, Topology
from muster.plugins import Plugins
from muster.topology_labels import TopologyLabels
from muster.transition import Mark, SchedulerNode, Survey
from muster.wire.messages import InventoryReport, PluginInfo
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import Announce, InventorySeen, LabelsSeen, SaveNode, SweepRequested
from muster_coordinator.model.nodes import NodeRecord
from muster_coordinator.model.quarantine_events import NodeSurveyed
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.runtime.actor_poller import ActorPoller

COLLECTIVE = CheckInfo(
    name="collective",
    summary="",
    scope=Scope.GROUP,
    needs=Needs.NOTHING,
    cadence_s=None,
    timeout_s=20.0,
    objective=None,
    params={"type": "object", "properties": {}},
)


def inventory(node, **found):
    return InventorySeen(
        InventoryReport(id="m", sent_at=1.0, node=node, inventory=Inventory(**found), checks=(COLLECTIVE,))
    )


def labels(node, actor="kubernetes", /, **of_node):
    return LabelsSeen(actor, node, {f"muster/{level}": place for level, place in of_node.items()})


def fleet(*nodes, **settings):
    made = Fleet(name="test", epoch=7, **settings)
    for node in nodes:
        made.handle(inventory(node), 0.0)
    return made


def stored(commands):
    """The record of the only node, as it is read again."""
    last = [command.record for command in commands if isinstance(command, SaveNode)][-1]
    return NodeRecord.model_validate_json(last.model_dump_json())


def test_they_place_a_node_of_which_nobody_else_says_where_it_stands():
    """In its view, in the order of ranks, and in selections."""
    made = fleet("a", "b", "c", "d")
    for node, rack in (("a", "r2"), ("b", "r1"), ("c", "r2"), ("d", "r1")):
        made.handle(labels(node, rack=rack), 1.0)
    made.handle(SweepRequested("all", SweepRequest(check="collective", strategy="whole")), 2.0)
    made.handle(SweepRequested("rack", SweepRequest(check="collective", strategy="whole", select="rack=r2")), 2.0)
    by_label = SweepRequest(check="collective", strategy="whole", select="label:muster/rack=r1")
    made.handle(SweepRequested("label", by_label), 2.0)
    assert [sweep.nodes for sweep in made.sweeps()] == [("b", "d", "a", "c"), ("a", "c"), ("b", "d")]
    view = made.node("a", 2.0)
    assert view is not None
    assert (view.topology, view.labels) == (Topology(rack="r2"), {"muster/rack": "r2"})


def test_they_tell_the_failure_domain_of_a_node():
    """Which the budget has a share for."""
    made = fleet("a")
    made.handle(labels("a", rack="r1"), 1.0)
    case = made.case("a")
    assert case is not None
    assert case.domain == "r1"


def test_what_goes_before_them_and_after():
    """Level by level: the topology file, the node's own word, its scheduler's, and what sweeps have shown."""
    record = NodeRecord(
        name="a",
        online=True,
        first_seen=0.0,
        last_seen=0.0,
        service=ServiceState.IN_SERVICE,
        inventory=Inventory(topology=Topology(block="own", rack="own"), labels={"muster/rack": "own", "x": "own"}),
        scheduler_labels={"kubernetes": {f"muster/{level}": "scheduler" for level in ("block", "rack", "leaf")}},
        learned_leaf="learned-1",
    )
    made = fleet(declared={"a": Topology(block="file")})
    made.restore(StoredFleet(nodes=(record,)), 0.0)
    view = made.node("a", 0.0)
    assert view is not None
    assert view.topology == Topology(block="file", rack="own", leaf="scheduler")
    assert view.labels == {"muster/block": "scheduler", "muster/rack": "own", "muster/leaf": "scheduler", "x": "own"}
    made.handle(labels("a"), 1.0)
    view = made.node("a", 1.0)
    assert view is not None
    assert view.topology == Topology(block="file", rack="own", leaf="learned-1")


def test_the_operators_own_keys_count_here_as_at_agents():
    """The known ones of that level do not, then."""
    made = fleet("a", topology_labels=TopologyLabels(rack="example.com/row"))
    made.handle(LabelsSeen("kubernetes", "a", {"muster/rack": "r1", "muster/leaf": "l1", "example.com/row": "7"}), 1.0)
    assert made.places(["a"]) == {"a": Topology(rack="7", leaf="l1")}


def test_only_what_has_changed_is_stored_and_announced():
    """Schedulers tell everything again every few minutes; what is stored outlives a restart."""
    made = fleet("a")
    assert made.handle(labels("a"), 1.0) == []
    commands = made.handle(labels("a", rack="r1"), 1.0)
    announced = [(command.kind, command.payload) for command in commands if isinstance(command, Announce)]
    assert announced == [("node", made.node("a", 1.0)), ("case", made.case("a"))]
    assert made.handle(labels("a", rack="r1"), 2.0) == []
    again = Fleet(name="test", epoch=8)
    again.restore(StoredFleet(nodes=(stored(commands),)), 3.0)
    assert again.places(["a"]) == {"a": Topology(rack="r1")}
    assert again.handle(labels("a", rack="r1"), 4.0) == []


def test_those_of_a_node_that_joins_later_are_not_forgotten():
    """The survey at the start comes before the first agent; the record is stored with them at once."""
    made = fleet()
    assert made.handle(labels("a", rack="r0"), 1.0) == []
    assert made.handle(labels("a", rack="r1"), 1.5) == []
    assert stored(made.handle(inventory("a"), 2.0)).scheduler_labels == {"kubernetes": {"muster/rack": "r1"}}
    assert made.places(["a"]) == {"a": Topology(rack="r1")}


def test_two_schedulers_do_not_take_turns():
    """Slurm on Kubernetes: both label the node, and neither is news when nothing has changed."""
    made = fleet("a")
    told = [labels("a", "kubernetes", rack="r1", leaf="l1"), labels("a", "slurm", rack="r2")]
    assert all(made.handle(event, 1.0) for event in told)
    assert not any(made.handle(event, 2.0) for event in told)
    assert made.places(["a"]) == {"a": Topology(rack="r2", leaf="l1")}


class Scheduler:
    """A plugin whose scheduler has these nodes, with their labels."""

    def __init__(self, nodes):
        self.nodes = tuple(SchedulerNode(node=name, mark=Mark.NONE, labels=given) for name, given in nodes.items())

    @hookimpl
    async def muster_survey(self):
        return Survey(summary="stand-in", can_cordon=False, nodes=self.nodes)


@pytest.fixture
def seen():
    """Surveys a scheduler that has these nodes, with their labels, and gives what is told of them."""

    async def survey(nodes):
        told = []

        async def take(events):
            told.extend(events)

        plugins = Plugins(Config(Settings()))
        info = PluginInfo(name="stand-in", distribution=None, version=None, status="loaded")
        plugins.add(info, lambda: Scheduler(nodes))
        await ActorPoller(plugins, 3600.0, take).survey()
        return told

    return survey


async def test_a_survey_tells_them_before_what_is_decided_by_them(seen):
    """What is written down of a survey for decisions has no labels in it."""
    told = await seen({"a": {"pool": "x"}, "b": {}})
    assert told == [
        LabelsSeen("stand-in", "a", {"pool": "x"}),
        LabelsSeen("stand-in", "b", {}),
        NodeSurveyed(actor="stand-in", node=SchedulerNode(node="a", mark=Mark.NONE)),
        NodeSurveyed(actor="stand-in", node=SchedulerNode(node="b", mark=Mark.NONE)),
    ]


async def test_labels_that_cannot_be_taken_are_left_out(seen):
    """Those of other nodes are taken, and the log says it once, however many there are."""
    with structlog.testing.capture_logs() as logs:
        told = await seen({"a": {"pool": "a b"}, "b": {"pool": "x"}, "c": {f"k{n}": "v" for n in range(513)}})
    assert [event.node for event in told if isinstance(event, LabelsSeen)] == ["b"]
    assert [event.node.node for event in told if isinstance(event, NodeSurveyed)] == ["a", "b", "c"]
    (line,) = logs
    assert (line["event"], line["actor"], line["nodes"], line["first"]) == ("labels_not_taken", "stand-in", 2, "a")
    assert "label 'pool' has the value 'a b'" in line["problem"]
