"""Decides which of muster's own runs holds the node, and whether anything else uses the node.

The idea: a run that needs an idle device or node claims the lease. The lease has at most one holder, because a run may
use every device. Before it grants a claim, it asks the idle probes whether a job runs here; while a run holds it, it
asks again and again, so that a job that arrives gets the node within about a second. A run that needs nothing is
granted at once and never holds the lease.

| State | Entered when | Left when |
|---|---|---|
| FREE | nothing claims the node | a claim arrives |
| RESERVING | a group or request claims it | the scheduler's reservation is made, refused or too late |
| ASKING | the probes are asked for a claim | IDLE grants it; BUSY, UNKNOWN or silence denies it |
| HELD | the claim is granted | the run ends, or a job arrives, or a request claims the node from a background run |
| YIELDING | the holder was told to stop | it has stopped |

Waiting claims are served in this order: groups, requests, background runs.

Example: a background `gemm` holds the node and a user asks for `memory` at 10.0 s. The lease tells `gemm` to stop
(YIELDING). It has stopped at 10.4 s; the lease reserves the node (RESERVING), so that the scheduler can place no job
between the probes' answer and the run. At 10.6 s it asks the probes (ASKING), at 10.7 s they say IDLE and `memory`
starts (HELD). From then on it asks every `PROBE_INTERVAL_S`. At 15.0 s a job starts despite the reservation: BUSY, and
`memory` is stopped at once.

While a run holds the node, one UNKNOWN does not stop it: a probe may fail while a run loads the driver. `UNKNOWN_LIMIT`
in a row do, because silence is no proof that the node is idle.

Background runs do not reserve. They give the node up within a second, and taking it out of scheduling for each of them
would cost the cluster more than they do. A group that loses a member, or a run that a user waits for, is worth it.

Every reservation is released when its claim ends. If releasing fails, the lease tries again every `RETRY_S`. A new
lease begins with a release, because an agent that was killed leaves its reservation behind.

The daemon carries commands out in order, so an answer of the probes that arrives in RESERVING belongs to an older
question and is ignored.
"""

import math
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from muster.check import Idleness, Needs
from muster_agent.decide.events import (
    DueTimeReached,
    IdlenessSeen,
    NodeReserved,
    ProbeIdle,
    ReleaseReservation,
    ReservationFailed,
    ReservationReleased,
    ReserveNode,
)

PROBE_INTERVAL_S = 0.4
"""Time from one question to the next. If an answer takes longer, the next question follows it at once. A job that
arrives is therefore seen within this time plus the time of one answer."""

PATIENCE_S = 5.0
RESERVING_PATIENCE_S = 8.0
"""Reservations may take 5 s, and the process that makes them may be busy before."""

UNKNOWN_LIMIT = 4
RETRY_S = 30.0


class Precedence(IntEnum):
    """The order in which waiting claims are served."""

    GROUP = 0
    REQUEST = 1
    BACKGROUND = 2


class LeaseState(StrEnum):
    """The states of the lease; see the table above."""

    FREE = "FREE"
    RESERVING = "RESERVING"
    ASKING = "ASKING"
    HELD = "HELD"
    YIELDING = "YIELDING"


@dataclass(frozen=True, slots=True)
class LeaseClaimed:
    """A run asks for the node. `purpose` describes it for people."""

    run: str
    needs: Needs
    precedence: Precedence
    purpose: str


@dataclass(frozen=True, slots=True)
class LeaseReleased:
    """A run has ended or withdraws its claim."""

    run: str


@dataclass(frozen=True, slots=True)
class LeaseGranted:
    """The run may start. It holds the node, unless it needs nothing."""

    run: str


@dataclass(frozen=True, slots=True)
class LeaseDenied:
    """The run may not start."""

    run: str
    detail: str


@dataclass(frozen=True, slots=True)
class LeasePreempted:
    """The run must stop."""

    run: str
    detail: str


