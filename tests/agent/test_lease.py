"""Who holds the node: claims, probes, preemption, and every pair of state and event."""

import itertools
import math

import pytest

from muster.check import Idleness, Needs
from muster_agent.events import IdlenessSeen, ProbeIdle, Ticked
from muster_agent.lease import (
    PATIENCE_S,
    PROBE_INTERVAL_S,
    UNKNOWN_LIMIT,
    Claimed,
    Denied,
    Granted,
    Lease,
    LeaseEvent,
    LeaseState,
    Precedence,
    Preempted,
    Released,
)

IDLE, BUSY, UNKNOWN = (IdlenessSeen(idleness) for idleness in Idleness)


def claim(run: str, precedence: Precedence = Precedence.BACKGROUND, needs: Needs = Needs.IDLE_NODE) -> Claimed:
    return Claimed(run, needs, precedence)


def lease_in(state: LeaseState, precedence: Precedence = Precedence.BACKGROUND) -> Lease:
    """A lease that run `a` has taken as far as `state`."""
    lease = Lease()
    steps: dict[LeaseState, list[LeaseEvent]] = {
        LeaseState.FREE: [],
        LeaseState.ASKING: [claim("a", precedence)],
        LeaseState.HELD: [claim("a", precedence), IDLE],
        LeaseState.YIELDING: [claim("a", precedence), IDLE, BUSY],
    }
    for event in steps[state]:
        lease.handle(event, 0.0)
    assert lease.state is state
    return lease


PAIRS = {
    (LeaseState.FREE, "claimed"): ([ProbeIdle()], LeaseState.ASKING),
    (LeaseState.FREE, "released"): ([], LeaseState.FREE),
    (LeaseState.FREE, "idle"): ([], LeaseState.FREE),
    (LeaseState.FREE, "busy"): ([], LeaseState.FREE),
    (LeaseState.FREE, "unknown"): ([], LeaseState.FREE),
    (LeaseState.FREE, "ticked"): ([], LeaseState.FREE),
    (LeaseState.ASKING, "claimed"): ([], LeaseState.ASKING),
    (LeaseState.ASKING, "released"): ([], LeaseState.FREE),
    (LeaseState.ASKING, "idle"): ([Granted("a")], LeaseState.HELD),
    (LeaseState.ASKING, "busy"): ([Denied("a", "the node is busy")], LeaseState.FREE),
    (LeaseState.ASKING, "unknown"): ([Denied("a", "the node cannot be shown to be idle")], LeaseState.FREE),
    (LeaseState.ASKING, "ticked"): ([Denied("a", "the node cannot be shown to be idle")], LeaseState.FREE),
    (LeaseState.HELD, "claimed"): ([], LeaseState.HELD),
    (LeaseState.HELD, "released"): ([], LeaseState.FREE),
    (LeaseState.HELD, "idle"): ([], LeaseState.HELD),
    (LeaseState.HELD, "busy"): ([Preempted("a", "somebody else is at work on this node")], LeaseState.YIELDING),
    (LeaseState.HELD, "unknown"): ([], LeaseState.HELD),
    (LeaseState.HELD, "ticked"): ([ProbeIdle()], LeaseState.HELD),
    (LeaseState.YIELDING, "claimed"): ([], LeaseState.YIELDING),
    (LeaseState.YIELDING, "released"): ([], LeaseState.FREE),
    (LeaseState.YIELDING, "idle"): ([], LeaseState.YIELDING),
    (LeaseState.YIELDING, "busy"): ([], LeaseState.YIELDING),
    (LeaseState.YIELDING, "unknown"): ([], LeaseState.YIELDING),
    (LeaseState.YIELDING, "ticked"): ([], LeaseState.YIELDING),
}

EVENTS: dict[str, LeaseEvent] = {
    "claimed": claim("b"),
    "released": Released("a"),
    "idle": IDLE,
    "busy": BUSY,
    "unknown": UNKNOWN,
    "ticked": Ticked(),
}


@pytest.mark.parametrize(("state", "event"), [*itertools.product(LeaseState, EVENTS)])
def test_every_event_in_every_state(state, event):
    """Each pair has its outcome and its next state; the tick comes long after everything was due."""
    lease = lease_in(state)
    expected, after = PAIRS[state, event]
    assert lease.handle(EVENTS[event], 100.0) == expected
    assert lease.state is after


@pytest.mark.parametrize("state", LeaseState)
def test_a_run_that_needs_nothing_is_granted_whoever_holds_the_node(state):
    """It does not become the holder."""
    lease = lease_in(state)
    assert lease.handle(claim("b", needs=Needs.NOTHING), 0.0) == [Granted("b")]
    assert lease.state is state


