"""Who holds the node: claims, reservations, probes, preemption, and every pair of state and event."""

import itertools
import math

import pytest

from muster.check import Idleness, Needs
from muster_agent.decide.events import (
    IdlenessSeen,
    NodeReserved,
    ProbeIdle,
    ReleaseReservation,
    ReservationFailed,
    ReservationReleased,
    ReserveNode,
    Ticked,
)
from muster_agent.decide.lease import (
    PATIENCE_S,
    PROBE_INTERVAL_S,
    RESERVING_PATIENCE_S,
    RETRY_S,
    UNKNOWN_LIMIT,
    Lease,
    LeaseClaimed,
    LeaseDenied,
    LeaseEvent,
    LeaseGranted,
    LeaseOutcome,
    LeasePreempted,
    LeaseReleased,
    LeaseState,
    Precedence,
)

IDLE, BUSY, UNKNOWN = (IdlenessSeen(idleness) for idleness in Idleness)
FIRST_ASKED, ASKED_AGAIN = ProbeIdle(afresh=True), ProbeIdle(afresh=False)


def claim(run: str, precedence: Precedence = Precedence.BACKGROUND, needs: Needs = Needs.IDLE_NODE) -> LeaseClaimed:
    return LeaseClaimed(run, needs, precedence, f"run {run}")


def lease_in(state: LeaseState, precedence: Precedence = Precedence.BACKGROUND, *, reserves: bool = False) -> Lease:
    """A lease that run `a` has taken as far as `state`."""
    lease = Lease(reserves=reserves)
    steps: dict[LeaseState, list[LeaseEvent]] = {
        LeaseState.FREE: [],
        LeaseState.RESERVING: [claim("a", precedence)],
        LeaseState.ASKING: [claim("a", precedence), NodeReserved("a")],
        LeaseState.HELD: [claim("a", precedence), NodeReserved("a"), IDLE],
        LeaseState.YIELDING: [claim("a", precedence), NodeReserved("a"), IDLE, BUSY],
    }
    for event in [Ticked(), *steps[state]]:
        lease.handle(event, 0.0)
    assert lease.state is state
    return lease


NOT_IDLE = "the node cannot be shown to be idle"
AT_WORK = "somebody else is at work on this node"

PAIRS = {
    (LeaseState.FREE, "claimed"): ([FIRST_ASKED], LeaseState.ASKING),
    (LeaseState.FREE, "released"): ([], LeaseState.FREE),
    (LeaseState.FREE, "idle"): ([], LeaseState.FREE),
    (LeaseState.FREE, "busy"): ([], LeaseState.FREE),
    (LeaseState.FREE, "unknown"): ([], LeaseState.FREE),
    (LeaseState.FREE, "ticked"): ([], LeaseState.FREE),
    (LeaseState.ASKING, "claimed"): ([], LeaseState.ASKING),
    (LeaseState.ASKING, "released"): ([], LeaseState.FREE),
    (LeaseState.ASKING, "idle"): ([LeaseGranted("a")], LeaseState.HELD),
    (LeaseState.ASKING, "busy"): ([LeaseDenied("a", "the node is busy")], LeaseState.FREE),
    (LeaseState.ASKING, "unknown"): ([LeaseDenied("a", NOT_IDLE)], LeaseState.FREE),
    (LeaseState.ASKING, "ticked"): ([LeaseDenied("a", NOT_IDLE)], LeaseState.FREE),
    (LeaseState.HELD, "claimed"): ([], LeaseState.HELD),
    (LeaseState.HELD, "released"): ([], LeaseState.FREE),
    (LeaseState.HELD, "idle"): ([], LeaseState.HELD),
    (LeaseState.HELD, "busy"): ([LeasePreempted("a", AT_WORK)], LeaseState.YIELDING),
    (LeaseState.HELD, "unknown"): ([], LeaseState.HELD),
    (LeaseState.HELD, "ticked"): ([ASKED_AGAIN], LeaseState.HELD),
    (LeaseState.YIELDING, "claimed"): ([], LeaseState.YIELDING),
    (LeaseState.YIELDING, "released"): ([], LeaseState.FREE),
    (LeaseState.YIELDING, "idle"): ([], LeaseState.YIELDING),
    (LeaseState.YIELDING, "busy"): ([], LeaseState.YIELDING),
    (LeaseState.YIELDING, "unknown"): ([], LeaseState.YIELDING),
    (LeaseState.YIELDING, "ticked"): ([], LeaseState.YIELDING),
}
"""Of a claim that does not reserve. What is missing has no outcome and changes no state."""

