"""Leases in a given state, and claims on them."""

from muster.check import Idleness, Needs
from muster_agent.decide.events import (
    DueTimeReached,
    IdlenessSeen,
    NodeReserved,
    ProbeIdle,
    ReservationFailed,
    ReservationReleased,
)
from muster_agent.decide.lease import (
    Lease,
    LeaseClaimed,
    LeaseDenied,
    LeaseEvent,
    LeaseGranted,
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
    for event in [DueTimeReached(), *steps[state]]:
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
    "ticked": DueTimeReached(),
    "reserved": NodeReserved("a"),
    "not reserved": ReservationFailed("a", "taken"),
    "given back": ReservationReleased(None),
    "not given back": ReservationReleased("no answer"),
}
