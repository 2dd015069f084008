"""A node that has been forgotten: where it is no more, what stays of it, and how it comes again."""

from typing import Any

import pytest

from muster.check import CheckInfo, Needs, Scope, Worse
from muster.errors import Refused
from muster.model import Device, Health, Inventory, Run, ServiceState, Topology, Verdict
from muster.transition import Mark, SchedulerNode
from muster.wire.messages import InventoryReport, Presence, Report
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.baseline_commands import SaveLevels
from muster_coordinator.model.events import (
    InventorySeen,
    LabelsSeen,
    PresenceSeen,
    ReportSeen,
    SaveNode,
    SweepRequested,
    Ticked,
)
from muster_coordinator.model.nodes import NodeView
from muster_coordinator.model.quarantine_events import NodeForgotten, NodeNotListed, NodeSurveyed, SaveRecord
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.sweeps.new_nodes import NewNodes
from muster_coordinator.sweeps.timetable import Timetable

NODES = tuple(f"n{number}" for number in range(8))


def check(name: str, scope: Scope, **known: Any) -> CheckInfo:
    usual: dict[str, Any] = {"summary": "", "needs": Needs.NOTHING, "timeout_s": 60.0, "params": {"type": "object"}}
    return CheckInfo(**usual | {"name": name, "scope": scope, "cadence_s": None, "objective": None} | known)


CHECKS = (
    check("gemm", Scope.NODE, cadence_s=60.0, compared={"tflops": Worse.LOWER}),
    check("collective", Scope.GROUP, objective="busbw_gbps"),
)


class Story:
    """A fleet of eight nodes with a device each, which are measured again and again."""

    def __init__(self, **known: Any) -> None:
        self.fleet = Fleet(name="test", epoch=1, **known)
        self.now = 1000.0
        self.commands: list[Any] = []
        self.runs: list[Run] = []
        for node in NODES:
            self.join(node)
        for _ in range(6):
            for node in NODES:
                self.measure(node)

    def feed(self, event: Any, after_s: float = 0.1) -> list[Any]:
        self.now += after_s
        said = self.fleet.handle(event, self.now)
        self.commands += said
        return said

    def join(self, node: str, *, kept: bool = False) -> None:
        """A node connects; or the broker gives only what it has kept of one."""
        made = Inventory(devices=(Device(index=0, uuid=f"{node}-0", model="x"),), topology=Topology(rack="r1"))
        head: dict[str, Any] = {"id": f"m-{node}", "sent_at": self.now, "node": node}
        if not kept:
            self.feed(PresenceSeen(Presence(**head, online=True)))
        self.feed(InventorySeen(InventoryReport(**head, inventory=made, checks=CHECKS), kept=kept))

    def leave(self, node: str) -> None:
        self.feed(PresenceSeen(Presence(id=f"m-{node}", sent_at=self.now, node=node, online=False, goodbye=True)))

    def measure(self, node: str, verdict: Verdict = Verdict.PASS, age_s: float = 0.0) -> None:
        """A run that was made so long ago comes in."""
        seq = len(self.runs) + 1
        run = Run(
            id=f"r{seq}",
            node=node,
            check="gemm",
            verdict=verdict,
            started_at=self.now - age_s,
            duration_s=0.1,
            seq=seq,
            metrics={"tflops": [100.0 + seq % 3]},
            facts={"device_indices": [0]},
        )
        self.runs.append(run)
        report = Report(id=f"m-{seq}", sent_at=self.now, node=node, stream=f"s{seq}", after=0, runs=(run,))
        self.feed(ReportSeen(report))

    def forget(self, node: str) -> list[Any]:
        return self.feed(NodeForgotten(node=node, by="ada", reason="given back"))

    def view(self, node: str) -> NodeView:
        view = self.fleet.node(node, self.now)
        assert view is not None
        return view

    def restart(self) -> None:
        """The next coordinator begins with what was stored."""
        nodes = {it.record.name: it.record for it in self.commands if isinstance(it, SaveNode)}
        records = {it.record.node: it.record for it in self.commands if isinstance(it, SaveRecord)}
        levels = {(it.record.baseline, it.record.node): it.record for it in self.commands if isinstance(it, SaveLevels)}
        by_baseline = {key: [record for (of, _), record in levels.items() if of == key] for key, _ in levels}
        saved = StoredFleet(
            nodes=tuple(nodes.values()),
            runs=tuple(self.runs),
            quarantine=tuple(records.values()),
            levels=by_baseline,
        )
        self.fleet = Fleet(name="test", epoch=self.fleet.epoch + 1)
        self.commands += self.fleet.restore(saved, self.now)


@pytest.fixture
def story() -> Story:
    """A fleet of which `n1` is away and has been forgotten."""
    story = Story()
    story.leave("n1")
    story.forget("n1")
    return story


@pytest.mark.parametrize("restarts", [False, True])
def test_it_is_in_no_list(story: Story, restarts: bool) -> None:
    """Nor is it compared with others, also after a restart."""
    if restarts:
        story.restart()
    others = [node for node in NODES if node != "n1"]
    assert story.fleet.names == [record.node for record in story.fleet.quarantine_records()] == others
    assert (story.fleet.node("n1", story.now), story.fleet.case("n1")) == (None, None)
    assert story.fleet.view(story.now).lost == ()
    (baseline,) = story.fleet.baselines()
    assert (baseline.nodes, baseline.devices) == (7, 7)


