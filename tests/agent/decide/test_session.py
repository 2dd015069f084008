"""A node's part in a group: the whole way, every early end, and every pair of state and event."""

import itertools
from typing import Any

import pytest
from tests.cases import cases

from muster.check import AnyCheck, Check, Needs, Params, Scope
from muster.model import Finding, Measurement, RankResult, Run, Severity, Verdict
from muster.wire.messages import Abort, Accepted, Declined, Finished, Join, Prepare, Progress, Ready, Start
from muster_agent.decide.events import (
    ClaimLease,
    ClosePort,
    ConnectToRankZero,
    LeaderChanged,
    OpenPort,
    PlacementRefused,
    PortOpened,
    PortRefused,
    RankZeroReached,
    RankZeroUnreachable,
    ReleaseLease,
    ReleaseRanks,
    ReportRun,
    SendReply,
    StartRun,
    StateTimedOut,
    StopRequested,
    StopRun,
)
from muster_agent.decide.lease import LeaseDenied, LeaseGranted, LeasePreempted
from muster_agent.decide.orders import RanksReady, RunEnded, RunProgressed
from muster_agent.decide.session import REACH_WITHIN_S, RUNNING_GRACE_S, TRANSITIONS, GroupSession, SessionState

HEADER: dict[str, Any] = {"sent_at": 0.0, "epoch": 3, "expires_at": 10.0}
PREPARE = Prepare(
    **HEADER, group="g", first_rank=2, world_size=4, master_addr="10.0.0.1", master_port=4000, secret="ab" * 32
)
CLEARED = [ClosePort("g"), ReleaseLease("r")]
KILLED = [StopRun("r", "the node leaves group g")]


def make_check(scope: Scope = Scope.GROUP) -> AnyCheck:
    return Check(
        name="collective",
        summary="",
        scope=scope,
        params=Params,
        measure=lambda _params, _context: Measurement(),
        judge=lambda _measurement, _references: [],
        timeout_s=60.0,
        needs=Needs.IDLE_NODE,
    )


def ended(verdict: Verdict = Verdict.PASS, *findings: Finding) -> RunEnded:
    run = Run(id="r", node="n", check="collective", verdict=verdict, findings=findings, started_at=0.0, duration_s=1.0)
    return RunEnded(run, (RankResult(rank=2, verdict=verdict, duration_s=1.0),))


EVENTS: dict[type, Any] = {
    PortOpened: PortOpened("g", "10.0.0.2", 4001),
    PortRefused: PortRefused("g", "no such address"),
    Prepare: PREPARE,
    PlacementRefused: PlacementRefused("g", "bad_place", "no such world"),
    LeaseGranted: LeaseGranted("r"),
    LeaseDenied: LeaseDenied("r", "the node is busy"),
    LeasePreempted: LeasePreempted("r", "somebody else is at work"),
    RankZeroReached: RankZeroReached("g"),
    RankZeroUnreachable: RankZeroUnreachable("g", "no route"),
    RanksReady: RanksReady("r"),
    Start: Start(**HEADER, group="g"),
    RunProgressed: RunProgressed("r", "half"),
    RunEnded: ended(),
    Abort: Abort(**HEADER, group="g", reason="enough"),
    StopRequested: StopRequested(),
    LeaderChanged: LeaderChanged(),
    StateTimedOut: StateTimedOut(),
}

WAY: dict[SessionState, list[type]] = {
    SessionState.INVITED: [],
    SessionState.ACCEPTED: [PortOpened],
    SessionState.CLAIMING: [PortOpened, Prepare],
    SessionState.REACHING: [PortOpened, Prepare, LeaseGranted],
    SessionState.SPAWNING: [PortOpened, Prepare, LeaseGranted, RankZeroReached],
    SessionState.READY: [PortOpened, Prepare, LeaseGranted, RankZeroReached, RanksReady],
    SessionState.RUNNING: [PortOpened, Prepare, LeaseGranted, RankZeroReached, RanksReady, Start],
    SessionState.LEAVING: [PortOpened, Prepare, LeaseGranted, RankZeroReached, RanksReady, Start, Abort],
    SessionState.ENDED: [Abort],
}


def session_in(state: SessionState, check: AnyCheck | None = None) -> GroupSession:
    join = Join(**HEADER, group="g", check="collective", timeout_s=60.0)
    ids = (f"id-{number}" for number in itertools.count())
    session = GroupSession("n", join, check or make_check(), Params(), run="r", ranks=2, new_id=lambda: next(ids))
    session.begin(0.0)
    for kind in WAY[state]:
        session.handle(EVENTS[kind], 0.0)
    assert session.state is state
    return session


