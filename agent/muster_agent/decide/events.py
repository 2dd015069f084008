"""Events (past tense: what happened on a node) and commands (imperative: what the daemon must do).

`NodeAgent.handle(event, now)` returns the commands that follow from an event. The daemon carries them out and feeds
their results back as new events. Events and commands name runs, groups and ports by id; none holds a process or a
socket.
"""

from dataclasses import dataclass

from muster.check import Idleness, Needs
from muster.model import Inventory, Run
from muster.wire.messages import AnyCommand, AnyGroupReply, CoordinatorPresence
from muster_agent.decide.orders import Order, RanksReady, RunEnded, RunProgressed

# Events


@dataclass(frozen=True, slots=True)
class DueTimeReached:
    """Time has passed. The daemon feeds it when `next_due` is reached."""


@dataclass(frozen=True, slots=True)
class StopRequested:
    """The agent must stop."""


@dataclass(frozen=True, slots=True)
class CommandReceived:
    """The coordinator has sent a command."""

    command: AnyCommand


@dataclass(frozen=True, slots=True)
class CoordinatorSeen:
    """A coordinator has announced that it leads."""

    message: CoordinatorPresence


@dataclass(frozen=True, slots=True)
class InventoryFound:
    """The node's devices are known, or have changed."""

    inventory: Inventory


@dataclass(frozen=True, slots=True)
class WatchFired:
    """A check's watch asks for a measurement at once."""

    check: str


@dataclass(frozen=True, slots=True)
class IdlenessSeen:
    """The idle probes have answered. `why` names the probes that do not say IDLE, with their reasons."""

    idleness: Idleness
    why: str = ""


@dataclass(frozen=True, slots=True)
class NodeReserved:
    """The node is reserved for a run."""

    run: str


@dataclass(frozen=True, slots=True)
class ReservationFailed:
    """The node could not be reserved for a run, or the attempt did not finish."""

    run: str
    detail: str


@dataclass(frozen=True, slots=True)
class ReservationReleased:
    """The reservation is released, or could not be because of `problem`."""

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
class PlacementRefused:
    """A Prepare names an impossible rank, world size or address. `reason` goes into Declined."""

    group: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class RankZeroReached:
    """Rank 0 of a group accepts connections from this node."""

    group: str


@dataclass(frozen=True, slots=True)
class RankZeroUnreachable:
    """Rank 0 of a group does not accept connections from this node."""

    group: str
    detail: str


AgentEvent = (
    DueTimeReached
    | StopRequested
    | CommandReceived
    | CoordinatorSeen
    | InventoryFound
    | WatchFired
    | IdlenessSeen
    | NodeReserved
    | ReservationFailed
    | ReservationReleased
    | PortOpened
    | PortRefused
    | RankZeroReached
    | RankZeroUnreachable
    | RanksReady
    | RunProgressed
    | RunEnded
)

# Commands to the daemon


@dataclass(frozen=True, slots=True)
class StartRun:
    """Start a run; RunEnded follows. In a group, RanksReady follows when its ranks wait at the rendezvous."""

    order: Order


@dataclass(frozen=True, slots=True)
class ReleaseRanks:
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
    """Ask the idle probes; IdlenessSeen follows. `afresh` also asks those that said IDLE a moment ago."""

    afresh: bool = True


@dataclass(frozen=True, slots=True)
class ReserveNode:
    """Keep the scheduler off the node for a run; NodeReserved or ReservationFailed follows. `purpose` is for people."""

    run: str
    purpose: str


@dataclass(frozen=True, slots=True)
class ReleaseReservation:
    """Let the scheduler use the node again; ReservationReleased follows."""


@dataclass(frozen=True, slots=True)
class OpenPort:
    """Listen for a group, because this node may get rank 0; PortOpened or PortRefused follows."""

    group: str


@dataclass(frozen=True, slots=True)
class ClosePort:
    """Stop listening for a group."""

    group: str


@dataclass(frozen=True, slots=True)
class ConnectToRankZero:
    """Try for `within_s` seconds to connect to rank 0 of a group; RankZeroReached or RankZeroUnreachable follows."""

    group: str
    address: str
    port: int
    within_s: float


@dataclass(frozen=True, slots=True)
class SendReply:
    """Send the coordinator a reply about this node's part in a group."""

    message: AnyGroupReply


@dataclass(frozen=True, slots=True)
class CountRefusal:
    """Count and log a command that the agent refuses. `kind` is one word for the metric."""

    kind: str
    detail: str


AgentCommand = (
    StartRun
    | ReleaseRanks
    | StopRun
    | ReportRun
    | ProbeIdle
    | ReserveNode
    | ReleaseReservation
    | OpenPort
    | ClosePort
    | ConnectToRankZero
    | SendReply
    | CountRefusal
)

# Between a session and its NodeAgent


@dataclass(frozen=True, slots=True)
class StateTimedOut:
    """The deadline of the session's state has passed."""


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """Another coordinator leads, so groups of the old one end."""


@dataclass(frozen=True, slots=True)
class ClaimLease:
    """Claim the node for the session's run; LeaseGranted or LeaseDenied follows. `purpose` is for people."""

    run: str
    needs: Needs
    purpose: str


@dataclass(frozen=True, slots=True)
class ReleaseLease:
    """The session's run no longer needs the node."""

    run: str