EVENTS: dict[str, LeaseEvent] = {
    "claimed": claim("b"),
    "released": LeaseReleased("a"),
    "idle": IDLE,
    "busy": BUSY,
    "unknown": UNKNOWN,
    "ticked": Ticked(),
    "reserved": NodeReserved("a"),
    "not reserved": ReservationFailed("a", "taken"),
    "given back": ReservationReleased(None),
    "not given back": ReservationReleased("no answer"),
}


WITHOUT_RESERVATION = [state for state in LeaseState if state is not LeaseState.RESERVING]


@pytest.mark.parametrize("reserves", [False, True])
@pytest.mark.parametrize(("state", "event"), [*itertools.product(WITHOUT_RESERVATION, EVENTS)])
def test_every_event_in_every_state(state, event, reserves):
    """Each pair has its outcome and its next state, for background runs also where there are reservations.

    The tick comes long after everything was due.
    """
    lease = lease_in(state, reserves=reserves)
    expected, after = PAIRS.get((state, event), ([], state))
    assert lease.handle(EVENTS[event], 100.0) == expected
    assert lease.state is after


RESERVED_PAIRS = {
    (LeaseState.FREE, "claimed"): ([ReserveNode("b", "run b")], LeaseState.RESERVING),
    (LeaseState.RESERVING, "claimed"): ([], LeaseState.RESERVING),
    (LeaseState.RESERVING, "released"): ([ReleaseReservation()], LeaseState.FREE),
    (LeaseState.RESERVING, "idle"): ([], LeaseState.RESERVING),
    (LeaseState.RESERVING, "busy"): ([], LeaseState.RESERVING),
    (LeaseState.RESERVING, "unknown"): ([], LeaseState.RESERVING),
    (LeaseState.RESERVING, "ticked"): (
        [LeaseDenied("a", "the node cannot be reserved: no answer in time"), ReleaseReservation()],
        LeaseState.FREE,
    ),
    (LeaseState.RESERVING, "reserved"): ([FIRST_ASKED], LeaseState.ASKING),
    (LeaseState.RESERVING, "not reserved"): (
        [LeaseDenied("a", "the node cannot be reserved: taken"), ReleaseReservation()],
        LeaseState.FREE,
    ),
    (LeaseState.ASKING, "released"): ([ReleaseReservation()], LeaseState.FREE),
    (LeaseState.ASKING, "busy"): ([LeaseDenied("a", "the node is busy"), ReleaseReservation()], LeaseState.FREE),
    (LeaseState.ASKING, "unknown"): ([LeaseDenied("a", NOT_IDLE), ReleaseReservation()], LeaseState.FREE),
    (LeaseState.ASKING, "ticked"): ([LeaseDenied("a", NOT_IDLE), ReleaseReservation()], LeaseState.FREE),
    (LeaseState.HELD, "released"): ([ReleaseReservation()], LeaseState.FREE),
    (LeaseState.YIELDING, "released"): ([ReleaseReservation()], LeaseState.FREE),
}
"""Where it makes a difference that the claim reserves."""


@pytest.mark.parametrize("precedence", [Precedence.GROUP, Precedence.REQUEST])
@pytest.mark.parametrize(("state", "event"), [*itertools.product(LeaseState, EVENTS)])
def test_every_event_in_every_state_with_a_reservation(state, event, precedence):
    """It is made before the probes are asked, and given back however the claim ends."""
    lease = lease_in(state, precedence, reserves=True)
    expected, after = {**PAIRS, **RESERVED_PAIRS}.get((state, event), ([], state))
    assert lease.handle(claim("b", precedence) if event == "claimed" else EVENTS[event], 100.0) == expected
    assert lease.state is after


@pytest.mark.parametrize("state", LeaseState)
def test_a_run_that_needs_nothing_is_granted_whoever_holds_the_node(state):
    """It does not become the holder."""
    lease = lease_in(state, Precedence.GROUP, reserves=True)
    assert lease.handle(claim("b", Precedence.REQUEST, Needs.NOTHING), 0.0) == [LeaseGranted("b")]
    assert lease.state is state


