"""All decisions of an agent together: schedule, lease, orders and groups."""

import itertools
from typing import Any

import pytest
from tests.agent.plans import planned

from muster.check import Idleness, Needs, Params, Scope
from muster.model import Device, Inventory, RankResult, Run, Verdict
from muster.wire.messages import Abort, CoordinatorPresence, Declined, Join, Prepare, RunCheck, Start
from muster_agent.decide.events import (
    ClosePort,
    CommandReceived,
    ConnectToRankZero,
    CoordinatorSeen,
    CountRefusal,
    IdlenessSeen,
    InventoryFound,
    NodeReserved,
    OpenPort,
    PortOpened,
    ProbeIdle,
    RankZeroReached,
    ReleaseRanks,
    ReleaseReservation,
    ReportRun,
    ReservationFailed,
    ReservationReleased,
    ReserveNode,
    SendReply,
    StartRun,
    StopRequested,
    StopRun,
    Ticked,
    WatchFired,
)
from muster_agent.decide.node import MOST_RUNS, NodeAgent
from muster_agent.decide.orders import RanksReady, RunEnded

IDLE, BUSY, UNKNOWN = (IdlenessSeen(idleness) for idleness in Idleness)

SPREAD_S = 30.0


class Size(Params):
    size: int = 1


SEVEN = Size(size=7)

PLAN = {
    "light": planned("light", SEVEN, Needs.NOTHING),
    "heavy": planned("heavy", SEVEN, Needs.IDLE_DEVICE),
    "collective": planned("collective", SEVEN, Needs.IDLE_NODE, Scope.GROUP),
}
BACKGROUND = {"heavy": planned("heavy", SEVEN, Needs.IDLE_DEVICE, interval_s=600.0)}
DEVICES = tuple(Device(index=index, uuid=f"u{index}", model="m") for index in range(2))


class Driven:
    """A node whose ids are `id-0`, `id-1` and so on, and whose time stands still unless it is said."""

    def __init__(self, plan=PLAN, devices=DEVICES, **settings) -> None:
        ids = itertools.count()
        self.numbers = itertools.count()
        self.node = NodeAgent("n", plan, lambda: f"id-{next(ids)}", 0.0, spread_s=SPREAD_S, **settings)
        if devices is not None:
            self.feed(InventoryFound(Inventory(devices=devices)))

    def feed(self, event, now: float = 1.0):
        return self.node.handle(event, now)

    def order(self, kind, now: float = 1.0, *, epoch: int = 1, sent_at: float | None = None, **fields):
        sent = now if sent_at is None else sent_at
        header = {"id": f"command-{next(self.numbers)}", "epoch": epoch, "sent_at": sent, "expires_at": sent + 5}
        return self.feed(CommandReceived(kind(**header, **fields)), now)

    def join(self, now: float = 1.0, **fields):
        return self.order(Join, now, **{"group": "g", "check": "collective", "timeout_s": 30.0, **fields})

    def prepare(self, now: float = 1.0, **fields):
        place = {"first_rank": 0, "world_size": 4, "master_addr": "10.0.0.1", "master_port": 4000}
        return self.order(Prepare, now, **{"group": "g", **place, **fields})


def ended(run: str, check: str = "light", verdict: Verdict = Verdict.PASS) -> RunEnded:
    rank = RankResult(rank=0, verdict=verdict, duration_s=1.0)
    return RunEnded(Run(id=run, node="n", check=check, verdict=verdict, started_at=1.0, duration_s=1.0), (rank,))


def declines(commands):
    messages = [command.message for command in commands if isinstance(command, SendReply)]
    return [(message.reason, message.group) for message in messages if isinstance(message, Declined)]


def refusals(commands):
    return [command.kind for command in commands if isinstance(command, CountRefusal)]


# Requests


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
    assert driven.feed(Ticked(), 2.0) == [ProbeIdle(afresh=False)]


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


# Background runs


