"""Who of muster's own runs holds the node, and whether anybody else is at work on it.

A run that needs an idle device or an idle node claims the lease; one that needs nothing is granted at once and never
holds it. The lease has at most one holder, because a run may use every device of its node. The rules:

- FREE: a claim begins. Where there are reservations, one that was asked for has the node reserved (RESERVING), so that
  no work can be put there between the answer of the idle probes and the run; any other asks the probes (ASKING).
- RESERVING: once the node is reserved, the probes are asked. A refusal denies the claim, and so does no answer within
  RESERVING_PATIENCE_S.
- ASKING: idle grants the claim (HELD). Busy denies it, and so does unknown or no answer within PATIENCE_S.
- HELD: the probes are asked every PROBE_INTERVAL_S. Busy preempts the holder at once (YIELDING). Unknown does so only
  when it is said UNKNOWN_LIMIT times in a row: a single probe that fails while a run loads the driver is no sign of
  work, several are no sign of idleness. A background holder also yields to any claim that was asked for.
- YIELDING: the holder has been told to go. Its release passes the lease on.

Who claims while another holds waits in line: groups first, then requests, then background runs.

Whichever way a claim ends for which the node was to be reserved, the reservation is given back; what cannot be given
back is tried again every RETRY_S. The lease begins with giving back, as an agent that was killed has left its
reservation behind. Background runs do not reserve: they yield to work within a second, and to take the node out of
scheduling for each of them would cost more work than they ever do. A group that loses a member, or a run that somebody
waits for, is worth it.

Whoever carries the commands out does so in their order, so an answer that comes in RESERVING is to an older question.
"""

import math
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from muster.check import Idleness, Needs
from muster_agent.decide.events import (
    GiveBack,
    GivenBack,
    IdlenessSeen,
    NotReserved,
    ProbeIdle,
    Reserve,
    Reserved,
    Ticked,
)

PROBE_INTERVAL_S = 0.4
"""Between two questions to the probes. Who is slow to answer is asked again at once, so that work which arrives is seen
within this and the time of one answer."""

PATIENCE_S = 5.0
RESERVING_PATIENCE_S = 8.0
"""The reservations have 5 s, but may have to wait until the process that makes them is free."""

UNKNOWN_LIMIT = 4
RETRY_S = 30.0


class Precedence(IntEnum):
    """Who goes first."""

    GROUP = 0
    REQUEST = 1
    BACKGROUND = 2