def test_one_holder_at_a_time_and_the_next_is_asked_for_anew():
    """The second waits until the first has ended, then the probes are asked for it."""
    lease = lease_in(LeaseState.HELD)
    assert lease.handle(claim("b"), 1.0) == []
    assert lease.holder == "a"
    assert lease.handle(LeaseReleased("a"), 2.0) == [FIRST_ASKED]
    assert lease.handle(IDLE, 2.1) == [LeaseGranted("b")]
    assert lease.holder == "b"


def test_groups_go_before_requests_and_these_before_background_runs():
    """The line is by precedence, then by arrival."""
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
    """The claim gets the node once the holder has ended."""
    lease = lease_in(LeaseState.HELD)
    (preempted,) = lease.handle(claim("g", precedence), 1.0)
    assert preempted == LeasePreempted("a", "the node is needed for a run that was asked for")
    assert lease.handle(LeaseReleased("a"), 1.2) == [FIRST_ASKED]
    assert lease.handle(IDLE, 1.3) == [LeaseGranted("g")]


def test_a_requested_holder_does_not_yield():
    """What somebody asked for is finished first."""
    lease = lease_in(LeaseState.HELD, Precedence.REQUEST)
    assert lease.handle(claim("g", Precedence.GROUP), 1.0) == []


def test_what_was_asked_for_gets_the_answer_that_a_background_claim_waits_for():
    """The background claim goes back into the line."""
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
    """Whoever is next in line has the probes asked for itself."""
    lease = lease_in(LeaseState.ASKING)
    lease.handle(claim("b"), 0.0)
    assert lease.handle(BUSY, 1.0) == [LeaseDenied("a", "the node is busy"), FIRST_ASKED]


def test_the_holder_is_watched_about_twice_a_second():
    """The next question comes an interval after the last one, however long the answer took."""
    lease = lease_in(LeaseState.HELD)
    assert lease.next_due() == PROBE_INTERVAL_S
    for asked, answered in ((1.0, 1.1), (2.0, 2.9)):
        assert lease.handle(Ticked(), asked) == [ASKED_AGAIN]
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
    """While the node is held, it is asked again at once when the patience is over."""
    lease = lease_in(LeaseState.HELD)
    lease.handle(Ticked(), 1.0)
    assert lease.next_due() == 1.0 + PATIENCE_S
    assert lease.handle(Ticked(), 1.0 + PATIENCE_S) == []
    assert lease.handle(Ticked(), 1.0 + PATIENCE_S) == [ASKED_AGAIN]


def test_nothing_is_due_while_it_is_free():
    """A free lease asks nobody."""
    assert lease_in(LeaseState.FREE).next_due() == math.inf


def test_who_is_at_work_is_told_if_the_probes_tell():
    """In the denial and in the preemption."""
    busy, unknown = IdlenessSeen(Idleness.BUSY, "slurm"), IdlenessSeen(Idleness.UNKNOWN, "kubernetes: 403")
    assert lease_in(LeaseState.ASKING).handle(busy, 1.0) == [LeaseDenied("a", "the node is busy (slurm)")]
    assert lease_in(LeaseState.ASKING).handle(unknown, 1.0) == [LeaseDenied("a", f"{NOT_IDLE} (kubernetes: 403)")]
    assert lease_in(LeaseState.HELD).handle(busy, 1.0) == [LeasePreempted("a", f"{AT_WORK} (slurm)")]


ANSWER_S = 0.1
"""What the probes take to answer; NVML and squeue take less."""


@pytest.mark.parametrize("arrival", [step / 20 for step in range(20)])
def test_work_is_answered_within_an_interval_and_an_answer_whenever_it_arrives(arrival):
    """The answer that is under way may not have seen it yet, the next one has. Of a second, 0.45 are left to kill."""
    lease = lease_in(LeaseState.HELD, Precedence.GROUP, reserves=True)
    outcomes: list[LeaseOutcome] = []
    while not outcomes:
        asked = lease.next_due()
        assert lease.handle(Ticked(), asked) == [ASKED_AGAIN]
        outcomes = lease.handle(BUSY if asked >= arrival else IDLE, asked + ANSWER_S)
    assert outcomes == [LeasePreempted("a", AT_WORK)]
    assert asked + ANSWER_S - arrival < 0.55


