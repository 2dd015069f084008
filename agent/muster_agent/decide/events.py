"""What can happen to a node (events, past tense) and what it wants done about it (commands, imperative).

`Node.handle(event, now)` turns one into the other; the daemon carries the commands out and feeds back what came of
them. Runs, groups and ports are named by id, so that nothing here holds a process or a socket.
"""

from dataclasses import dataclass

from muster.check import Idleness, Needs
from muster.model import Inventory, Run
from muster.wire.messages import AnyCommand, AnyGroupReply, CoordinatorPresence
from muster_agent.decide.orders import Order, RanksReady, RunEnded, RunProgressed

# What can happen


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time has passed; to be fed when `next_due` is reached."""


@dataclass(frozen=True, slots=True)
class StopRequested:
    """The agent is to end."""


@dataclass(frozen=True, slots=True)
class CommandReceived:
    """The coordinator has given an order."""

    command: AnyCommand


@dataclass(frozen=True, slots=True)
class CoordinatorSeen:
    """A coordinator has said that it leads."""

    message: CoordinatorPresence


@dataclass(frozen=True, slots=True)
class InventoryFound:
    """The node's devices are known, perhaps anew."""

    inventory: Inventory


@dataclass(frozen=True, slots=True)
class Alerted:
    """A check's watch says that there is something to measure at once."""

    check: str


@dataclass(frozen=True, slots=True)
class IdlenessSeen:
    """The idle probes have answered; `why` names those that do not say IDLE, with their reasons where they gave one."""

    idleness: Idleness
    why: str = ""


@dataclass(frozen=True, slots=True)
class Reserved:
    """The node is reserved for a run."""

    run: str


@dataclass(frozen=True, slots=True)
class NotReserved:
    """The node could not be reserved for a run, or not as far as can be told."""

    run: str
    detail: str


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The node is not reserved any more, unless there is a `problem` with that."""

    problem: str | None


@dataclass(frozen=True, slots=True)
class PortOpened:
    """The node listens for a group."""

    group: str
    address: str
    port: int


@dataclass(frozen=True, slots=True)
class PortRefused:
    """The node cannot listen for a group."""

    group: str
    detail: str


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A Prepare names an impossible rank, world size or address; `reason` is the word that Declined has for it."""

    group: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Reached:
    """Rank 0 of a group takes connections from here."""

    group: str


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Rank 0 of a group cannot be reached from here."""

    group: str
    detail: str


Event = (
    Ticked
    | StopRequested
    | CommandReceived
    | CoordinatorSeen
    | InventoryFound
    | Alerted
    | IdlenessSeen
    | Reserved
    | NotReserved
    | GivenBack
    | PortOpened
    | PortRefused
    | Reached
    | Unreachable
    | RanksReady
    | RunProgressed
    | RunEnded
)

# What is to be done


@dataclass(frozen=True, slots=True)
class StartRun:
    """Start a run; RunEnded follows. In a group its ranks wait at their rendezvous, and RanksReady says so."""

    order: Order


@dataclass(frozen=True, slots=True)
class LetGo:
    """Let the ranks of a run pass their rendezvous."""

    run: str


@dataclass(frozen=True, slots=True)
class StopRun:
    """Kill a run."""

    run: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReportRun:
    """Put a run into the outbox."""

    run: Run


@dataclass(frozen=True, slots=True)
class ProbeIdle:
    """Ask the idle probes; IdlenessSeen follows. `afresh` asks those as well that have said IDLE not long ago."""

    afresh: bool = True


@dataclass(frozen=True, slots=True)
class Reserve:
    """Keep the scheduler off the node for a run; Reserved or NotReserved follows. `purpose` is for people."""

    run: str
    purpose: str


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Let the scheduler have the node again; GivenBack follows."""


@dataclass(frozen=True, slots=True)
class OpenPort:
    """Listen for a group, for the case that this node gets rank 0; PortOpened or PortRefused follows."""

    group: str


@dataclass(frozen=True, slots=True)
class ClosePort:
    """Listen no more for a group, if that is still so."""

    group: str


@dataclass(frozen=True, slots=True)
class Reach:
    """Connect to rank 0 of a group, again and again for `within_s` seconds; Reached or Unreachable follows."""

    group: str
    address: str
    port: int
    within_s: float


@dataclass(frozen=True, slots=True)
class Reply:
    """Tell the coordinator about this node's part in a group."""

    message: AnyGroupReply


@dataclass(frozen=True, slots=True)
class Refuse:
    """Count and log an order that is not carried out; `kind` is one word."""

    kind: str
    detail: str


Command = (
    StartRun
    | LetGo
    | StopRun
    | ReportRun
    | ProbeIdle
    | Reserve
    | GiveBack
    | OpenPort
    | ClosePort
    | Reach
    | Reply
    | Refuse
)

# Between a session and the node that it is part of


@dataclass(frozen=True, slots=True)
class Overdue:
    """The session has stayed in its state for longer than it may."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """Another coordinator leads: groups of the old one are over."""


@dataclass(frozen=True, slots=True)
class ClaimLease:
    """Claim the node for the session's run; Granted or Denied follows. `purpose` says for people what for."""

    run: str
    needs: Needs
    purpose: str


@dataclass(frozen=True, slots=True)
class ReleaseLease:
    """The session's run needs the node no more."""

    run: str