def said(commands):
    """The commands, with replies as (kind, what they say)."""
    common = {"schema_version", "id", "sent_at", "node", "group", "kind"}
    return [
        (type(command.message), command.message.model_dump(exclude=common))
        if isinstance(command, SendReply)
        else command
        for command in commands
    ]


def declined(reason: str, detail: str):
    return (Declined, {"reason": reason, "detail": detail})


def test_an_invited_member_opens_a_port():
    """The first thing is a port, for the case that the node gets rank 0."""
    join = Join(**HEADER, group="g", check="collective", timeout_s=60.0)
    session = GroupSession("n", join, make_check(), Params(), run="r", ranks=2, new_id=lambda: "id")
    assert session.begin(5.0) == [OpenPort("g")]
    assert session.deadline == 10.0


def test_the_whole_way_of_a_member_that_is_not_the_first():
    """Each step leads to the next, and the ranks stand where Prepare put them."""
    session = session_in(SessionState.INVITED)
    told = [said(session.handle(EVENTS[kind], 0.0)) for kind in [*WAY[SessionState.RUNNING], RunProgressed, RunEnded]]
    start = told[3][0]
    assert told == [
        [(Accepted, {"address": "10.0.0.2", "port": 4001, "ranks": 2, "knows_secrets": True})],
        [ClosePort("g"), ClaimLease("r", Needs.IDLE_NODE, "collective in group g")],
        [ConnectToRankZero("g", "10.0.0.1", 4000, REACH_WITHIN_S)],
        [start],
        [ClosePort("g"), (Ready, {})],
        [ReleaseRanks("r")],
        [(Progress, {"text": "half"})],
        [
            ReportRun(ended().run),
            (Finished, {"ranks": (ended().ranks[0].model_dump(),)}),
            *CLEARED,
        ],
    ]
    assert isinstance(start, StartRun)
    assert (start.order.run, start.order.group, start.order.cause, start.order.timeout_s) == ("r", "g", "g", 60.0)
    places = [(place.rank, place.local_rank, place.local_world_size, place.world_size) for place in start.order.places]
    assert places == [(2, 0, 2, 4), (3, 1, 2, 4)]
    meetings = {(place.master_addr, place.master_port, place.secret) for place in start.order.places}
    assert meetings == {("10.0.0.1", 4000, "ab" * 32)}
    assert "abab" not in repr(start)


def test_the_first_member_keeps_its_port():
    """Rank 0 takes the listening socket over, so that no other process can have the port."""
    session = session_in(SessionState.ACCEPTED)
    commands = session.handle(PREPARE.model_copy(update={"first_rank": 0}), 0.0)
    assert commands == [ClaimLease("r", Needs.IDLE_NODE, "collective in group g")]


def test_a_check_without_a_rendezvous_is_ready_at_once_and_spawned_by_start():
    """Of scope NODE, nothing runs before Start."""
    session = session_in(SessionState.REACHING, make_check(Scope.NODE))
    assert said(session.handle(RankZeroReached("g"), 0.0)) == [(Ready, {})]
    (start,) = session.handle(EVENTS[Start], 0.0)
    assert isinstance(start, StartRun)
    assert start.order.places == ()
    assert session.state is SessionState.RUNNING


def test_a_check_without_a_rendezvous_leaves_at_once_when_it_was_not_spawned():
    """There is nothing to wait for."""
    session = session_in(SessionState.REACHING, make_check(Scope.NODE))
    session.handle(RankZeroReached("g"), 0.0)
    assert session.handle(EVENTS[Abort], 0.0) == CLEARED
    assert session.state is SessionState.ENDED


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("world_size", 2147483000, "bad_place"),
        ("world_size", 3, "bad_place"),
        ("master_addr", "", "unreachable"),
        ("master_addr", "127.0.0.1", "unreachable"),
    ],
)
def test_an_impossible_group_is_declined(field, value, reason):
    """With a reason; the node is not claimed, and no rank is spawned."""
    session = session_in(SessionState.ACCEPTED)
    reply, *rest = session.handle(PREPARE.model_copy(update={field: value}), 0.0)
    assert isinstance(reply, SendReply) and isinstance(reply.message, Declined)
    assert (reply.message.reason, rest, session.state) == (reason, CLEARED, SessionState.ENDED)
    assert str(value) in reply.message.detail


