"""All decisions of an agent together: schedule, lease, orders and groups."""

import pytest
from tests.agent.decide.driven_node import (
    BACKGROUND,
    BUSY,
    IDLE,
    PLAN,
    SEVEN,
    SPREAD_S,
    UNKNOWN,
    Driven,
    Size,
    declines,
    ended,
    refusals,
)
from tests.agent.plans import planned

from muster.check import Needs
from muster.model import Verdict
from muster.wire.messages import CoordinatorPresence, RunCheck
from muster_agent.decide.events import (
    ClosePort,
    ConnectToRankZero,
    CoordinatorSeen,
    DueTimeReached,
    OpenPort,
    PortOpened,
    ProbeIdle,
    ReleaseRanks,
    ReportRun,
    StartRun,
    StopRequested,
    StopRun,
    WatchFired,
)
from muster_agent.decide.node import MOST_RUNS
from muster_agent.decide.orders import RanksReady


def test_a_requested_run_starts_at_once_and_is_reported():
    """It has the id that the request gave it, its parameters, and the deadline of the settings."""
    driven = Driven()
    (start,) = driven.order(RunCheck, run="r", check="light", params={"size": 3}, cause="somebody")
    assert isinstance(start, StartRun)
    order = start.order
    assert (order.run, order.check.name, order.params, order.timeout_s, order.cause) == (
        "r",
        "light",
        Size(size=3),
        20.0,
        "somebody",
    )
    assert driven.node.running == ("r",)
    assert driven.feed(ended("r")) == [ReportRun(ended("r").run)]
    assert not driven.node.running


@pytest.mark.parametrize(
    ("check", "params", "words"), [("lite", {}, "did you mean 'light'"), ("light", {"sise": 1}, "size")]
)
def test_a_request_that_does_not_fit_is_answered_with_a_run_that_says_so(check, params, words):
    """Whoever waits for the run learns what would be valid."""
    (report,) = Driven().order(RunCheck, run="r", check=check, params=params, cause="c")
    run = report.run
    assert (run.id, run.check, run.verdict, run.cause) == ("r", check, Verdict.UNKNOWN, "c")
    assert run.findings[0].code == "run.refused"
    assert words in run.findings[0].summary


def test_a_flood_of_requests_starts_a_limited_number_of_processes():
    """The agent answers a request beyond the limit with a refused run. After a run has ended, it accepts one again."""
    driven = Driven()
    for number in range(MOST_RUNS):
        assert isinstance(driven.order(RunCheck, run=f"r{number}", check="light")[0], StartRun)
    (report,) = driven.order(RunCheck, run="beyond", check="light")
    assert (report.run.id, report.run.findings[0].code) == ("beyond", "run.refused")
    assert str(MOST_RUNS) in report.run.findings[0].summary
    driven.feed(ended("r7"))
    assert isinstance(driven.order(RunCheck, run="next", check="light")[0], StartRun)


def test_a_run_that_needs_the_node_waits_for_the_probes():
    """It starts when they say idle, and is watched from then on."""
    driven = Driven()
    assert driven.order(RunCheck, run="r", check="heavy") == [ProbeIdle()]
    (start,) = driven.feed(IDLE)
    assert start.order.run == "r"
    assert driven.node.holder == "r"
    assert driven.feed(DueTimeReached(), 2.0) == [ProbeIdle(afresh=False)]


@pytest.mark.parametrize("answer", [BUSY, UNKNOWN])
def test_a_run_that_does_not_get_the_node_is_reported_as_skipped(answer):
    """Nobody should take silence for health."""
    driven = Driven()
    driven.order(RunCheck, run="r", check="heavy", cause="c")
    (report,) = driven.feed(answer)
    assert (report.run.verdict, report.run.findings[0].code, report.run.cause) == (Verdict.SKIPPED, "run.not_idle", "c")
    assert not driven.node.running


def test_a_group_check_on_this_node_alone_waits_for_nobody():
    """Its ranks pass the rendezvous as soon as all are there."""
    driven = Driven()
    driven.order(RunCheck, run="r", check="collective")
    driven.feed(IDLE)
    assert driven.feed(RanksReady("r")) == [ReleaseRanks("r")]


def test_work_that_arrives_stops_the_run():
    """The lease is passed on only when the run has ended."""
    driven = Driven()
    driven.order(RunCheck, run="r", check="heavy")
    driven.order(RunCheck, run="s", check="heavy")
    driven.feed(IDLE)
    assert driven.feed(BUSY) == [StopRun("r", "somebody else is at work on this node")]
    assert driven.feed(ended("r", "heavy", Verdict.SKIPPED))[1:] == [ProbeIdle()]
    (start,) = driven.feed(IDLE)
    assert start.order.run == "s"


def test_background_runs_start_when_they_are_due():
    """They have the settings' parameters, and the next one comes after the interval."""
    driven = Driven(BACKGROUND)
    first = driven.node.next_due()
    assert driven.feed(DueTimeReached(), first) == [ProbeIdle()]
    (start,) = driven.feed(IDLE, first)
    assert (start.order.check.name, start.order.params, start.order.cause) == ("heavy", Size(size=7), "schedule")
    driven.feed(ended(start.order.run, "heavy"), first + 5)
    assert driven.node.next_due() == first + 600


def test_a_background_run_that_is_skipped_waits_for_its_next_turn():
    """The run is reported, and the beat is kept."""
    driven = Driven(BACKGROUND)
    first = driven.node.next_due()
    driven.feed(DueTimeReached(), first)
    (report,) = driven.feed(BUSY, first + 0.1)
    assert report.run.verdict is Verdict.SKIPPED
    assert driven.node.next_due() == first + 600