@pytest.mark.parametrize("restarts", [False, True])
def test_it_comes_again_as_a_new_one(story: Story, restarts: bool) -> None:
    """Of what was measured before nothing is left, even if its agent sends it only then."""
    story.join("n1")
    story.measure("n1", Verdict.FAIL, age_s=60.0)
    if restarts:
        story.restart()
    view = story.fleet.node("n1", story.now)
    assert view is not None
    assert (view.health, view.service, view.checks) == (Health.UNKNOWN, ServiceState.ACCEPTING, {})
    story.measure("n1")
    if restarts:
        story.restart()
    view = story.fleet.node("n1", story.now)
    assert view is not None
    assert (view.health, view.service) == (Health.HEALTHY, ServiceState.IN_SERVICE)


@pytest.mark.parametrize("restarts", [False, True])
def test_what_broker_and_scheduler_still_have_of_it_is_no_sign_of_life(story: Story, restarts: bool) -> None:
    """A retained inventory comes with every connection to the broker."""
    if restarts:
        story.restart()
    story.join("n1", kept=True)
    story.leave("n1")
    story.feed(LabelsSeen("slurm", "n1", {"rack": "r1"}))
    story.feed(Ticked(), 60.0)
    assert "n1" not in story.fleet.names


def test_what_the_broker_had_kept_counts_when_it_comes_again(story: Story) -> None:
    """Its agent, which came again while the coordinator was away, says what it is made of only once."""
    story.restart()
    story.join("n1", kept=True)
    assert "n1" not in story.fleet.names
    story.measure("n1")
    view = story.fleet.node("n1", story.now)
    assert view is not None
    assert (view.devices != (), view.service) == (True, ServiceState.IN_SERVICE)


def test_who_is_part_of_a_sweep_is_not_forgotten() -> None:
    """The sweep has something to say about it yet."""
    story = Story()
    story.feed(SweepRequested("s1", SweepRequest(check="collective")))
    story.leave("n1")
    with pytest.raises(Refused, match="n1 is part of sweep s1"):
        story.forget("n1")
    assert "n1" in story.fleet.names


def test_who_is_not_known_is_not_forgotten(story: Story) -> None:
    """Nor is one twice."""
    with pytest.raises(Refused, match="unknown node 'n1'"):
        story.forget("n1")


def test_the_sweep_over_new_nodes_does_without_it() -> None:
    """It was new itself, and no sweep had covered it yet."""
    new_nodes = NewNodes(request=SweepRequest(check="collective"), gather_s=20.0, partners=1)
    story = Story(timetable=Timetable(new_nodes=new_nodes))
    story.leave("n1")
    story.forget("n1")
    story.feed(Ticked())
    story.feed(Ticked(), 20.0)
    (sweep,) = story.fleet.sweeps()
    assert sorted(sweep.nodes) == [node for node in NODES if node != "n1"]


@pytest.fixture
def left() -> Story:
    """A fleet whose `n1` has left: it is silent, and its scheduler lists it no more."""
    story = Story()
    story.feed(NodeSurveyed(actor="k8s", node=SchedulerNode(node="n1", mark=Mark.NONE)))
    story.leave("n1")
    story.feed(NodeNotListed(actor="k8s", node="n1"))
    return story


@pytest.mark.parametrize("restarts", [False, True])
def test_one_that_has_left_by_itself_comes_again_as_a_new_one_too(left: Story, restarts: bool) -> None:
    """It is accepted by what is measured then; what was measured before may have been on another machine."""
    assert (left.view("n1").last_health, left.view("n1").health) == (Health.HEALTHY, Health.UNKNOWN)
    if restarts:
        left.restart()
    assert (left.view("n1").left, left.view("n1").lost, left.fleet.view(left.now).lost) == (True, True, ())
    left.join("n1")
    assert not left.view("n1").left
    left.measure("n1", age_s=60.0)
    if restarts:
        left.restart()
    view = left.view("n1")
    assert (view.health, view.service, view.checks) == (Health.UNKNOWN, ServiceState.ACCEPTING, {})
    (baseline,) = left.fleet.baselines()
    assert baseline.nodes == 7
    left.measure("n1")
    view = left.view("n1")
    assert (view.health, view.service) == (Health.HEALTHY, ServiceState.IN_SERVICE)


@pytest.mark.parametrize("restarts", [False, True])
def test_one_that_has_another_under_its_name_need_not_fall_silent(left: Story, restarts: bool) -> None:
    """What the other is made of, it has said already. Of what the one before has measured nothing counts."""
    left.join("n1")
    left.feed(NodeSurveyed(actor="k8s", node=SchedulerNode(node="n1", mark=Mark.NONE, registration="first")))
    left.measure("n1")
    anew = SchedulerNode(node="n1", mark=Mark.OURS, is_new=True, registration="second")
    left.feed(NodeSurveyed(actor="k8s", node=anew))
    assert not left.fleet.is_present("n1")
    if restarts:
        left.restart()
    left.feed(PresenceSeen(Presence(id="m", sent_at=left.now, node="n1", online=True)))
    view = left.view("n1")
    assert (view.health, view.service, len(view.devices)) == (Health.UNKNOWN, ServiceState.ACCEPTING, 1)
    left.measure("n1")
    assert left.view("n1").service is ServiceState.IN_SERVICE