def test_background_runs_start_when_they_are_due():
    """They have the settings' parameters, and the next one comes after the interval."""
    driven = Driven(BACKGROUND)
    first = driven.node.next_due()
    assert driven.feed(Ticked(), first) == [ProbeIdle()]
    (start,) = driven.feed(IDLE, first)
    assert (start.order.check.name, start.order.params, start.order.cause) == ("heavy", Size(size=7), "schedule")
    driven.feed(ended(start.order.run, "heavy"), first + 5)
    assert driven.node.next_due() == first + 600


def test_a_background_run_that_is_skipped_waits_for_its_next_turn():
    """The run is reported, and the beat is kept."""
    driven = Driven(BACKGROUND)
    first = driven.node.next_due()
    driven.feed(Ticked(), first)
    (report,) = driven.feed(BUSY, first + 0.1)
    assert report.run.verdict is Verdict.SKIPPED
    assert driven.node.next_due() == first + 600


def test_nothing_runs_in_the_background_before_the_devices_are_known():
    """Checks are told the devices."""
    driven = Driven(BACKGROUND, devices=None)
    assert driven.feed(Ticked(), SPREAD_S) == []
    assert driven.node.next_due() == float("inf")


def test_an_alert_makes_a_background_check_due_at_once():
    """Its beat stays; a check that does not run in the background is not concerned."""
    driven = Driven({**PLAN, "seen": planned("seen", SEVEN, Needs.NOTHING, interval_s=600.0)})
    first = driven.node.next_due()
    assert driven.feed(WatchFired("light"), first - 1.0) == []
    assert driven.node.next_due() == first
    assert driven.feed(WatchFired("seen"), first - 1.0) == []
    assert driven.node.next_due() == first - 1.0
    (start,) = driven.feed(Ticked(), first - 1.0)
    assert isinstance(start, StartRun)
    assert start.order.check.name == "seen"


def test_a_background_run_yields_to_a_group():
    """The group gets the node when the run has ended."""
    driven = Driven({**PLAN, **BACKGROUND})
    due = driven.node.next_due()
    driven.feed(Ticked(), due)
    (start,) = driven.feed(IDLE, due)
    driven.join(due)
    driven.feed(PortOpened("g", "10.0.0.1", 4000), due)
    assert driven.prepare(due) == [StopRun(start.order.run, "the node is needed for a run that was asked for")]
    assert driven.feed(ended(start.order.run, "heavy", Verdict.SKIPPED), due)[1:] == [ProbeIdle()]
    assert driven.feed(IDLE, due) == [ConnectToRankZero("g", "10.0.0.1", 4000, 5.0)]


# Groups


def test_a_group_from_the_invitation_to_the_end():
    """The node brings a rank for each device, and its lease is free again at the end."""
    driven = Driven()
    assert driven.join() == [OpenPort("g")]
    (accepted,) = driven.feed(PortOpened("g", "10.0.0.1", 4000))
    assert accepted.message.ranks == 2
    assert driven.prepare() == [ProbeIdle()]
    assert driven.feed(IDLE) == [ConnectToRankZero("g", "10.0.0.1", 4000, 5.0)]
    (start,) = driven.feed(RankZeroReached("g"))
    run = start.order.run
    assert driven.node.running == (run,)
    (ready,) = driven.feed(RanksReady(run))
    assert ready.message.kind == "ready"
    assert driven.order(Start, group="g") == [ReleaseRanks(run)]
    report, finished, closed = driven.feed(ended(run, "collective"))
    assert (report.run.id, finished.message.kind, closed) == (run, "finished", ClosePort("g"))
    assert driven.node.holder is None
    assert not driven.node.running
    assert driven.join() == [OpenPort("g")]


def test_a_node_without_devices_brings_one_rank():
    """Groups work on processors as well."""
    driven = Driven(devices=())
    driven.join()
    (accepted,) = driven.feed(PortOpened("g", "10.0.0.1", 4000))
    assert accepted.message.ranks == 1


def test_a_group_on_a_busy_node_is_declined():
    """Unknown counts as busy; the port is given back."""
    driven = Driven()
    driven.join()
    driven.feed(PortOpened("g", "10.0.0.1", 4000))
    driven.prepare()
    commands = driven.feed(UNKNOWN)
    assert declines(commands) == [("not_idle", "g")]
    assert ClosePort("g") in commands


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"check": "collectiv"}, "unknown_check"),
        ({"params": {"size": "large"}}, "bad_params"),
        ({"devices": 3}, "too_few_devices"),
        ({"devices": 0}, "too_few_devices"),
    ],
)
def test_an_invitation_that_does_not_fit_is_declined(fields, reason):
    """No session begins."""
    driven = Driven()
    assert declines(driven.join(**fields)) == [(reason, "g")]
    assert driven.node.next_due() == float("inf")


