"""Who of muster's own runs holds the node, and whether anybody else is at work on it.

A run that needs an idle device or an idle node claims the lease; one that needs nothing is granted at once and never
holds it. The lease has at most one holder, because a run may use every device of its node. The rules:

- FREE: a claim asks the idle probes (ASKING).
- ASKING: idle grants the claim (HELD). Busy denies it, and so does unknown or no answer within PATIENCE_S.
- HELD: the probes are asked every PROBE_INTERVAL_S. Busy preempts the holder at once (YIELDING). Unknown does so only
  when it is said UNKNOWN_LIMIT times in a row: a single probe that fails while a run loads the driver is no sign of
  work, several are no sign of idleness. A background holder also yields to any claim that was asked for.
- YIELDING: the holder has been told to go. Its release passes the lease on.

Who claims while another holds waits in line: groups first, then requests, then background runs.
"""

import math
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from muster.check import Idleness, Needs
from muster_agent.events import IdlenessSeen, ProbeIdle, Ticked

PROBE_INTERVAL_S = 0.4
"""Between an answer of the probes and the next question, so that work which arrives is seen within half a second."""

PATIENCE_S = 5.0
UNKNOWN_LIMIT = 4


class Precedence(IntEnum):
    """Who goes first."""

    GROUP = 0
    REQUEST = 1
    BACKGROUND = 2


class LeaseState(StrEnum):
    """What the lease is doing."""

    FREE = "FREE"
    ASKING = "ASKING"
    HELD = "HELD"
    YIELDING = "YIELDING"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run wants to start."""

    run: str
    needs: Needs
    precedence: Precedence


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


LeaseEvent = Claimed | Released | IdlenessSeen | Ticked
Outcome = Granted | Denied | Preempted | ProbeIdle


class Lease:
    """The lease of one node."""

    def __init__(self) -> None:
        self.state = LeaseState.FREE
        self._claim: Claimed | None = None
        self._waiting: list[Claimed] = []
        self._due = math.inf
        self._awaited = False
        self._unknowns = 0

    @property
    def holder(self) -> str | None:
        """The run that holds the node, if any."""
        return self._claim.run if self._claim and self.state in (LeaseState.HELD, LeaseState.YIELDING) else None

    def next_due(self) -> float:
        """When a tick has something to do next."""
        return self._due

    def handle(self, event: LeaseEvent, now: float) -> list[Outcome]:
        """What follows from `event`."""
        match event:
            case Claimed(run, Needs.NOTHING):
                return [Granted(run)]
            case Claimed():
                return self._queue(event, now)
            case Released(run):
                return self._release(run, now)
            case IdlenessSeen(idleness):
                return self._hear(idleness, now)
            case Ticked():
                return self._tick(now)

    def _queue(self, claim: Claimed, now: float) -> list[Outcome]:
        self._waiting.append(claim)
        self._waiting.sort(key=lambda waiting: waiting.precedence)
        match self.state:
            case LeaseState.FREE:
                return self._next(now)
            case LeaseState.ASKING if self._yields_to(claim):
                self._swap(claim)
            case LeaseState.HELD if self._yields_to(claim):
                return self._preempt("the node is needed for a run that was asked for")
        return []

    def _yields_to(self, claim: Claimed) -> bool:
        assert self._claim is not None
        return self._claim.precedence is Precedence.BACKGROUND and claim.precedence is not Precedence.BACKGROUND

    def _swap(self, claim: Claimed) -> None:
        """Lets `claim` have the answer that was asked for another, which goes back into the line."""
        assert self._claim is not None
        self._waiting.remove(claim)
        self._waiting.append(self._claim)
        self._claim = claim

    def _release(self, run: str, now: float) -> list[Outcome]:
        if self._claim is None or self._claim.run != run:
            self._waiting = [claim for claim in self._waiting if claim.run != run]
            return []
        return self._next(now)

    def _next(self, now: float) -> list[Outcome]:
        """Asks the probes for whoever is first in line."""
        if not self._waiting:
            self.state, self._claim, self._due = LeaseState.FREE, None, math.inf
            return []
        self.state, self._claim = LeaseState.ASKING, self._waiting.pop(0)
        return self._ask(now)

    def _ask(self, now: float) -> list[Outcome]:
        self._awaited, self._due = True, now + PATIENCE_S
        return [ProbeIdle()]

    def _hear(self, idleness: Idleness, now: float) -> list[Outcome]:
        self._awaited = False
        match self.state:
            case LeaseState.ASKING:
                return self._decide(idleness, now)
            case LeaseState.HELD:
                return self._watch(idleness, now)
        return []

    def _decide(self, idleness: Idleness, now: float) -> list[Outcome]:
        assert self._claim is not None
        run = self._claim.run
        if idleness is Idleness.IDLE:
            self.state, self._due, self._unknowns = LeaseState.HELD, now + PROBE_INTERVAL_S, 0
            return [Granted(run)]
        why = "is busy" if idleness is Idleness.BUSY else "cannot be shown to be idle"
        return [Denied(run, f"the node {why}"), *self._next(now)]

    def _watch(self, idleness: Idleness, now: float) -> list[Outcome]:
        self._due = now + PROBE_INTERVAL_S
        self._unknowns = self._unknowns + 1 if idleness is Idleness.UNKNOWN else 0
        if idleness is Idleness.BUSY:
            return self._preempt("somebody else is at work on this node")
        if self._unknowns >= UNKNOWN_LIMIT:
            return self._preempt("whether somebody else is at work on this node cannot be told")
        return []

    def _preempt(self, detail: str) -> list[Outcome]:
        assert self._claim is not None
        self.state, self._due = LeaseState.YIELDING, math.inf
        return [Preempted(self._claim.run, detail)]

    def _tick(self, now: float) -> list[Outcome]:
        if now < self._due:
            return []
        return self._hear(Idleness.UNKNOWN, now) if self._awaited else self._ask(now)
