"""The quarantine in the fleet: what nodes report leads to decisions, and these to orders, sweeps and stories."""

import pytest
from tests.coordinator.quarantining_drill import LOST, NODES, SLOW, START, Drill, Stored, check, rules

from muster.model import Finding, Inventory, ServiceState, Severity, Verdict
from muster.quarantine_settings import AcceptanceTest, ReturnSettings
from muster.transition import Effect
from muster.wire.messages import InventoryReport
from muster_coordinator.model.events import (
    InventorySeen,
    SweepAbortRequested,
)
from muster_coordinator.model.nodes import NodeRecord


def test_what_must_be_found_twice_is_looked_at_again_at_once():
    """The check is ordered once more; when it finds the same, the node goes, and everybody is told."""
    drill = Drill(rules()).start(*NODES)
    drill.report("n1", SLOW)
    assert drill.state() is ServiceState.IN_SERVICE
    (node, order) = drill.ordered[-1]
    assert (node, order.check) == ("n1", "gemm")
    drill.answer_order(SLOW)
    assert drill.state() is ServiceState.CORDONED
    assert (drill.acts[-1].node, drill.acts[-1].codes, drill.acts[-1].is_out) == ("n1", (SLOW,), True)
    told = drill.kinds()
    assert told[told.index("found") :] == [
        "found",
        "health",
        "policy",
        "second_opinion",
        "run_requested",
        "health",
        "policy",
        "service",
        "action",
    ]


def test_a_second_opinion_that_says_otherwise_leaves_the_node_in_service():
    """And nobody is asked about the same run again."""
    drill = Drill(rules()).start(*NODES)
    drill.report("n1", SLOW)
    drill.answer_order()
    drill.pass_time(5)
    assert (drill.state(), drill.ordered) == (ServiceState.IN_SERVICE, [])


def test_a_node_proves_itself_by_runs():
    """What it was taken out for and what is wanted besides, one after the other; then it is back."""
    drill = Drill(rules(tests=(AcceptanceTest(check="gemm"),))).start(*NODES)
    for _ in NODES:
        drill.answer_order()
    drill.report("n1", LOST)
    assert drill.state() is ServiceState.CORDONED
    drill.report("n1")
    drill.report("n1")
    drill.pass_time(2)
    assert drill.state() is ServiceState.PROBATION
    assert [order.check for _, order in drill.ordered] == ["gemm"]
    drill.answer_order()
    drill.pass_time(2)
    assert drill.state() is ServiceState.IN_SERVICE
    assert [it.after for it in drill.acts if it.node == "n1"] == ["IN_SERVICE", "CORDONED", "PROBATION", "IN_SERVICE"]


@pytest.mark.parametrize(
    ("codes", "verdict", "after"),
    [
        ((LOST,), None, ServiceState.CORDONED),
        ((), Verdict.SKIPPED, ServiceState.PROBATION),
        ((), Verdict.UNKNOWN, ServiceState.PROBATION),
    ],
)
def test_who_does_not_pass_stays_out(codes, verdict, after):
    """One that fails goes back; what was skipped or could not tell does not count."""
    drill = Drill(rules()).start(*NODES)
    drill.report("n1", LOST)
    drill.report("n1")
    drill.report("n1")
    drill.pass_time(1)
    drill.answer_order(*codes, verdict=verdict)
    assert drill.state() is after


def test_a_sweep_that_says_nothing_about_the_node_does_not_count():
    """One that somebody ends has neither cleared nor convicted it: it is begun again later."""
    returning = ReturnSettings(wait_s=0.0, pause_s=1.0, passes=1, partners=1)
    drill = Drill(rules(returning=returning)).start(*NODES)
    drill.report("n1", LOST)
    drill.report("n1")
    drill.report("n1")
    drill.pass_time(1)
    drill.answer_order()
    (sweep,) = drill.fleet.sweeps()
    assert (sweep.check, len(sweep.nodes), "n1" in sweep.nodes) == ("collective", 3, True)
    drill.feed(SweepAbortRequested(sweep.id, "not now"))
    assert drill.state() is ServiceState.PROBATION
    assert drill.fleet.case("n1").probation.trouble == "collective reported UNKNOWN"


