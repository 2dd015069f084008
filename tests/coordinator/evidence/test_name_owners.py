"""A node's name belongs to the first machine that uses it. What another machine says under it is refused."""

from typing import Any

import pytest

from muster.model import Device, Finding, Inventory, Run, Severity, Verdict
from muster.transition import Mark, SchedulerNode
from muster.wire.messages import Declined, InventoryReport, Presence, Report
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    GroupReplySeen,
    InventorySeen,
    PresenceSeen,
    ReportRepeated,
    ReportSeen,
    SaveNode,
    StoreRuns,
)
from muster_coordinator.model.quarantine_events import NodeForgotten, NodeSurveyed
from muster_coordinator.model.stored_fleet import StoredFleet

FIRST, OTHER, UNKNOWN = "first", "other", ""


class Name:
    """A fleet in which several machines speak under the name `n`."""

    def __init__(self) -> None:
        self.fleet = Fleet(name="test", epoch=1)
        self.now = 1000.0
        self.commands: list[Any] = []
        self._number = 0

    def tell(self, event: Any) -> list[Any]:
        self.now += 1.0
        commands = self.fleet.handle(event, self.now)
        self.commands += commands
        return commands

    def head(self) -> dict[str, Any]:
        self._number += 1
        return {"id": f"m{self._number}", "sent_at": self.now, "node": "n"}

    def beats(self, machine: str, *, online: bool = True, goodbye: bool = False, kept: bool = False) -> list[Any]:
        message = Presence(**self.head(), online=online, goodbye=goodbye, machine=machine)
        return self.tell(PresenceSeen(message, kept=kept))

    def has(self, machine: str, uuid: str) -> list[Any]:
        found = Inventory(devices=(Device(index=0, uuid=uuid, model="x"),))
        return self.tell(InventorySeen(InventoryReport(**self.head(), inventory=found, checks=(), machine=machine)))

    def reports(self, stream: str, seq: int) -> bool:
        """Whether the run is taken."""
        finding = Finding(code="nvml.device_lost", summary="lost", severity=Severity.ERROR)
        run = Run(
            id=f"{stream}{seq}",
            node="n",
            check="nvml",
            verdict=Verdict.FAIL,
            findings=(finding,),
            started_at=self.now,
            duration_s=0.1,
            seq=seq,
        )
        report = Report(**self.head(), stream=stream, after=seq - 1, runs=(run,))
        return any(isinstance(command, StoreRuns) for command in self.tell(ReportSeen(report)))

    def findings(self) -> list[str]:
        view = self.fleet.node("n", self.now)
        assert view is not None
        return [finding.code for finding in view.findings if finding.code.startswith("agent.")]

    def uuid(self) -> str:
        view = self.fleet.node("n", self.now)
        assert view is not None
        return view.devices[0].uuid

    def is_lost(self) -> bool:
        view = self.fleet.node("n", self.now)
        assert view is not None
        return view.lost

    def restart(self) -> None:
        """The next coordinator begins with what was stored."""
        nodes = {it.record.name: it.record for it in self.commands if isinstance(it, SaveNode)}
        streams = {(it.node, it.stream): it.through for it in self.commands if isinstance(it, StoreRuns)}
        self.fleet = Fleet(name="test", epoch=2)
        self.fleet.restore(StoredFleet(nodes=tuple(nodes.values()), streams=streams), self.now)


@pytest.fixture
def name() -> Name:
    """A node that has reported once."""
    name = Name()
    name.beats(FIRST)
    name.has(FIRST, "gpu-of-first")
    assert name.reports("s1", 1)
    return name


@pytest.mark.parametrize("restarted", [False, True])
def test_another_machine_is_refused(name: Name, restarted: bool) -> None:
    """All that it says, also after a restart of the coordinator; a finding says so."""
    if restarted:
        name.restart()
        name.beats(FIRST)
    assert name.findings() == []
    name.beats(OTHER)
    name.has(OTHER, "gpu-of-other")
    assert not name.reports("s2", 1)
    name.tell(GroupReplySeen(Declined(**name.head(), group="g", epoch=1, reason="busy")))
    name.beats(OTHER, online=False, goodbye=True)
    assert (name.uuid(), name.is_lost(), name.findings()) == ("gpu-of-first", False, ["agent.name_in_use"])


def test_the_node_goes_on_meanwhile(name: Name) -> None:
    """Its runs are taken although the last heartbeat came from the other machine."""
    name.beats(OTHER)
    assert name.reports("s1", 2)
    name.tell(ReportRepeated("n", "s1"))
    assert not name.reports("s2", 1)
    name.beats(FIRST)
    assert name.reports("s3", 1)


def test_a_machine_that_comes_first_again_is_known_after_a_restart(name: Name) -> None:
    """What the broker has kept says nothing about who speaks now."""
    name.restart()
    name.beats(FIRST)
    name.beats(OTHER, kept=True)
    assert name.reports("s4", 1)


def test_an_agent_that_names_no_machine_is_taken_for_the_node(name: Name) -> None:
    """Such as one of an earlier version, after a roll-back."""
    name.beats(UNKNOWN)
    name.has(UNKNOWN, "gpu-of-first")
    assert name.reports("s2", 1)
    assert name.findings() == []
    name.beats(OTHER)
    assert not name.reports("s3", 1)


def test_a_name_without_a_machine_belongs_to_the_next_that_names_itself() -> None:
    """Such as when all agents are upgraded."""
    name = Name()
    name.beats(UNKNOWN)
    assert name.reports("s1", 1)
    name.beats(OTHER)
    name.beats(FIRST)
    assert name.findings() == ["agent.name_in_use"]


def test_a_forgotten_name_is_free(name: Name) -> None:
    """The next machine is a new node."""
    name.beats(FIRST, online=False, goodbye=True)
    name.tell(NodeForgotten(node="n", by="ann", reason="replaced"))
    name.beats(OTHER)
    name.has(OTHER, "gpu-of-other")
    assert name.reports("s2", 1)
    assert (name.uuid(), name.findings()) == ("gpu-of-other", [])
    name.beats(FIRST)
    assert name.findings() == ["agent.name_in_use"]


def test_what_was_refused_of_the_next_machine_is_known_then(name: Name) -> None:
    """It was online before the name was free, and sends its inventory only when it connects."""
    name.beats(OTHER)
    name.has(OTHER, "gpu-of-other")
    name.beats(FIRST)
    name.beats(FIRST, online=False, goodbye=True)
    name.beats(OTHER)
    name.tell(NodeForgotten(node="n", by="ann", reason="replaced"))
    name.beats(OTHER)
    assert name.reports("s2", 1)
    assert (name.uuid(), name.findings()) == ("gpu-of-other", [])


def test_a_name_is_free_when_its_scheduler_has_another_machine(name: Name) -> None:
    """Kubernetes has deleted and created the node again."""
    accepted = SchedulerNode(node="n", mark=Mark.NONE, registration="first")
    name.tell(NodeSurveyed(actor="kubernetes", node=accepted))
    again = SchedulerNode(node="n", mark=Mark.OURS, is_new=True, registration="second")
    name.tell(NodeSurveyed(actor="kubernetes", node=again))
    name.beats(OTHER)
    name.has(OTHER, "gpu-of-other")
    assert (name.uuid(), name.findings()) == ("gpu-of-other", [])