@pytest.mark.parametrize(("expected", "declined"), [(None, []), (2, []), (3, [("too_few_devices", "g")])])
def test_a_node_that_lacks_devices_declines_a_group(expected, declined):
    """It is named before anything runs, with what is there and what should be; whatever the group would do with."""
    driven = Driven(expected_gpus=expected)
    commands = driven.join(devices=1)
    assert declines(commands) == declined
    replies = [command.message for command in commands if isinstance(command, SendReply)]
    details = [reply.detail for reply in replies if isinstance(reply, Declined)]
    assert details == (["3 expected, 2 there"] if declined else [])


def test_a_node_that_lacks_devices_takes_part_in_what_can_find_that():
    """A check of scope NODE has no ranks that wait for each other."""
    assert Driven(expected_gpus=3).join(check="light") == [OpenPort("g")]


def test_a_node_is_in_one_group_at_a_time():
    """A second invitation is declined, one to the same group again is a repetition."""
    driven = Driven()
    driven.join()
    assert declines(driven.join(group="h")) == [("busy", "h")]
    assert driven.join() == []


def test_a_requested_run_that_holds_the_node_makes_it_decline():
    """One that needs nothing does not."""
    driven = Driven()
    driven.order(RunCheck, run="r", check="light")
    assert driven.join() == [OpenPort("g")]
    driven = Driven()
    driven.order(RunCheck, run="r", check="heavy")
    assert declines(driven.join()) == [("busy", "g")]


def test_a_node_that_does_not_know_its_devices_declines():
    """It could not say how many ranks it brings."""
    assert declines(Driven(devices=None).join()) == [("busy", "g")]


def running_group(driven: Driven) -> str:
    """Brings a group as far as to its running ranks; the id of its run."""
    driven.join()
    driven.feed(PortOpened("g", "10.0.0.1", 4000))
    driven.prepare()
    driven.feed(IDLE)
    (start,) = driven.feed(RankZeroReached("g"))
    assert isinstance(start, StartRun)
    return start.order.run


def test_an_invitation_waits_until_the_group_before_is_left():
    """Its ranks are being killed, which takes a moment; that is nothing to blame the node for."""
    driven = Driven()
    run = running_group(driven)
    assert driven.order(Abort, group="g", reason="enough") == [StopRun(run, "the node leaves group g")]
    assert driven.join(group="h") == []
    assert driven.feed(ended(run, "collective", Verdict.SKIPPED)) == [ClosePort("g"), OpenPort("h")]


def test_an_invitation_that_waits_can_be_taken_back():
    """Then nothing follows when the group before is left."""
    driven = Driven()
    run = running_group(driven)
    driven.order(Abort, group="g", reason="enough")
    driven.join(group="h")
    driven.order(Abort, group="h", reason="enough")
    assert driven.feed(ended(run, "collective", Verdict.SKIPPED)) == [ClosePort("g")]


def test_a_session_ends_at_its_deadline():
    """A coordinator that is gone holds nobody."""
    driven = Driven()
    driven.join()
    driven.feed(PortOpened("g", "10.0.0.1", 4000))
    due = driven.node.next_due()
    commands = driven.feed(Ticked(), due)
    assert declines(commands) == [("expired", "g")]
    assert driven.node.next_due() == float("inf")


def test_a_port_that_opens_when_the_group_is_over_is_closed():
    """Nothing is left open."""
    driven = Driven()
    driven.join()
    driven.order(Abort, group="g", reason="enough")
    assert driven.feed(PortOpened("g", "10.0.0.1", 4000)) == [ClosePort("g")]