def test_nothing_runs_in_the_background_before_the_devices_are_known():
    """Checks are told the devices."""
    driven = Driven(BACKGROUND, devices=None)
    assert driven.feed(DueTimeReached(), SPREAD_S) == []
    assert driven.node.next_due() == float("inf")


def test_an_alert_makes_a_background_check_due_at_once():
    """Its beat stays; a check that does not run in the background is not concerned."""
    driven = Driven({**PLAN, "seen": planned("seen", SEVEN, Needs.NOTHING, interval_s=600.0)})
    first = driven.node.next_due()
    assert driven.feed(WatchFired("light"), first - 1.0) == []
    assert driven.node.next_due() == first
    assert driven.feed(WatchFired("seen"), first - 1.0) == []
    assert driven.node.next_due() == first - 1.0
    (start,) = driven.feed(DueTimeReached(), first - 1.0)
    assert isinstance(start, StartRun)
    assert start.order.check.name == "seen"


def test_a_background_run_yields_to_a_group():
    """The group gets the node when the run has ended."""
    driven = Driven({**PLAN, **BACKGROUND})
    due = driven.node.next_due()
    driven.feed(DueTimeReached(), due)
    (start,) = driven.feed(IDLE, due)
    driven.join(due)
    driven.feed(PortOpened("g", "10.0.0.1", 4000), due)
    assert driven.prepare(due) == [StopRun(start.order.run, "the node is needed for a requested run")]
    assert driven.feed(ended(start.order.run, "heavy", Verdict.SKIPPED), due)[1:] == [ProbeIdle()]
    assert driven.feed(IDLE, due) == [ConnectToRankZero("g", "10.0.0.1", 4000, 5.0)]


def slowed_down(times, epoch=1):
    """A heartbeat of a coordinator whose agents are to run checks this many times less often."""
    return CoordinatorSeen(CoordinatorPresence(sent_at=1.0, online=True, epoch=epoch, slowdown=times))


def test_a_slowdown_leaves_out_background_runs_until_it_is_over():
    """The coordinator is overloaded; what it requests is carried out as before."""
    driven = Driven({"light": planned("light", SEVEN, Needs.NOTHING, interval_s=60.0)})
    first = driven.node.next_due()
    (start,) = driven.feed(DueTimeReached(), first)
    driven.feed(ended(start.order.run), first)
    driven.feed(slowed_down(3), first)
    assert driven.node.next_due() == first + 180.0
    assert [type(command) for command in driven.order(RunCheck, run="r", check="light", cause="c")] == [StartRun]
    driven.feed(slowed_down(1), first)
    assert driven.node.next_due() == first + 60.0


def test_a_former_leader_slows_down_nothing():
    """Its last heartbeat may come after the first of the new one."""
    driven = Driven({"light": planned("light", SEVEN, Needs.NOTHING, interval_s=60.0)})
    first = driven.node.next_due()
    (start,) = driven.feed(DueTimeReached(), first)
    driven.feed(ended(start.order.run), first)
    driven.feed(slowed_down(1, epoch=2), first)
    driven.feed(slowed_down(3, epoch=1), first)
    assert driven.node.next_due() == first + 60.0
    driven.feed(slowed_down(3, epoch=2), first)
    assert driven.node.next_due() == first + 180.0


def test_a_newer_epoch_ends_the_group_of_an_older_one():
    """Whoever leads now knows nothing of it."""
    driven = Driven()
    driven.join()
    presence = CoordinatorPresence(sent_at=1.0, online=True, epoch=2)
    assert driven.feed(CoordinatorSeen(presence)) == [ClosePort("g")]
    assert refusals(driven.join(epoch=1)) == ["old_epoch"]


def test_the_same_epoch_leaves_the_group_alone():
    """Heartbeats of the coordinator change nothing."""
    driven = Driven()
    driven.join()
    assert driven.feed(CoordinatorSeen(CoordinatorPresence(sent_at=1.0, online=True, epoch=1))) == []


def test_an_order_of_a_newer_epoch_ends_the_old_group_and_is_carried_out():
    """The order itself shows that another coordinator leads."""
    driven = Driven()
    driven.join()
    assert driven.join(group="h", epoch=2) == [ClosePort("g"), OpenPort("h")]


def test_an_expired_invitation_is_declined_and_counted():
    """Whoever invited has long given up."""
    driven = Driven()
    driven.feed(CoordinatorSeen(CoordinatorPresence(sent_at=1.0, online=True, epoch=1)), 1.0)
    commands = driven.join(now=20.0, sent_at=10.0)
    assert (refusals(commands), declines(commands)) == (["expired"], [("expired", "g")])


def test_stopping_ends_runs_and_the_group_and_takes_nothing_new():
    """Runs that only waited are forgotten."""
    driven = Driven({**PLAN, **BACKGROUND})
    driven.order(RunCheck, run="r", check="light")
    driven.order(RunCheck, run="waits", check="heavy")
    driven.feed(StopRequested())
    assert driven.node.running == ("r",)
    assert driven.feed(IDLE) == []
    assert driven.feed(ended("r", verdict=Verdict.SKIPPED)) == [ReportRun(ended("r", verdict=Verdict.SKIPPED).run)]
    assert driven.feed(DueTimeReached(), SPREAD_S) == []
    assert declines(driven.join(now=40.0)) == [("stopping", "g")]
    assert refusals(driven.order(RunCheck, now=40.0, run="s", check="light")) == ["stopping"]


def test_stopping_declines_the_group():
    """The others are told that this node is gone."""
    driven = Driven()
    driven.join()
    assert declines(driven.feed(StopRequested())) == [("stopping", "g")]
