"""Who holds the node: claims, reservations, probes, preemption, and every pair of state and event."""

import itertools
import math

import pytest
from tests.agent.decide.leases import (
    ASKED_AGAIN,
    AT_WORK,
    BUSY,
    EVENTS,
    FIRST_ASKED,
    IDLE,
    NOT_IDLE,
    PAIRS,
    UNKNOWN,
    claim,
    lease_in,
)
from tests.cases import cases

from muster.check import Idleness, Needs
from muster_agent.decide.events import (
    DueTimeReached,
    IdlenessSeen,
)
from muster_agent.decide.lease import (
    PATIENCE_S,
    PROBE_INTERVAL_S,
    UNKNOWN_LIMIT,
    LeaseDenied,
    LeaseGranted,
    LeaseOutcome,
    LeasePreempted,
    LeaseReleased,
    LeaseState,
    Precedence,
)

WITHOUT_RESERVATION = [state for state in LeaseState if state is not LeaseState.RESERVING]


@cases("reserves", [False, True])
@cases(("state", "event"), [*itertools.product(WITHOUT_RESERVATION, EVENTS)])
def test_every_event_in_every_state(state, event, reserves):
    """Each pair has its outcome and its next state, for background runs also where there are reservations.

    The tick comes long after everything was due.
    """
    lease = lease_in(state, reserves=reserves)
    expected, after = PAIRS.get((state, event), ([], state))
    assert lease.handle(EVENTS[event], 100.0) == expected
    assert lease.state is after


@cases("state", LeaseState)
def test_a_run_that_needs_nothing_is_granted_whoever_holds_the_node(state):
    """The run does not become the holder."""
    lease = lease_in(state, Precedence.GROUP, reserves=True)
    assert lease.handle(claim("b", Precedence.REQUEST, Needs.NOTHING), 0.0) == [LeaseGranted("b")]
    assert lease.state is state


def test_one_holder_at_a_time_and_the_next_is_asked_for_again():
    """The second claim waits until the first run has ended, then the probes are asked for it."""
    lease = lease_in(LeaseState.HELD)
    assert lease.handle(claim("b"), 1.0) == []
    assert lease.holder == "a"
    assert lease.handle(LeaseReleased("a"), 2.0) == [FIRST_ASKED]
    assert lease.handle(IDLE, 2.1) == [LeaseGranted("b")]
    assert lease.holder == "b"


def test_groups_go_before_requests_and_these_before_background_runs():
    """Claims wait by precedence, then by arrival."""
    lease = lease_in(LeaseState.HELD, Precedence.GROUP)
    for run, precedence in [("b", Precedence.BACKGROUND), ("r1", Precedence.REQUEST), ("r2", Precedence.REQUEST)]:
        lease.handle(claim(run, precedence), 0.0)
    lease.handle(claim("g", Precedence.GROUP), 0.0)
    order, holder = [], "a"
    while lease.handle(LeaseReleased(holder), 1.0):
        (granted,) = lease.handle(IDLE, 1.0)
        assert isinstance(granted, LeaseGranted)
        holder = granted.run
        order.append(holder)
    assert order == ["g", "r1", "r2", "b"]


@pytest.mark.parametrize("precedence", [Precedence.GROUP, Precedence.REQUEST])
def test_a_background_holder_yields_to_what_was_asked_for(precedence):
    """The new claim gets the node once the holder has ended."""
    lease = lease_in(LeaseState.HELD)
    (preempted,) = lease.handle(claim("g", precedence), 1.0)
    assert preempted == LeasePreempted("a", "the node is needed for a requested run")
    assert lease.handle(LeaseReleased("a"), 1.2) == [FIRST_ASKED]
    assert lease.handle(IDLE, 1.3) == [LeaseGranted("g")]


def test_a_requested_holder_does_not_yield():
    """A requested run ends first."""
    lease = lease_in(LeaseState.HELD, Precedence.REQUEST)
    assert lease.handle(claim("g", Precedence.GROUP), 1.0) == []


def test_what_was_asked_for_gets_the_answer_that_a_background_claim_waits_for():
    """The background claim waits again."""
    lease = lease_in(LeaseState.ASKING)
    assert lease.handle(claim("g", Precedence.GROUP), 0.1) == []
    assert lease.handle(IDLE, 0.2) == [LeaseGranted("g")]
    assert lease.handle(LeaseReleased("g"), 1.0) == [FIRST_ASKED]
    assert lease.handle(IDLE, 1.1) == [LeaseGranted("a")]


