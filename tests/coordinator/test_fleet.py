"""The fleet: what each event of a node leads to."""

from collections.abc import Iterable
from typing import Any

import pytest
from tests.coordinator.fleets import check, fleet, head, inventory, kinds, presence, report, run, views

from muster.check import CheckInfo, Needs, Scope
from muster.model import Health, Inventory, ServiceState, Verdict
from muster.wire.messages import InventoryReport, PluginInfo
from muster.wire.report_head import ReportHead
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    AppendStory,
    FleetCommand,
    InventorySeen,
    ReportRepeated,
    SendAck,
    StoreRuns,
    Ticked,
)
from muster_coordinator.model.quarantine_events import SaveTransition
from muster_coordinator.topology.selection import parse_selection


def test_a_new_node_joins() -> None:
    """The first sign of life makes a node known; the next ones change nothing that is stored."""
    made = Fleet(name="test", epoch=7)
    assert kinds(made.handle(presence("a"), 5.0)) == ["tell joined", "SaveNode", "announce node", "SaveEvidence"]
    assert made.handle(presence("a"), 6.0) == []
    view = made.node("a", 6.0)
    assert view is not None
    assert (view.health, view.service, view.lost, view.last_seen, view.outbox) == (
        Health.UNKNOWN,
        ServiceState.ACCEPTING,
        False,
        6.0,
        3,
    )
    assert made.node("b", 6.0) is None


def test_the_will_of_an_unknown_node_means_nothing() -> None:
    """A broker may still hold the will of a node that this fleet never met."""
    made = Fleet(name="test", epoch=7)
    assert made.handle(presence("a", online=False), 5.0) == []
    assert views(made, 5.0) == []


def test_a_node_is_lost_after_three_heartbeats_and_comes_back() -> None:
    """Each step is told once; lost says nothing about health."""
    made = fleet("a")
    assert made.handle(Ticked(), 30.0) == []
    assert kinds(made.handle(Ticked(), 30.1)) == ["tell lost", "SaveNode", "announce node", "tell policy"]
    assert made.handle(Ticked(), 31.0) == []
    assert [view.lost for view in views(made, 31.0)] == [True]
    assert kinds(made.handle(presence("a"), 40.0)) == ["tell back", "SaveNode", "announce node"]
    assert kinds(made.handle(presence("a", online=False), 41.0)) == [
        "tell lost",
        "SaveNode",
        "announce node",
        "tell policy",
    ]
    assert made.handle(presence("a", online=False), 42.0) == []


def selected(made: Fleet, selection: str) -> list[str]:
    """The nodes that a selection chooses, by name."""
    return list(parse_selection(selection).fitting(made.candidates(made.names), made.declared).nodes)


def test_a_lost_node_is_healthy_nowhere() -> None:
    """Selections, counts and the API agree, and its last health is still known; a fault does not go away."""
    made = fleet("good", "bad", "here")
    made.handle(report(run(1, Verdict.FAIL, "bad"), run(2, Verdict.FAIL, "bad")), 1.0)
    for node in ("good", "here"):
        made.handle(report(run(1, node=node)), 1.0)
    made.handle(presence("here"), 20.0)
    made.handle(Ticked(), 40.0)
    shown = {view.name: (view.lost, view.health, view.last_health) for view in views(made, 40.0)}
    assert shown == {
        "good": (True, Health.UNKNOWN, Health.HEALTHY),
        "bad": (True, Health.FAILED, Health.FAILED),
        "here": (False, Health.HEALTHY, Health.HEALTHY),
    }
    assert made.view(40.0).health == {Health.UNKNOWN: 1, Health.FAILED: 1, Health.HEALTHY: 1}
    for health in Health:
        expected = sorted(name for name, (_, now, _) in shown.items() if now is health)
        assert selected(made, f"health={health}") == expected
    assert selected(made, "health!=HEALTHY") == selected(made, "health=LOST") == ["bad", "good"]


def test_the_first_healthy_run_puts_a_node_into_service() -> None:
    """The run is stored before it is acknowledged, and the story names it as the cause."""
    made = fleet("a")
    commands = made.handle(report(run(1)), 1.0)
    assert kinds(commands) == [
        "StoreRuns",
        "announce run",
        "tell health",
        "announce node",
        "SendAck",
        "SaveNode",
        "announce node",
        "tell service",
        "SaveEvidence",
    ]
    assert commands[0] == StoreRuns("a", "s", 1, (run(1),), at=1.0)
    told = [command.entry for command in commands if isinstance(command, AppendStory)]
    (action,) = (command.record for command in commands if isinstance(command, SaveTransition))
    assert (action.transition.before, action.transition.after) == ("ACCEPTING", "IN_SERVICE")
    assert [(entry.cause, entry.text) for entry in told] == [
        ("r1", "UNKNOWN to HEALTHY: everything passes"),
        (action.transition.id, "ACCEPTING to IN_SERVICE: all checks reported, and it is healthy"),
    ]