def test_after_a_restart_nothing_is_told_that_was_done():
    """The cases are as they were, and so is what the fleet shows."""
    drill = Drill(rules()).start(*NODES)
    drill.report("n1", LOST)
    again = drill.restarted()
    again.pass_time(2)
    assert (again.state("n1"), again.state("n2")) == (ServiceState.CORDONED, ServiceState.IN_SERVICE)
    assert again.fleet.node("n1", again.now).service is ServiceState.CORDONED
    assert again.fleet.latest_transition("n1").outcomes["slurm"].effect is Effect.DONE
    assert again.acts == []


def test_after_a_restart_what_was_not_answered_is_told_again():
    """Under the same id."""
    drill = Drill(rules()).start(*NODES)
    drill.mute = True
    drill.report("n1", LOST)
    again = drill.restarted()
    assert [it.id for it in again.acts] == [drill.acts[-1].id]
    assert again.fleet.latest_transition("n1").told


def test_a_dry_run_is_shown_as_one_also_after_a_restart():
    """Until it is over: then what it decided counts no more, and what is done follows from how the node is."""
    drill = Drill(rules("dry-run")).start(*NODES)
    drill.report("n1", LOST)
    again = drill.restarted()
    view = again.fleet.node("n1", again.now)
    assert (view.service, view.dry_run) == (ServiceState.CORDONED, True)
    enforced = again.restarted(settings=rules())
    enforced.beat("n1")
    assert enforced.fleet.node("n1", enforced.now).dry_run is False
    assert [(it.node, it.before, it.after, it.dry_run) for it in enforced.acts] == [
        ("n1", "IN_SERVICE", "CORDONED", False)
    ]


def test_an_old_database_knows_the_service_states_only():
    """Each node gets a case in the state in which it was; nobody is told anything."""
    states = {"n1": ServiceState.IN_SERVICE, "n2": ServiceState.ACCEPTING}
    records = tuple(
        NodeRecord(name=node, online=True, first_seen=START, last_seen=START, service=state)
        for node, state in states.items()
    )
    stored = Stored()
    stored.nodes = {record.name: record for record in records}
    drill = Drill(rules(), stored=stored)
    assert {record.node: record.state for record in drill.fleet.quarantine_records()} == states
    assert drill.acts == []


# New nodes that are not accepted


def test_a_node_that_is_not_accepted_says_why():
    """Its inventory, then the checks that have not reported, then the worst that was found; nothing once it is fit."""
    drill = Drill(rules()).start()
    drill.beat("n1")
    assert drill.fleet.case("n1").unfit_because == "its inventory has not arrived yet"
    checks = (check("gemm"), check("host"))
    inventory = InventoryReport(id="m", sent_at=START, node="n1", inventory=Inventory(), checks=checks)
    drill.feed(InventorySeen(inventory))
    assert drill.fleet.case("n1").unfit_because == "not measured yet: gemm, host"
    drill.report("n1", verdict=Verdict.SKIPPED)
    assert drill.fleet.case("n1").unfit_because == "not measured yet: host"
    clock = Finding(code="host.clock_unsynchronised", summary="nothing keeps it right", severity=Severity.WARNING)
    drill.report("n1", check="host", findings=(clock,), verdict=Verdict.WARN)
    assert drill.state() is ServiceState.ACCEPTING
    why = "its health is DEGRADED: host.clock_unsynchronised: nothing keeps it right"
    assert drill.fleet.case("n1").unfit_because == why
    drill.report("n1", check="host")
    assert (drill.state(), drill.fleet.case("n1").unfit_because) == (ServiceState.IN_SERVICE, "")