def test_who_waits_no_more_is_forgotten():
    """A release of a waiting run takes it out of the line."""
    lease = lease_in(LeaseState.HELD)
    lease.handle(claim("b"), 0.0)
    lease.handle(LeaseReleased("b"), 0.0)
    assert lease.handle(LeaseReleased("a"), 0.0) == []


def test_denied_passes_the_question_on():
    """The probes are asked again for the next claim."""
    lease = lease_in(LeaseState.ASKING)
    lease.handle(claim("b"), 0.0)
    assert lease.handle(BUSY, 1.0) == [LeaseDenied("a", "the node is busy"), FIRST_ASKED]


def test_the_holder_is_watched_about_twice_a_second():
    """The next question comes an interval after the last one, however long the answer took."""
    lease = lease_in(LeaseState.HELD)
    assert lease.next_due() == PROBE_INTERVAL_S
    for asked, answered in ((1.0, 1.1), (2.0, 2.9)):
        assert lease.handle(DueTimeReached(), asked) == [ASKED_AGAIN]
        lease.handle(IDLE, answered)
        assert lease.next_due() == asked + PROBE_INTERVAL_S


def test_unknown_preempts_only_when_it_is_said_again_and_again():
    """A single failed probe is no sign of work, several in a row are no sign of idleness."""
    lease = lease_in(LeaseState.HELD)
    for _ in range(UNKNOWN_LIMIT - 1):
        assert lease.handle(UNKNOWN, 1.0) == []
    assert lease.handle(IDLE, 1.0) == []
    for _ in range(UNKNOWN_LIMIT - 1):
        assert lease.handle(UNKNOWN, 1.0) == []
    (preempted,) = lease.handle(UNKNOWN, 1.0)
    assert isinstance(preempted, LeasePreempted)


def test_a_probe_that_does_not_answer_counts_as_unknown():
    """While a run holds the node, the probes are asked again at once after the timeout."""
    lease = lease_in(LeaseState.HELD)
    lease.handle(DueTimeReached(), 1.0)
    assert lease.next_due() == 1.0 + PATIENCE_S
    assert lease.handle(DueTimeReached(), 1.0 + PATIENCE_S) == []
    assert lease.handle(DueTimeReached(), 1.0 + PATIENCE_S) == [ASKED_AGAIN]


def test_nothing_is_due_while_it_is_free():
    """A free lease asks nobody."""
    assert lease_in(LeaseState.FREE).next_due() == math.inf


def test_who_is_at_work_is_told_if_the_probes_tell():
    """The denial and the preemption name the work."""
    busy, unknown = IdlenessSeen(Idleness.BUSY, "slurm"), IdlenessSeen(Idleness.UNKNOWN, "kubernetes: 403")
    assert lease_in(LeaseState.ASKING).handle(busy, 1.0) == [LeaseDenied("a", "the node is busy (slurm)")]
    assert lease_in(LeaseState.ASKING).handle(unknown, 1.0) == [LeaseDenied("a", f"{NOT_IDLE} (kubernetes: 403)")]
    assert lease_in(LeaseState.HELD).handle(busy, 1.0) == [LeasePreempted("a", f"{AT_WORK} (slurm)")]


ANSWER_S = 0.1
"""What the probes take to answer; NVML and squeue take less."""


@cases("arrival", [step / 20 for step in range(20)])
def test_work_is_answered_within_an_interval_and_an_answer_whenever_it_arrives(arrival):
    """The answer that is under way may be too old, the next one is not. Of a second, 0.45 are left to kill."""
    lease = lease_in(LeaseState.HELD, Precedence.GROUP, reserves=True)
    outcomes: list[LeaseOutcome] = []
    while not outcomes:
        asked = lease.next_due()
        assert lease.handle(DueTimeReached(), asked) == [ASKED_AGAIN]
        outcomes = lease.handle(BUSY if asked >= arrival else IDLE, asked + ANSWER_S)
    assert outcomes == [LeasePreempted("a", AT_WORK)]
    assert asked + ANSWER_S - arrival < 0.55