def background(*names: str, **more: Any) -> tuple[CheckInfo, ...]:
    """Checks that a node runs by itself every 15 seconds."""
    return tuple(check(name, Scope.NODE).model_copy(update={"cadence_s": 15.0, **more}) for name in names)


def announced(made: Fleet, *checks: CheckInfo, now: float = 1.5) -> list[FleetCommand]:
    return made.handle(InventorySeen(InventoryReport(**head("a"), inventory=Inventory(), checks=checks)), now)


def reported(made: Fleet, seq: int, name: str, verdict: Verdict = Verdict.PASS) -> list[FleetCommand]:
    return made.handle(report(run(seq, verdict).model_copy(update={"check": name}), after=seq - 1), 1.0 + seq)


def health_told(commands: Iterable[FleetCommand]) -> list[str]:
    """The texts of the entries of stories about the health of nodes."""
    entries = (command.entry for command in commands if isinstance(command, AppendStory))
    return [entry.text for entry in entries if entry.kind == "health"]


def test_a_new_node_waits_for_every_check_that_runs_by_itself() -> None:
    """It is UNKNOWN and gets no work until the last reports, even SKIPPED; one for idle devices is not waited for."""
    checks = (*background("nvml", "host"), *background("training", needs=Needs.IDLE_DEVICE))
    made, seen, told = Fleet(name="test", epoch=7), [], []
    for seq, name in enumerate(("plugins", "nvml"), 1):
        told += health_told(reported(made, seq, name))
        if name == "plugins":
            told += health_told(announced(made, *checks))
        seen += [(view.health, view.service, view.reasons) for view in views(made, 2.0)]
    assert kinds(commands := reported(made, 3, "host", Verdict.SKIPPED))[2:] == [
        "tell health",
        "announce node",
        "SendAck",
        "SaveNode",
        "announce node",
        "tell service",
        "SaveEvidence",
    ]
    assert seen == [
        (Health.UNKNOWN, ServiceState.ACCEPTING, ("not measured yet: nvml, host",)),
        (Health.UNKNOWN, ServiceState.ACCEPTING, ("not measured yet: host",)),
    ]
    (view,) = views(made, 3.0)
    assert (view.health, view.service, view.reasons) == (Health.HEALTHY, ServiceState.IN_SERVICE, ())
    assert [*told, *health_told(commands)] == ["UNKNOWN to HEALTHY: everything passes"]


@pytest.mark.parametrize(("verdict", "health"), [(Verdict.FAIL, Health.SUSPECT), (Verdict.WARN, Health.DEGRADED)])
def test_a_fault_does_not_wait_for_the_other_checks(verdict: Verdict, health: Health) -> None:
    """Only a pass says too little by itself."""
    made = Fleet(name="test", epoch=7)
    announced(made, *background("nvml", "host"))
    reported(made, 1, "nvml", verdict)
    (view,) = views(made, 2.0)
    assert view.health is health


def test_a_node_without_background_checks_is_healthy_with_its_first_pass() -> None:
    """There is nothing to wait for if all its checks run on request."""
    made = Fleet(name="test", epoch=7)
    announced(made, *background("training", needs=Needs.IDLE_NODE), check("gemm", Scope.NODE))
    assert health_told(reported(made, 1, "plugins")) == ["UNKNOWN to HEALTHY: everything passes"]


def test_a_check_that_is_new_on_a_node_must_report_too() -> None:
    """What it looks at has never been measured, so the node is UNKNOWN for so long, but stays in service."""
    made = Fleet(name="test", epoch=7)
    announced(made, *background("nvml"))
    reported(made, 1, "nvml")
    commands = announced(made, *background("nvml", "host"), now=3.0)
    assert health_told(commands) == ["HEALTHY to UNKNOWN: not measured yet: host"]
    (view,) = views(made, 3.0)
    assert (view.health, view.service) == (Health.UNKNOWN, ServiceState.IN_SERVICE)
    assert health_told(reported(made, 2, "host")) == ["UNKNOWN to HEALTHY: everything passes"]


def test_a_node_whose_checks_are_not_known_stays_out_of_service() -> None:
    """That its plugins loaded is the first that it reports, and says nothing about its hardware."""
    made = Fleet(name="test", epoch=7)
    assert health_told(reported(made, 1, "plugins")) == []
    (view,) = views(made, 1.0)
    assert (view.health, view.service) == (Health.UNKNOWN, ServiceState.ACCEPTING)
    assert view.reasons == ("its inventory has not arrived yet",)


