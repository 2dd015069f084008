"""What can happen to the fleet (events, past tense) and what the fleet wants done about it (commands, imperative).

`Fleet.handle(event, now)` turns one into the other. The shell carries commands out in their order, those that write
before those that tell anybody: what the coordinator has said, it has stored.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from muster.model import Json, Run
from muster.references import Reference
from muster.wire.messages import (
    Ack,
    AnyCommand,
    AnyGroupReply,
    InventoryReport,
    Presence,
    References,
    Report,
)
from muster_coordinator.model import quarantine_events as quarantine
from muster_coordinator.model.baselines import BaselineRecord, LevelsRecord
from muster_coordinator.model.nodes import Misconduct, NodeRecord, NodeView, StoryEntry
from muster_coordinator.model.quarantine_views import CaseView
from muster_coordinator.model.references import ReferenceRecord
from muster_coordinator.model.sweep_records import GroupRecord, SweepRecord, SweepRequest


@dataclass(frozen=True, slots=True)
class PresenceSeen:
    """A heartbeat or a last will."""

    message: Presence


@dataclass(frozen=True, slots=True)
class InventorySeen:
    """A node has said what it is made of; when it was `kept` by the broker, some time ago."""

    message: InventoryReport
    kept: bool = False


@dataclass(frozen=True, slots=True)
class ReportSeen:
    """A node has sent runs, perhaps not for the first time, in a message of `size` bytes."""

    message: Report
    size: int = 0


@dataclass(frozen=True, slots=True)
class GroupReplySeen:
    """A member has said something about its group."""

    message: AnyGroupReply


@dataclass(frozen=True, slots=True)
class AgentMisbehaved:
    """The agent of a node has sent too much or a message that no agent sends; `detail` is for people."""

    node: str
    kind: Misconduct
    detail: str = ""


@dataclass(frozen=True, slots=True)
class LabelsSeen:
    """The scheduler of an actor has these labels on a node, of which no agent need have been heard."""

    actor: str
    node: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RunRequested:
    """Somebody wants a check to run now. Refused when node, check or parameters are not valid."""

    run: str
    node: str
    check: str
    params: Json


@dataclass(frozen=True, slots=True)
class SweepRequested:
    """Somebody wants a sweep under this id; `origin` says who. Refused when anything about it is not valid."""

    sweep: str
    request: SweepRequest
    origin: str = "request"


@dataclass(frozen=True, slots=True)
class SweepAbortRequested:
    """Somebody wants a sweep to end now. Refused when there is no such sweep, ignored when it has ended."""

    sweep: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReferenceSet:
    """Somebody has set a reference for the fleet. Refused when no node has its check or there is no room for it."""

    reference: Reference


@dataclass(frozen=True, slots=True)
class ReferenceRemoved:
    """Somebody has taken back a reference that was set. Refused when there is none with this key."""

    key: str


@dataclass(frozen=True, slots=True)
class BaselineReset:
    """Somebody says that where the fleet is now is normal. Refused when there is no such baseline."""

    baseline: str


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class RetentionEnded:
    """Nodes that were away since before then are remembered no more.

    `left_before` is for those that have left the fleet, and of which there is nothing else to remember.
    """

    before: float
    left_before: float


Request = RunRequested | SweepRequested | SweepAbortRequested | ReferenceSet | ReferenceRemoved | BaselineReset

Seen = PresenceSeen | InventorySeen | ReportSeen | GroupReplySeen | AgentMisbehaved | LabelsSeen

Event = Seen | Request | Ticked | RetentionEnded | quarantine.Event


@dataclass(frozen=True, slots=True)
class StoreRuns:
    """Write runs, and that the node's stream is stored through `through`.

    They are kept as the node has reported them, in their place by the coordinator's clock: the node's is `behind_s`,
    and none began after it was taken, `at`.
    """

    node: str
    stream: str
    through: int
    runs: tuple[Run, ...]
    behind_s: float = 0.0
    at: float = math.inf


@dataclass(frozen=True, slots=True)
class EraseStream:
    """Delete the record of how far a stream of a node is stored."""

    node: str
    stream: str


@dataclass(frozen=True, slots=True)
class SaveNode:
    """Write a node's record over the one that is stored."""

    record: NodeRecord


@dataclass(frozen=True, slots=True)
class SaveSweep:
    """Write a sweep's record over the one that is stored; its groups are not in it."""

    record: SweepRecord


@dataclass(frozen=True, slots=True)
class SaveGroup:
    """Write a group of a round of a sweep over what is stored of it."""

    sweep: str
    round: int
    record: GroupRecord


@dataclass(frozen=True, slots=True)
class SaveReference:
    """Write a reference under its number."""

    record: ReferenceRecord


@dataclass(frozen=True, slots=True)
class EraseReference:
    """Remove the reference with this number."""

    number: int


@dataclass(frozen=True, slots=True)
class SaveBaseline:
    """Write what is normal over what is stored."""

    record: BaselineRecord


@dataclass(frozen=True, slots=True)
class SaveLevels:
    """Write the own levels of a node's devices over those that are stored."""

    record: LevelsRecord


@dataclass(frozen=True, slots=True)
class EraseBaseline:
    """Remove a baseline with the levels of all devices in it."""

    baseline: str


@dataclass(frozen=True, slots=True)
class Tell:
    """Append to a node's story."""

    entry: StoryEntry


@dataclass(frozen=True, slots=True)
class SendAck:
    """Tell a node what is stored."""

    node: str
    ack: Ack


@dataclass(frozen=True, slots=True)
class SendCommand:
    """Give a node an order."""

    node: str
    command: AnyCommand


@dataclass(frozen=True, slots=True)
class PublishReferences:
    """Tell every agent, also those that come later, which references were set for the fleet."""

    message: References


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell whoever listens to the API's event stream: `kind` is run, node, case, sweep or group, `payload` its JSON."""

    kind: str
    payload: NodeView | CaseView | SweepRecord | GroupRecord | StoryEntry | Run


@dataclass(frozen=True, slots=True)
class SaveStep:
    """Append to the log of what the quarantine has decided under the leadership that `epoch` numbers."""

    epoch: int
    step: quarantine.Step


@dataclass(frozen=True, slots=True)
class LogNotBegun:
    """Log that a sweep has not begun by itself, and why."""

    origin: str
    reason: str


Command = (
    StoreRuns
    | EraseStream
    | SaveNode
    | SaveSweep
    | SaveGroup
    | SaveReference
    | EraseReference
    | SaveBaseline
    | SaveLevels
    | EraseBaseline
    | Tell
    | SendAck
    | SendCommand
    | PublishReferences
    | Announce
    | LogNotBegun
    | SaveStep
    | quarantine.SaveCase
    | quarantine.EraseNode
    | quarantine.SaveAction
    | quarantine.SaveRequest
    | quarantine.Act
    | quarantine.Alarm
)
