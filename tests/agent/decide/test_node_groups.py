"""The decisions of an agent about groups: invitations, its part in a group, and reservations."""

from typing import Any

import pytest
from tests.agent.decide.driven_node import BACKGROUND, IDLE, PLAN, UNKNOWN, Driven, declines, ended, refusals

from muster.model import Verdict
from muster.wire.messages import Abort, Declined, Prepare, RunCheck, Start
from muster_agent.decide.events import (
    ClosePort,
    ConnectToRankZero,
    DueTimeReached,
    NodeReserved,
    OpenPort,
    PortOpened,
    ProbeIdle,
    RankZeroReached,
    ReleaseRanks,
    ReleaseReservation,
    ReservationFailed,
    ReservationReleased,
    ReserveNode,
    SendReply,
    StartRun,
    StopRun,
)
from muster_agent.decide.orders import RanksReady


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
    port, ready = driven.feed(RanksReady(run))
    assert port == ClosePort("g")
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
    commands = driven.feed(DueTimeReached(), due)
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


def test_a_group_reserves_the_node_before_the_probes_are_asked_and_gives_it_back_at_the_end():
    """The scheduler is told what for; an agent that starts gives back what one before it may have left."""
    driven = Driven(reserves=True)
    assert driven.feed(DueTimeReached(), 1.0) == [ReleaseReservation()]
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
    driven.feed(DueTimeReached(), 0.0)
    due = driven.node.next_due()
    assert driven.feed(DueTimeReached(), due) == [ProbeIdle()]
    assert driven.order(RunCheck, due, run="r", check="heavy") == [ReserveNode("r", "run r of heavy")]