# Reservations


def test_without_reservations_there_is_no_extra_step():
    """Nothing is due, and the probes are asked at once."""
    lease = Lease(reserves=False)
    assert lease.next_due() == math.inf
    assert lease.handle(claim("a", Precedence.GROUP), 0.0) == [FIRST_ASKED]


def test_it_begins_with_giving_back_what_an_agent_that_was_killed_has_left():
    """Once, at the first tick."""
    lease = Lease(reserves=True)
    assert lease.next_due() == 0.0
    assert lease.handle(Ticked(), 5.0) == [ReleaseReservation()]
    assert lease.handle(ReservationReleased(None), 5.1) == []
    assert lease.next_due() == math.inf


def test_what_cannot_be_given_back_is_tried_again():
    """Until it is."""
    lease = lease_in(LeaseState.FREE, reserves=True)
    for now in (0.0, RETRY_S):
        lease.handle(ReservationReleased("no answer"), now)
        assert lease.handle(Ticked(), now + RETRY_S - 1) == []
        assert lease.next_due() == now + RETRY_S
        assert lease.handle(Ticked(), now + RETRY_S) == [ReleaseReservation()]
    assert lease.next_due() == math.inf


def test_a_claim_takes_over_what_could_not_be_given_back():
    """It is not given back under the claim, whenever the answer comes, but with it."""
    lease = lease_in(LeaseState.FREE, reserves=True)
    lease.handle(ReservationReleased("no answer"), 0.0)
    lease.handle(claim("a", Precedence.GROUP), 0.0)
    lease.handle(ReservationReleased("no answer"), 0.1)
    assert lease.next_due() == RESERVING_PATIENCE_S
    lease.handle(NodeReserved("a"), 0.2)
    lease.handle(IDLE, RETRY_S + 1)
    assert lease.handle(Ticked(), RETRY_S + 2) == [ASKED_AGAIN]
    assert lease.handle(LeaseReleased("a"), RETRY_S + 3) == [ReleaseReservation()]


def test_a_background_run_holds_nothing_up_that_is_to_be_given_back():
    """It needs no reservation itself."""
    lease = lease_in(LeaseState.HELD, reserves=True)
    lease.handle(ReservationReleased("no answer"), 0.1)
    assert ReleaseReservation() in lease.handle(Ticked(), 0.1 + RETRY_S)


def test_each_claim_has_a_reservation_of_its_own():
    """Those who meet it see for what; the one before is given back first."""
    lease = lease_in(LeaseState.HELD, Precedence.GROUP, reserves=True)
    lease.handle(claim("b", Precedence.REQUEST), 1.0)
    assert lease.handle(LeaseReleased("a"), 2.0) == [ReleaseReservation(), ReserveNode("b", "run b")]
    assert lease.handle(ReservationReleased(None), 2.1) == []
    assert lease.handle(NodeReserved("b"), 2.2) == [FIRST_ASKED]


def test_an_answer_from_before_the_reservation_grants_nothing():
    """Work may have come since: what was asked for takes the place of a background claim, and asks anew."""
    lease = lease_in(LeaseState.ASKING, reserves=True)
    assert lease.handle(claim("g", Precedence.GROUP), 0.1) == [ReserveNode("g", "run g")]
    assert lease.handle(IDLE, 0.2) == []
    assert lease.handle(NodeReserved("g"), 0.3) == [FIRST_ASKED]
    assert lease.handle(IDLE, 0.4) == [LeaseGranted("g")]
    assert lease.handle(LeaseReleased("g"), 1.0) == [ReleaseReservation(), FIRST_ASKED]
    assert lease.handle(IDLE, 1.1) == [LeaseGranted("a")]


@pytest.mark.parametrize("late", [NodeReserved("gone"), ReservationFailed("gone", "taken")])
def test_what_comes_of_the_reservation_of_another_claim_is_too_late(late):
    """Each claim waits for its own."""
    lease = lease_in(LeaseState.RESERVING, Precedence.GROUP, reserves=True)
    assert lease.handle(late, 1.0) == []
    assert lease.state is LeaseState.RESERVING