def test_one_holder_at_a_time_and_the_next_is_asked_for_anew():
    """The second waits until the first has ended, then the probes are asked for it."""
    lease = lease_in(LeaseState.HELD)
    assert lease.handle(claim("b"), 1.0) == []
    assert lease.holder == "a"
    assert lease.handle(Released("a"), 2.0) == [ProbeIdle()]
    assert lease.handle(IDLE, 2.1) == [Granted("b")]
    assert lease.holder == "b"


def test_groups_go_before_requests_and_these_before_background_runs():
    """The line is by precedence, then by arrival."""
    lease = lease_in(LeaseState.HELD, Precedence.GROUP)
    for run, precedence in [("b", Precedence.BACKGROUND), ("r1", Precedence.REQUEST), ("r2", Precedence.REQUEST)]:
        lease.handle(claim(run, precedence), 0.0)
    lease.handle(claim("g", Precedence.GROUP), 0.0)
    order, holder = [], "a"
    while lease.handle(Released(holder), 1.0):
        (granted,) = lease.handle(IDLE, 1.0)
        assert isinstance(granted, Granted)
        holder = granted.run
        order.append(holder)
    assert order == ["g", "r1", "r2", "b"]


@pytest.mark.parametrize("precedence", [Precedence.GROUP, Precedence.REQUEST])
def test_a_background_holder_yields_to_what_was_asked_for(precedence):
    """The claim gets the node once the holder has ended."""
    lease = lease_in(LeaseState.HELD)
    (preempted,) = lease.handle(claim("g", precedence), 1.0)
    assert preempted == Preempted("a", "the node is needed for a run that was asked for")
    assert lease.handle(Released("a"), 1.2) == [ProbeIdle()]
    assert lease.handle(IDLE, 1.3) == [Granted("g")]


def test_a_requested_holder_does_not_yield():
    """What somebody asked for is finished first."""
    lease = lease_in(LeaseState.HELD, Precedence.REQUEST)
    assert lease.handle(claim("g", Precedence.GROUP), 1.0) == []


def test_what_was_asked_for_gets_the_answer_that_a_background_claim_waits_for():
    """The background claim goes back into the line."""
    lease = lease_in(LeaseState.ASKING)
    assert lease.handle(claim("g", Precedence.GROUP), 0.1) == []
    assert lease.handle(IDLE, 0.2) == [Granted("g")]
    assert lease.handle(Released("g"), 1.0) == [ProbeIdle()]
    assert lease.handle(IDLE, 1.1) == [Granted("a")]


def test_who_waits_no_more_is_forgotten():
    """A release of a waiting run takes it out of the line."""
    lease = lease_in(LeaseState.HELD)
    lease.handle(claim("b"), 0.0)
    lease.handle(Released("b"), 0.0)
    assert lease.handle(Released("a"), 0.0) == []


def test_denied_passes_the_question_on():
    """Whoever is next in line has the probes asked for itself."""
    lease = lease_in(LeaseState.ASKING)
    lease.handle(claim("b"), 0.0)
    assert lease.handle(BUSY, 1.0) == [Denied("a", "the node is busy"), ProbeIdle()]


def test_the_holder_is_watched_about_twice_a_second():
    """The next question comes an interval after the last answer."""
    lease = lease_in(LeaseState.HELD)
    assert lease.next_due() == PROBE_INTERVAL_S
    assert lease.handle(Ticked(), PROBE_INTERVAL_S) == [ProbeIdle()]
    lease.handle(IDLE, 0.5)
    assert lease.next_due() == 0.5 + PROBE_INTERVAL_S


def test_unknown_preempts_only_when_it_is_said_again_and_again():
    """A single failed probe is no sign of work, several in a row are no sign of idleness."""
    lease = lease_in(LeaseState.HELD)
    for _ in range(UNKNOWN_LIMIT - 1):
        assert lease.handle(UNKNOWN, 1.0) == []
    assert lease.handle(IDLE, 1.0) == []
    for _ in range(UNKNOWN_LIMIT - 1):
        assert lease.handle(UNKNOWN, 1.0) == []
    (preempted,) = lease.handle(UNKNOWN, 1.0)
    assert isinstance(preempted, Preempted)


def test_a_probe_that_does_not_answer_counts_as_unknown():
    """While the node is held, it is asked again after the patience is over."""
    lease = lease_in(LeaseState.HELD)
    lease.handle(Ticked(), 1.0)
    assert lease.next_due() == 1.0 + PATIENCE_S
    assert lease.handle(Ticked(), 1.0 + PATIENCE_S) == []
    assert lease.next_due() == 1.0 + PATIENCE_S + PROBE_INTERVAL_S


def test_nothing_is_due_while_it_is_free():
    """A free lease asks nobody."""
    assert lease_in(LeaseState.FREE).next_due() == math.inf