@pytest.mark.parametrize(("kind", "answer"), [(Start, []), (Abort, []), (Prepare, [("expired", "h")])])
def test_orders_for_a_group_that_the_node_is_not_in_are_refused(kind, answer):
    """To Prepare somebody waits for an answer, so there is one."""
    driven = Driven()
    place = {"first_rank": 0, "world_size": 1, "master_addr": "a", "master_port": 1}
    fields: dict[Any, Any] = {Start: {}, Abort: {"reason": "enough"}, Prepare: place}
    commands = driven.order(kind, group="h", **fields[kind])
    assert refusals(commands) == ["unknown_group"]
    assert declines(commands) == answer


# Reservations


def test_a_group_reserves_the_node_before_the_probes_are_asked_and_gives_it_back_at_the_end():
    """The scheduler is told what for; an agent that starts gives back what one before it may have left."""
    driven = Driven(reserves=True)
    assert driven.feed(Ticked(), 1.0) == [ReleaseReservation()]
    driven.join()
    driven.feed(PortOpened("g", "10.0.0.1", 4000))
    (reserve,) = driven.prepare()
    assert reserve == ReserveNode(reserve.run, "collective in group g")
    assert driven.feed(NodeReserved(reserve.run)) == [ProbeIdle()]
    assert driven.feed(IDLE) == [ConnectToRankZero("g", "10.0.0.1", 4000, 5.0)]
    driven.feed(RankZeroReached("g"))
    assert driven.order(Abort, group="g", reason="enough") == [StopRun(reserve.run, "the node leaves group g")]
    ending = driven.feed(ended(reserve.run, "collective", Verdict.SKIPPED))
    assert ending == [ClosePort("g"), ReleaseReservation()]


def test_a_node_that_cannot_be_reserved_declines_the_group():
    """With the reason, and it asks no probe."""
    driven = Driven(reserves=True)
    driven.join()
    driven.feed(PortOpened("g", "10.0.0.1", 4000))
    (reserve,) = driven.prepare()
    commands = driven.feed(ReservationFailed(reserve.run, "file: somebody has it"))
    assert declines(commands) == [("not_idle", "g")]
    assert "somebody has it" in commands[0].message.detail
    assert commands[1:] == [ClosePort("g"), ReleaseReservation()]


def test_a_group_that_is_aborted_while_the_node_is_being_reserved_gives_it_back():
    """What comes of the reservation later changes nothing."""
    driven = Driven(reserves=True)
    driven.join()
    driven.feed(PortOpened("g", "10.0.0.1", 4000))
    (reserve,) = driven.prepare()
    assert driven.order(Abort, group="g", reason="enough") == [ClosePort("g"), ReleaseReservation()]
    assert driven.feed(NodeReserved(reserve.run)) == []
    assert driven.feed(ReservationReleased(None)) == []


def test_a_requested_run_reserves_and_a_background_run_does_not():
    """A run that yields to work keeps none away."""
    driven = Driven({**PLAN, **BACKGROUND}, reserves=True)
    driven.feed(Ticked(), 0.0)
    due = driven.node.next_due()
    assert driven.feed(Ticked(), due) == [ProbeIdle()]
    assert driven.order(RunCheck, due, run="r", check="heavy") == [ReserveNode("r", "run r of heavy")]


# The coordinator


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


# The end


def test_stopping_ends_runs_and_the_group_and_takes_nothing_new():
    """Runs that only waited are forgotten."""
    driven = Driven({**PLAN, **BACKGROUND})
    driven.order(RunCheck, run="r", check="light")
    driven.order(RunCheck, run="waits", check="heavy")
    driven.feed(StopRequested())
    assert driven.node.running == ("r",)
    assert driven.feed(IDLE) == []
    assert driven.feed(ended("r", verdict=Verdict.SKIPPED)) == [ReportRun(ended("r", verdict=Verdict.SKIPPED).run)]
    assert driven.feed(Ticked(), SPREAD_S) == []
    assert declines(driven.join(now=40.0)) == [("stopping", "g")]
    assert refusals(driven.order(RunCheck, now=40.0, run="s", check="light")) == ["stopping"]


def test_stopping_declines_the_group():
    """The others are told that this node is gone."""
    driven = Driven()
    driven.join()
    assert declines(driven.feed(StopRequested())) == [("stopping", "g")]