EARLY_ENDS = [
    (SessionState.ACCEPTED, PlacementRefused, [declined("bad_place", "no such world"), *CLEARED]),
    (SessionState.INVITED, PortRefused, [declined("failed_to_start", "no such address"), *CLEARED]),
    (SessionState.CLAIMING, LeaseDenied, [declined("not_idle", "the node is busy"), *CLEARED]),
    (SessionState.REACHING, RankZeroUnreachable, [declined("unreachable", "no route"), *CLEARED]),
    (SessionState.REACHING, LeasePreempted, [declined("preempted", "somebody else is at work"), *CLEARED]),
    (SessionState.SPAWNING, LeasePreempted, [declined("preempted", "somebody else is at work"), *KILLED]),
    (SessionState.RUNNING, LeasePreempted, [declined("preempted", "somebody else is at work"), *KILLED]),
    (SessionState.ACCEPTED, StopRequested, [declined("stopping", "the agent stops"), *CLEARED]),
    (SessionState.RUNNING, StopRequested, [declined("stopping", "the agent stops"), *KILLED]),
    (
        SessionState.ACCEPTED,
        StateTimedOut,
        [declined("expired", "the node was ACCEPTED for longer than it may be"), *CLEARED],
    ),
    (
        SessionState.RUNNING,
        StateTimedOut,
        [declined("expired", "the node was RUNNING for longer than it may be"), *KILLED],
    ),
    (SessionState.ACCEPTED, Abort, CLEARED),
    (SessionState.RUNNING, Abort, KILLED),
    (SessionState.REACHING, LeaderChanged, CLEARED),
    (SessionState.READY, LeaderChanged, KILLED),
    (SessionState.LEAVING, StateTimedOut, CLEARED),
]


@cases(("state", "event", "expected"), EARLY_ENDS)
def test_an_early_end_is_told_and_cleared_up(state, event, expected):
    """The coordinator hears why, unless it asked for it; what was taken is given back."""
    assert said(session_in(state).handle(EVENTS[event], 0.0)) == expected


@pytest.mark.parametrize("state", [SessionState.SPAWNING, SessionState.READY])
def test_ranks_that_end_before_the_start_are_declined_and_reported(state):
    """Their run is evidence, and what it found tells why the member failed."""
    finding = Finding(code="run.raised", summary="ImportError: torch", severity=Severity.UNKNOWN)
    event = ended(Verdict.UNKNOWN, finding)
    commands = session_in(state).handle(event, 0.0)
    assert said(commands) == [ReportRun(event.run), declined("failed_to_start", "ImportError: torch"), *CLEARED]


def test_a_run_that_was_let_go_is_reported_though_the_session_left():
    """The ranks had started, so what became of them is kept."""
    assert session_in(SessionState.LEAVING).handle(ended(), 0.0) == [ReportRun(ended().run), *CLEARED]


def test_a_run_that_was_never_let_go_is_not_reported():
    """Ranks that only waited have measured nothing."""
    session = session_in(SessionState.READY)
    session.handle(EVENTS[Abort], 0.0)
    assert session.handle(ended(Verdict.SKIPPED), 0.0) == CLEARED


def test_progress_is_passed_on_once_a_second():
    """A check that gives many signs of life does not flood the broker."""
    session = session_in(SessionState.RUNNING)
    times = [10.0, 10.1, 10.9, 11.1, 12.0]
    assert [len(session.handle(EVENTS[RunProgressed], now)) for now in times] == [1, 0, 0, 1, 0]


def test_running_has_the_time_of_the_invitation_and_some_grace():
    """Progress does not prolong it."""
    session = session_in(SessionState.READY)
    session.handle(EVENTS[Start], 100.0)
    session.handle(EVENTS[RunProgressed], 150.0)
    assert session.deadline == 100.0 + 60.0 + RUNNING_GRACE_S


@cases(("state", "event"), [*itertools.product(SessionState, EVENTS)])
def test_every_event_in_every_state(state, event):
    """What stands in the table leads where it says; anything else changes nothing."""
    session = session_in(state)
    commands = session.handle(EVENTS[event], 7.0)
    assert session.state is TRANSITIONS.get((state, event), state)
    if (state, event) not in TRANSITIONS:
        assert commands == []
    if session.state is SessionState.ENDED and state is not SessionState.ENDED:
        assert commands[-2:] == CLEARED


def test_every_state_but_the_end_has_a_way_out_by_time():
    """No session can stay for ever."""
    assert all((state, StateTimedOut) in TRANSITIONS for state in SessionState if state is not SessionState.ENDED)


@pytest.mark.parametrize("event", [PortOpened("h", "a", 1), LeaseGranted("s"), RanksReady("s"), RankZeroReached("h")])
def test_other_groups_and_runs_do_not_concern_it(event):
    """Events name what they are about."""
    assert not session_in(SessionState.ACCEPTED).concerns(event)