def test_another_pass_is_stored_and_acknowledged_and_nothing_else() -> None:
    """The usual case does the least."""
    made = fleet("a")
    made.handle(report(run(1)), 1.0)
    commands = made.handle(report(run(2), after=1), 2.0)
    assert kinds(commands) == ["StoreRuns", "announce run", "SendAck"]


def test_quiet_runs_wait_less_than_the_interval_of_the_check_that_runs_most_often() -> None:
    """So short cadences keep their pace; a group check counts for none."""
    made = Fleet(name="test", epoch=7)
    rare = check("gemm", Scope.NODE).model_copy(update={"cadence_s": 3600.0})
    often = check("nvml", Scope.NODE).model_copy(update={"cadence_s": 5.0})
    group = check("all_reduce", Scope.GROUP).model_copy(update={"cadence_s": 1.0})
    held = []
    for number, checks in enumerate(((rare, group), (rare, group, often)), start=1):
        report_of = InventoryReport(**head("a"), inventory=Inventory(), checks=checks)
        made.handle(InventorySeen(report_of), 0.0)
        commands = made.handle(report(run(number), after=number - 1), float(number))
        held += [command.ack.hold_s for command in commands if isinstance(command, SendAck)]
    assert [9.0 <= held[0] <= 12.0, 3.0 <= held[1] <= 4.0] == [True, True]


def test_duplicates_and_gaps_are_answered_and_counted() -> None:
    """A duplicate is acknowledged again, a gap asks for everything from the oldest."""
    made = fleet("a")
    made.handle(report(run(1)), 1.0)
    answers = [made.handle(report(run(1)), 2.0), made.handle(report(run(9), after=8), 3.0)]
    acks = [command.ack for commands in answers for command in commands if isinstance(command, SendAck)]
    assert [(ack.stored_through, ack.gap) for ack in acks] == [(1, False), (1, True)]
    assert [kinds(commands) for commands in answers] == [["SendAck"], ["SendAck"]]
    assert (made.counts.runs, made.counts.duplicates, made.counts.gaps) == (1, 1, 1)


def test_a_report_that_was_taken_already_is_acknowledged_undecoded() -> None:
    """The acknowledgement says what was taken, and the node counts as heard."""
    made = fleet("a")
    made.handle(report(run(2)), 1.0)
    known = [made.is_known("a", ReportHead(stream, 0, number)) for stream, number in (("s", 2), ("s", 3), ("t", 1))]
    assert known == [True, False, False]
    commands = made.handle(ReportRepeated("a", "s"), 25.0)
    [ack] = [command.ack for command in commands if isinstance(command, SendAck)]
    assert (kinds(commands), ack.stored_through, ack.gap) == (["SendAck"], 2, False)
    assert (made.counts.reports, made.counts.repeated_reports, made.counts.runs) == (2, 1, 1)
    assert kinds(made.handle(Ticked(), 50.0)) == []  # less than three heartbeats after 25 s


def test_a_failure_is_told_with_its_findings() -> None:
    """The story says what was found, then from what to what, why, because of which findings, and what follows."""
    made = fleet("a")
    told = [
        command.entry for command in made.handle(report(run(1, Verdict.FAIL)), 1.0) if isinstance(command, AppendStory)
    ]
    assert [(entry.kind, entry.text, entry.cause) for entry in told] == [
        ("found", "gemm.slow: slow", "r1"),
        ("health", "UNKNOWN to SUSPECT: gemm failed; a second failure confirms it, two passes in a row clear it", "r1"),
        ("policy", "gemm.slow does not require draining (no policy row)", None),
    ]
    assert told[1].data["findings"] == ["gemm.slow"]
    view = made.node("a", 1.0)
    assert view is not None
    assert (view.health, [finding.code for finding in view.findings]) == (Health.SUSPECT, ["gemm.slow"])
    assert "tell found" not in kinds(made.handle(report(run(2, Verdict.FAIL), after=1), 2.0))


def test_a_plugin_that_failed_is_told_once() -> None:
    """The same inventory again is no news."""
    broken = PluginInfo(name="bad", distribution=None, version=None, status="failed", error="boom")
    made = fleet("a")
    assert kinds(made.handle(inventory("a", plugins=(broken,)), 1.0)) == [
        "tell plugin_failed",
        "SaveNode",
        "announce node",
    ]
    assert made.handle(inventory("a", plugins=(broken,)), 2.0) == []