# Evidence of nodes whose clocks are off

CLOCKS = pytest.mark.parametrize("ahead_s", [0.0, 300.0, 30 * 86_400.0, -300.0, -7200.0, -START])


@CLOCKS
def test_evidence_counts_whatever_the_clock_of_its_node_says(ahead_s):
    """A fatal finding takes its node out at once. It is dated by our clock, and the run stored as it was reported."""
    drill = Drill(rules()).start(*NODES)
    drill.report("n1", LOST, ahead_s=ahead_s)
    assert drill.state() is ServiceState.CORDONED
    (finding,) = drill.fleet.case("n1").findings
    assert (finding.since, finding.seen) == pytest.approx((drill.now, drill.now), abs=1)
    assert drill.stored.runs[-1].started_at == pytest.approx(drill.now + ahead_s, abs=1)
    assert drill.stored.behind_s == pytest.approx(-ahead_s, abs=1)


@CLOCKS
@pytest.mark.parametrize(("age_s", "after"), [(1800.0, ServiceState.CORDONED), (7200.0, ServiceState.IN_SERVICE)])
def test_evidence_that_waited_in_the_outbox_is_as_old_as_it_is(ahead_s, age_s, after):
    """Also when the clock is off besides: what was found an hour ago must be found again.

    It counts once the node has nothing more to deliver.
    """
    drill = Drill(rules()).start(*NODES)
    drill.pass_time(1)
    drill.report("n1", LOST, ahead_s=max(ahead_s, age_s - START), age_s=age_s)
    assert drill.state() is ServiceState.IN_SERVICE
    drill.beat("n1")
    assert drill.state() is after
    (finding,) = drill.fleet.case("n1").findings
    assert finding.seen == pytest.approx(drill.now - age_s, abs=2)


def test_evidence_keeps_its_date_over_a_restart():
    """It is not dated again by a clock that was off when its run was stored."""
    drill = Drill(rules("observe")).start(*NODES)
    drill.report("n1", SLOW, ahead_s=-7200.0)
    drill.pass_time(5)
    drill.report("n1", SLOW, ahead_s=-7200.0)
    before = drill.fleet.case("n1").findings
    again = drill.restarted(settings=rules())
    assert again.fleet.case("n1").findings == before
    again.beat("n1")
    assert again.state() is ServiceState.CORDONED


@pytest.mark.parametrize(
    ("ahead_s", "said"), [(300.0, "300 s ahead of the coordinator's"), (-90.0, "90 s behind the coordinator's")]
)
def test_a_clock_that_is_off_by_more_than_a_minute_is_shown(ahead_s, said):
    """In the story and in the view, also after a restart, until it is right again. One late report says nothing."""
    drill = Drill(rules()).start(*NODES)
    drill.report("n1", ahead_s=-90.0)
    for _ in range(2):
        drill.report("n1")
    assert "clock" not in drill.kinds()
    for _ in range(4):
        drill.report("n1", ahead_s=ahead_s)
    again = drill.restarted()
    assert again.fleet.node("n1", again.now).clock_ahead_s == pytest.approx(ahead_s, abs=0.1)
    for _ in range(3):
        again.report("n1")
    assert again.fleet.node("n1", again.now).clock_ahead_s is None
    told = [entry.text for entry in [*drill.story, *again.story] if entry.kind == "clock"]
    assert told == [f"its clock is {said}", "its clock is right again"]


# Orders that get lost


def test_a_test_whose_order_is_lost_is_asked_for_again():
    """When it has expired and its run would have ended: 20 s for the check, and a minute and a half around it."""
    drill = Drill(rules()).start(*NODES)
    drill.report("n1", LOST)
    asked = []
    for _ in range(13):
        for node in NODES:
            drill.report(node)
        drill.pass_time(10)
        asked.append(len(drill.ordered))
    assert asked == [0] * 1 + [1] * 11 + [2]