LeaseEvent = (
    LeaseClaimed
    | LeaseReleased
    | NodeReserved
    | ReservationFailed
    | ReservationReleased
    | IdlenessSeen
    | DueTimeReached
)
LeaseCommand = ReserveNode | ReleaseReservation | ProbeIdle
LeaseOutcome = LeaseGranted | LeaseDenied | LeasePreempted | LeaseCommand


class Lease:
    """The lease of one node. `reserves` is true if a plugin can keep a scheduler off the node."""

    def __init__(self, *, reserves: bool) -> None:
        self.state = LeaseState.FREE
        self._reserves = reserves
        self._release_due = 0.0 if reserves else math.inf
        self._claim: LeaseClaimed | None = None
        self._waiting: list[LeaseClaimed] = []
        self._due = math.inf
        self._asked_at = 0.0
        self._awaited = False
        self._unknowns = 0

    @property
    def holder(self) -> str | None:
        """The id of the run that holds the node, if any."""
        return self._claim.run if self._claim and self.state in (LeaseState.HELD, LeaseState.YIELDING) else None

    def next_due(self) -> float:
        """When the next DueTimeReached is needed."""
        return min(self._due, self._release_due)

    def handle(self, event: LeaseEvent, now: float) -> list[LeaseOutcome]:
        """Applies an event and returns the grants, denials and commands that follow."""
        match event:
            case LeaseClaimed(run, Needs.NOTHING):
                return [LeaseGranted(run)]
            case LeaseClaimed():
                return self._queue(event, now)
            case LeaseReleased(run):
                return self._release(run, now)
            case DueTimeReached():
                return [*self._retry_release(now), *self._tick(now)]
            case _:
                return self._handle_answer(event, now)

    def _handle_answer(
        self, event: NodeReserved | ReservationFailed | ReservationReleased | IdlenessSeen, now: float
    ) -> list[LeaseOutcome]:
        """Applies the answer to an earlier command."""
        match event:
            case NodeReserved() | ReservationFailed():
                return self._continue_claim(event, now)
            case ReservationReleased(problem):
                return self._note_release(problem, now)
            case IdlenessSeen():
                return self._take_answer(event, now)

    # Claims in their order

    def _queue(self, claim: LeaseClaimed, now: float) -> list[LeaseOutcome]:
        self._waiting.append(claim)
        self._waiting.sort(key=lambda waiting: waiting.precedence)
        match self.state:
            case LeaseState.FREE:
                return self._serve_next(now)
            case LeaseState.ASKING if self._yields_to(claim):
                return self._take_over_question(claim, now)
            case LeaseState.HELD if self._yields_to(claim):
                return self._preempt("the node is needed for a requested run")
        return []

    def _yields_to(self, claim: LeaseClaimed) -> bool:
        assert self._claim is not None
        return self._claim.precedence is Precedence.BACKGROUND and claim.precedence is not Precedence.BACKGROUND

    def _take_over_question(self, claim: LeaseClaimed, now: float) -> list[LeaseOutcome]:
        """Lets `claim` have the answer to the question that was asked for a background run, which waits again.

        If the node must be reserved first, that answer would be too old, so the lease reserves and asks again.
        """
        assert self._claim is not None
        self._waiting.remove(claim)
        self._waiting.append(self._claim)
        self._claim = claim
        return self._reserve(claim, now) if self._reserves else []

    def _release(self, run: str, now: float) -> list[LeaseOutcome]:
        if self._claim is None or self._claim.run != run:
            self._waiting = [claim for claim in self._waiting if claim.run != run]
            return []
        return self._end_claim(now)

    def _end_claim(self, now: float) -> list[LeaseOutcome]:
        """Releases the reservation, if there is one, and serves the next claim."""
        released = [ReleaseReservation()] if self._claim_reserves else []
        return [*released, *self._serve_next(now)]

    def _serve_next(self, now: float) -> list[LeaseOutcome]:
        if not self._waiting:
            self.state, self._claim, self._due = LeaseState.FREE, None, math.inf
            return []
        self._claim = self._waiting.pop(0)
        return self._reserve(self._claim, now) if self._claim_reserves else self._ask_first(now)

    # The reservation

    @property
    def _claim_reserves(self) -> bool:
        """Whether the node is reserved for the present claim."""
        return self._reserves and self._claim is not None and self._claim.precedence is not Precedence.BACKGROUND

    def _reserve(self, claim: LeaseClaimed, now: float) -> list[LeaseOutcome]:
        self.state, self._due = LeaseState.RESERVING, now + RESERVING_PATIENCE_S
        self._release_due = math.inf  # a reservation that could not be released belongs to this claim now
        return [ReserveNode(claim.run, claim.purpose)]

    def _continue_claim(self, event: NodeReserved | ReservationFailed, now: float) -> list[LeaseOutcome]:
        """Continues the claim that waits for the reservation; ignores an answer that is too late."""
        if self.state is not LeaseState.RESERVING or self._claim is None or self._claim.run != event.run:
            return []
        match event:
            case NodeReserved():
                return self._ask_first(now)
            case ReservationFailed(_, detail):
                return self._deny(f"the node cannot be reserved: {detail}", now)

    def _note_release(self, problem: str | None, now: float) -> list[LeaseOutcome]:
        """Plans the next attempt to release, unless the node is reserved again already."""
        self._release_due = now + RETRY_S if problem and not self._claim_reserves else math.inf
        return []

    def _retry_release(self, now: float) -> list[LeaseOutcome]:
        if now < self._release_due:
            return []
        self._release_due = math.inf
        return [ReleaseReservation()]

    # The probes

    def _ask_first(self, now: float) -> list[LeaseOutcome]:
        self.state = LeaseState.ASKING
        return self._ask(now)

    def _ask(self, now: float) -> list[LeaseOutcome]:
        self._asked_at, self._awaited, self._due = now, True, now + PATIENCE_S
        return [ProbeIdle(afresh=self.state is LeaseState.ASKING)]

    def _take_answer(self, seen: IdlenessSeen, now: float) -> list[LeaseOutcome]:
        self._awaited = False
        match self.state:
            case LeaseState.ASKING:
                return self._answer_claim(seen, now)
            case LeaseState.HELD:
                return self._watch_holder(seen)
        return []

    def _answer_claim(self, seen: IdlenessSeen, now: float) -> list[LeaseOutcome]:
        assert self._claim is not None
        match seen.idleness:
            case Idleness.IDLE:
                self.state, self._due, self._unknowns = LeaseState.HELD, self._asked_at + PROBE_INTERVAL_S, 0
                return [LeaseGranted(self._claim.run)]
            case Idleness.BUSY:
                return self._deny(_because("the node is busy", seen.why), now)
            case Idleness.UNKNOWN:
                return self._deny(_because("the node cannot be shown to be idle", seen.why), now)

    def _deny(self, detail: str, now: float) -> list[LeaseOutcome]:
        assert self._claim is not None
        return [LeaseDenied(self._claim.run, detail), *self._end_claim(now)]

    def _watch_holder(self, seen: IdlenessSeen) -> list[LeaseOutcome]:
        self._due = self._asked_at + PROBE_INTERVAL_S
        self._unknowns = self._unknowns + 1 if seen.idleness is Idleness.UNKNOWN else 0
        if seen.idleness is Idleness.BUSY:
            return self._preempt(_because("somebody else is at work on this node", seen.why))
        if self._unknowns >= UNKNOWN_LIMIT:
            return self._preempt(_because("cannot tell whether somebody else is at work on this node", seen.why))
        return []

    def _preempt(self, detail: str) -> list[LeaseOutcome]:
        assert self._claim is not None
        self.state, self._due = LeaseState.YIELDING, math.inf
        return [LeasePreempted(self._claim.run, detail)]

    def _tick(self, now: float) -> list[LeaseOutcome]:
        if now < self._due:
            return []
        if self.state is LeaseState.RESERVING:
            return self._deny("the node cannot be reserved: no answer in time", now)
        return self._take_answer(IdlenessSeen(Idleness.UNKNOWN), now) if self._awaited else self._ask(now)


def _because(what: str, why: str) -> str:
    return f"{what} ({why})" if why else what