class LeaseState(StrEnum):
    """What the lease is doing."""

    FREE = "FREE"
    RESERVING = "RESERVING"
    ASKING = "ASKING"
    HELD = "HELD"
    YIELDING = "YIELDING"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run wants to start; `purpose` says for people what it is."""

    run: str
    needs: Needs
    precedence: Precedence
    purpose: str


@dataclass(frozen=True, slots=True)
class Released:
    """A run has ended, or wants to start no more."""

    run: str


@dataclass(frozen=True, slots=True)
class Granted:
    """The run may start, and holds the node if it needs to."""

    run: str


@dataclass(frozen=True, slots=True)
class Denied:
    """The run may not start."""

    run: str
    detail: str


@dataclass(frozen=True, slots=True)
class Preempted:
    """The run must stop."""

    run: str
    detail: str


LeaseEvent = Claimed | Released | Reserved | NotReserved | GivenBack | IdlenessSeen | Ticked
LeaseCommand = Reserve | GiveBack | ProbeIdle
Outcome = Granted | Denied | Preempted | LeaseCommand


class Lease:
    """The lease of one node. `reserves` says whether there are reservations on it."""

    def __init__(self, *, reserves: bool) -> None:
        self.state = LeaseState.FREE
        self._reserves = reserves
        self._give_back_due = 0.0 if reserves else math.inf
        self._claim: Claimed | None = None
        self._waiting: list[Claimed] = []
        self._due = math.inf
        self._asked_at = 0.0
        self._awaited = False
        self._unknowns = 0

    @property
    def holder(self) -> str | None:
        """The run that holds the node, if any."""
        return self._claim.run if self._claim and self.state in (LeaseState.HELD, LeaseState.YIELDING) else None

    def next_due(self) -> float:
        """When a tick has something to do next."""
        return min(self._due, self._give_back_due)

    def handle(self, event: LeaseEvent, now: float) -> list[Outcome]:
        """What follows from `event`."""
        match event:
            case Claimed(run, Needs.NOTHING):
                return [Granted(run)]
            case Claimed():
                return self._queue(event, now)
            case Released(run):
                return self._release(run, now)
            case Ticked():
                return [*self._give_back_again(now), *self._tick(now)]
            case _:
                return self._learn(event, now)

    def _learn(self, event: Reserved | NotReserved | GivenBack | IdlenessSeen, now: float) -> list[Outcome]:
        """What follows from what came of a command."""
        match event:
            case Reserved() | NotReserved():
                return self._go_on(event, now)
            case GivenBack(problem):
                return self._note(problem, now)
            case IdlenessSeen():
                return self._hear(event, now)

    # Who is next

    def _queue(self, claim: Claimed, now: float) -> list[Outcome]:
        self._waiting.append(claim)
        self._waiting.sort(key=lambda waiting: waiting.precedence)
        match self.state:
            case LeaseState.FREE:
                return self._next(now)
            case LeaseState.ASKING if self._yields_to(claim):
                return self._swap(claim, now)
            case LeaseState.HELD if self._yields_to(claim):
                return self._preempt("the node is needed for a run that was asked for")
        return []

    def _yields_to(self, claim: Claimed) -> bool:
        assert self._claim is not None
        return self._claim.precedence is Precedence.BACKGROUND and claim.precedence is not Precedence.BACKGROUND

    def _swap(self, claim: Claimed, now: float) -> list[Outcome]:
        """Lets `claim` have the answer that was asked for another, which goes back into the line.

        Where the node has to be reserved first that answer is too old.
        """
        assert self._claim is not None
        self._waiting.remove(claim)
        self._waiting.append(self._claim)
        self._claim = claim
        return self._reserve(claim, now) if self._reserves else []

    def _release(self, run: str, now: float) -> list[Outcome]:
        if self._claim is None or self._claim.run != run:
            self._waiting = [claim for claim in self._waiting if claim.run != run]
            return []
        return self._end_claim(now)

    def _end_claim(self, now: float) -> list[Outcome]:
        """Gives back what was reserved and begins with whoever is first in line."""
        given_back = [GiveBack()] if self._claim_reserves else []
        return [*given_back, *self._next(now)]

    def _next(self, now: float) -> list[Outcome]:
        if not self._waiting:
            self.state, self._claim, self._due = LeaseState.FREE, None, math.inf
            return []
        self._claim = self._waiting.pop(0)
        return self._reserve(self._claim, now) if self._claim_reserves else self._ask_first(now)

    # The reservation

    @property
    def _claim_reserves(self) -> bool:
        """Whether the present claim is one for which the node is reserved."""
        return self._reserves and self._claim is not None and self._claim.precedence is not Precedence.BACKGROUND

    def _reserve(self, claim: Claimed, now: float) -> list[Outcome]:
        self.state, self._due = LeaseState.RESERVING, now + RESERVING_PATIENCE_S
        self._give_back_due = math.inf  # what may still be reserved is taken over, and given back with this
        return [Reserve(claim.run, claim.purpose)]

    def _go_on(self, event: Reserved | NotReserved, now: float) -> list[Outcome]:
        """Goes on with the claim that waits for this; what comes too late changes nothing."""
        if self.state is not LeaseState.RESERVING or self._claim is None or self._claim.run != event.run:
            return []
        match event:
            case Reserved():
                return self._ask_first(now)
            case NotReserved(_, detail):
                return self._deny(f"the node cannot be reserved: {detail}", now)

    def _note(self, problem: str | None, now: float) -> list[Outcome]:
        """Remembers what could not be given back, unless it is reserved again already."""
        self._give_back_due = now + RETRY_S if problem and not self._claim_reserves else math.inf
        return []

    def _give_back_again(self, now: float) -> list[Outcome]:
        if now < self._give_back_due:
            return []
        self._give_back_due = math.inf
        return [GiveBack()]

    # The probes

    def _ask_first(self, now: float) -> list[Outcome]:
        self.state = LeaseState.ASKING
        return self._ask(now)

    def _ask(self, now: float) -> list[Outcome]:
        self._asked_at, self._awaited, self._due = now, True, now + PATIENCE_S
        return [ProbeIdle(afresh=self.state is LeaseState.ASKING)]

    def _hear(self, seen: IdlenessSeen, now: float) -> list[Outcome]:
        self._awaited = False
        match self.state:
            case LeaseState.ASKING:
                return self._decide(seen, now)
            case LeaseState.HELD:
                return self._watch(seen)
        return []

    def _decide(self, seen: IdlenessSeen, now: float) -> list[Outcome]:
        assert self._claim is not None
        match seen.idleness:
            case Idleness.IDLE:
                self.state, self._due, self._unknowns = LeaseState.HELD, self._asked_at + PROBE_INTERVAL_S, 0
                return [Granted(self._claim.run)]
            case Idleness.BUSY:
                return self._deny(_because("the node is busy", seen.why), now)
            case Idleness.UNKNOWN:
                return self._deny(_because("the node cannot be shown to be idle", seen.why), now)

    def _deny(self, detail: str, now: float) -> list[Outcome]:
        assert self._claim is not None
        return [Denied(self._claim.run, detail), *self._end_claim(now)]

    def _watch(self, seen: IdlenessSeen) -> list[Outcome]:
        self._due = self._asked_at + PROBE_INTERVAL_S
        self._unknowns = self._unknowns + 1 if seen.idleness is Idleness.UNKNOWN else 0
        if seen.idleness is Idleness.BUSY:
            return self._preempt(_because("somebody else is at work on this node", seen.why))
        if self._unknowns >= UNKNOWN_LIMIT:
            return self._preempt(_because("whether somebody else is at work on this node cannot be told", seen.why))
        return []

    def _preempt(self, detail: str) -> list[Outcome]:
        assert self._claim is not None
        self.state, self._due = LeaseState.YIELDING, math.inf
        return [Preempted(self._claim.run, detail)]

    def _tick(self, now: float) -> list[Outcome]:
        if now < self._due:
            return []
        if self.state is LeaseState.RESERVING:
            return self._deny("the node cannot be reserved: no answer in time", now)
        return self._hear(IdlenessSeen(Idleness.UNKNOWN), now) if self._awaited else self._ask(now)


def _because(what: str, why: str) -> str:
    return f"{what} ({why})" if why else what
