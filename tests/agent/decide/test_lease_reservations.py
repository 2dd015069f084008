"""The lease where schedulers can be kept off the node: it reserves before it asks, and always gives back."""

import itertools
import math

import pytest
from tests.agent.decide.leases import (
    ASKED_AGAIN,
    EVENTS,
    FIRST_ASKED,
    IDLE,
    NOT_IDLE,
    PAIRS,
    claim,
    lease_in,
)
from tests.cases import cases

from muster_agent.decide.events import (
    DueTimeReached,
    NodeReserved,
    ReleaseReservation,
    ReservationFailed,
    ReservationReleased,
    ReserveNode,
)
from muster_agent.decide.lease import (
    RESERVING_PATIENCE_S,
    RETRY_S,
    Lease,
    LeaseDenied,
    LeaseGranted,
    LeaseReleased,
    LeaseState,
    Precedence,
)

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


@cases("precedence", [Precedence.GROUP, Precedence.REQUEST])
@cases(("state", "event"), [*itertools.product(LeaseState, EVENTS)])
def test_every_event_in_every_state_with_a_reservation(state, event, precedence):
    """It is made before the probes are asked, and released at every end of the claim."""
    lease = lease_in(state, precedence, reserves=True)
    expected, after = {**PAIRS, **RESERVED_PAIRS}.get((state, event), ([], state))
    assert lease.handle(claim("b", precedence) if event == "claimed" else EVENTS[event], 100.0) == expected
    assert lease.state is after


def test_without_reservations_there_is_no_extra_step():
    """Nothing is due, and the probes are asked at once."""
    lease = Lease(reserves=False)
    assert lease.next_due() == math.inf
    assert lease.handle(claim("a", Precedence.GROUP), 0.0) == [FIRST_ASKED]


def test_it_begins_with_giving_back_what_an_agent_that_was_killed_has_left():
    """The first tick releases it, once."""
    lease = Lease(reserves=True)
    assert lease.next_due() == 0.0
    assert lease.handle(DueTimeReached(), 5.0) == [ReleaseReservation()]
    assert lease.handle(ReservationReleased(None), 5.1) == []
    assert lease.next_due() == math.inf


def test_what_cannot_be_given_back_is_tried_again():
    """The lease retries until it succeeds."""
    lease = lease_in(LeaseState.FREE, reserves=True)
    for now in (0.0, RETRY_S):
        lease.handle(ReservationReleased("no answer"), now)
        assert lease.handle(DueTimeReached(), now + RETRY_S - 1) == []
        assert lease.next_due() == now + RETRY_S
        assert lease.handle(DueTimeReached(), now + RETRY_S) == [ReleaseReservation()]
    assert lease.next_due() == math.inf


def test_a_claim_takes_over_what_could_not_be_given_back():
    """It is released together with the claim, whenever the answer to the earlier release arrives."""
    lease = lease_in(LeaseState.FREE, reserves=True)
    lease.handle(ReservationReleased("no answer"), 0.0)
    lease.handle(claim("a", Precedence.GROUP), 0.0)
    lease.handle(ReservationReleased("no answer"), 0.1)
    assert lease.next_due() == RESERVING_PATIENCE_S
    lease.handle(NodeReserved("a"), 0.2)
    lease.handle(IDLE, RETRY_S + 1)
    assert lease.handle(DueTimeReached(), RETRY_S + 2) == [ASKED_AGAIN]
    assert lease.handle(LeaseReleased("a"), RETRY_S + 3) == [ReleaseReservation()]


def test_a_background_run_holds_nothing_up_that_is_to_be_given_back():
    """A background run needs no reservation."""
    lease = lease_in(LeaseState.HELD, reserves=True)
    lease.handle(ReservationReleased("no answer"), 0.1)
    assert ReleaseReservation() in lease.handle(DueTimeReached(), 0.1 + RETRY_S)


def test_each_claim_has_a_reservation_of_its_own():
    """Each reservation names its purpose; the one before is released first."""
    lease = lease_in(LeaseState.HELD, Precedence.GROUP, reserves=True)
    lease.handle(claim("b", Precedence.REQUEST), 1.0)
    assert lease.handle(LeaseReleased("a"), 2.0) == [ReleaseReservation(), ReserveNode("b", "run b")]
    assert lease.handle(ReservationReleased(None), 2.1) == []
    assert lease.handle(NodeReserved("b"), 2.2) == [FIRST_ASKED]


def test_an_answer_from_before_the_reservation_grants_nothing():
    """Work may have arrived since: a requested claim replaces a background claim, and asks again."""
    lease = lease_in(LeaseState.ASKING, reserves=True)
    assert lease.handle(claim("g", Precedence.GROUP), 0.1) == [ReserveNode("g", "run g")]
    assert lease.handle(IDLE, 0.2) == []
    assert lease.handle(NodeReserved("g"), 0.3) == [FIRST_ASKED]
    assert lease.handle(IDLE, 0.4) == [LeaseGranted("g")]
    assert lease.handle(LeaseReleased("g"), 1.0) == [ReleaseReservation(), FIRST_ASKED]
    assert lease.handle(IDLE, 1.1) == [LeaseGranted("a")]


@pytest.mark.parametrize("late", [NodeReserved("gone"), ReservationFailed("gone", "taken")])
def test_what_comes_of_the_reservation_of_another_claim_is_too_late(late):
    """Each claim waits for its own reservation."""
    lease = lease_in(LeaseState.RESERVING, Precedence.GROUP, reserves=True)
    assert lease.handle(late, 1.0) == []
    assert lease.state is LeaseState.RESERVING
