"""Events of the fleet (past tense) and the commands that follow from them (imperative).

`Fleet.handle(event, now)` turns an event into commands. The shell carries them out in order, and commands that store
before commands that send: whatever the coordinator has sent, it has stored.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from muster.alarm import Alarm
from muster.model import Json, Run
from muster.references import Reference
from muster.wire.messages import Ack, AnyCommand, AnyGroupReply, InventoryReport, Presence, References, Report
from muster_coordinator.model import quarantine_events as quarantine
from muster_coordinator.model.baseline_commands import (
    EraseBaseline,
    SaveBaseline,
    SaveFingerprint,
    SaveLevels,
    SaveResults,
)
from muster_coordinator.model.evidence_record import EvidenceRecord
from muster_coordinator.model.load import LoadSeen, LogLoad, ReportInvited
from muster_coordinator.model.nodes import Misconduct, NodeGone, NodeRecord, NodeView, StoryEntry
from muster_coordinator.model.quarantine_views import CaseView
from muster_coordinator.model.quiet_runs import QuietRun, RunBase
from muster_coordinator.model.references import ReferenceRecord
from muster_coordinator.model.sweep_records import BY_REQUEST, GroupRecord, SweepRecord, SweepRequest


@dataclass(frozen=True, slots=True)
class PresenceSeen:
    """A heartbeat, a goodbye or a last will. If the broker had `kept` the message, it was sent some time ago."""

    message: Presence
    kept: bool = False


@dataclass(frozen=True, slots=True)
class InventorySeen:
    """A node has sent its inventory. If the broker had `kept` the message, it was sent some time ago.

    `digest` is the digest of the message's bytes, so that the same bytes are not decoded again; empty if unknown.
    """

    message: InventoryReport
    kept: bool = False
    digest: str = ""


@dataclass(frozen=True, slots=True)
class ReportSeen:
    """A node has sent runs, perhaps not for the first time, in a message of `size` bytes."""

    message: Report
    size: int = 0


@dataclass(frozen=True, slots=True)
class ReportRepeated:
    """A node has sent a report again although its runs were taken already. Nothing else of it was read."""

    node: str
    stream: str


@dataclass(frozen=True, slots=True)
class GroupReplySeen:
    """A member of a group has sent a reply."""

    message: AnyGroupReply


@dataclass(frozen=True, slots=True)
class AgentMisbehaved:
    """The agent of a node has sent too much, or a message that no agent sends. `detail` is for people."""

    node: str
    kind: Misconduct
    detail: str = ""


@dataclass(frozen=True, slots=True)
class LabelsSeen:
    """The scheduler of an actor has these labels on a node. The node may not be known yet."""

    actor: str
    node: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RunRequested:
    """A run of a check was requested, `by` whom if that is known. Refused when anything about it is not valid."""

    run: str
    node: str
    check: str
    params: Json
    by: str | None = None


@dataclass(frozen=True, slots=True)
class SweepRequested:
    """A sweep was requested under this id. Refused when anything about it is not valid.

    `origin` says what has requested it, and `by` which person, if that is known.
    """

    sweep: str
    request: SweepRequest
    origin: str = BY_REQUEST
    by: str | None = None


@dataclass(frozen=True, slots=True)
class SweepAbortRequested:
    """The end of a sweep was requested. Refused when there is no such sweep, ignored when it has ended."""

    sweep: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReferenceSet:
    """A reference of the fleet was set. Refused when no node has its check, or when there are too many."""

    reference: Reference


@dataclass(frozen=True, slots=True)
class ReferenceRemoved:
    """A reference of the fleet was removed. Refused when there is none with this key."""

    key: str


@dataclass(frozen=True, slots=True)
class BaselineReset:
    """A baseline was reset: the present level of the fleet is normal. Refused when there is no such baseline."""

    baseline: str


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time has passed. In `lost_s` seconds of it the coordinator was late itself, which is no fault of the nodes."""

    lost_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LinkLost:
    """The coordinator has lost its connection to the broker, with which every start begins."""


@dataclass(frozen=True, slots=True)
class LinkRestored:
    """The coordinator reaches the broker again. What nodes have found meanwhile is still in their outboxes."""


@dataclass(frozen=True, slots=True)
class LinkCaughtUp:
    """The broker has delivered what it kept for the coordinator. Messages arrive as nodes send them."""


LinkEvent = LinkLost | LinkRestored | LinkCaughtUp


@dataclass(frozen=True, slots=True)
class RetentionEnded:
    """The retention of nodes that were last heard before `before` has ended.

    `left_before` is the bound for nodes that have left the fleet and have nothing else to keep.
    """

    before: float
    left_before: float


FleetRequest = RunRequested | SweepRequested | SweepAbortRequested | ReferenceSet | ReferenceRemoved | BaselineReset

ReportEvent = ReportSeen | ReportRepeated | ReportInvited

FleetObservation = PresenceSeen | InventorySeen | ReportEvent | GroupReplySeen | AgentMisbehaved | LabelsSeen

LearnedEvent = InventorySeen | LabelsSeen | AgentMisbehaved | LinkEvent | LoadSeen

FleetEvent = (
    FleetObservation | FleetRequest | Ticked | LinkEvent | LoadSeen | RetentionEnded | quarantine.QuarantineEvent
)


@dataclass(frozen=True, slots=True)
class StoreRuns:
    """Store runs, and the number `through` up to which the stream of the node is stored.

    Runs are stored as the node reported them, and sorted by the coordinator's clock: the node's clock is `behind_s`
    seconds behind, and no run began after it was taken (`at`). `runs` are stored whole, and of `quiet` only what they
    differ in from one of these. From now on, runs may be like the new `bases`, and no longer like the run with an id in
    `outdated`.
    """

    node: str
    stream: str
    through: int
    runs: tuple[Run, ...]
    behind_s: float = 0.0
    at: float = math.inf
    quiet: tuple[QuietRun, ...] = ()
    bases: tuple[RunBase, ...] = ()
    outdated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EraseStream:
    """Delete the record of a stream of a node."""

    node: str
    stream: str


@dataclass(frozen=True, slots=True)
class SaveNode:
    """Store the record of a node in place of the stored one."""

    record: NodeRecord


@dataclass(frozen=True, slots=True)
class SaveSweep:
    """Store the record of a sweep, without its groups, in place of the stored one."""

    record: SweepRecord


@dataclass(frozen=True, slots=True)
class SaveGroup:
    """Store a group of a round of a sweep in place of the stored one."""

    sweep: str
    round: int
    record: GroupRecord


@dataclass(frozen=True, slots=True)
class SaveReference:
    """Store a reference under its number."""

    record: ReferenceRecord


@dataclass(frozen=True, slots=True)
class EraseReference:
    """Delete the reference with this number."""

    number: int


@dataclass(frozen=True, slots=True)
class SaveEvidence:
    """Store the evidence about a node in place of the stored one."""

    record: EvidenceRecord


@dataclass(frozen=True, slots=True)
class AppendStory:
    """Append an entry to the story of a node."""

    entry: StoryEntry


@dataclass(frozen=True, slots=True)
class SendAck:
    """Acknowledge to a node what is stored."""

    node: str
    ack: Ack


@dataclass(frozen=True, slots=True)
class SendCommand:
    """Send an order to a node."""

    node: str
    command: AnyCommand


@dataclass(frozen=True, slots=True)
class PublishReferences:
    """Publish the references of the fleet to every agent, including agents that connect later."""

    message: References


@dataclass(frozen=True, slots=True)
class Announce:
    """Send an event to the listeners of the API: `kind` is run, node, gone, case, sweep, group or alarm."""

    kind: str
    payload: NodeView | NodeGone | CaseView | SweepRecord | GroupRecord | StoryEntry | Run | Alarm


@dataclass(frozen=True, slots=True)
class LogNotBegun:
    """Log that a due sweep did not begin, and why."""

    origin: str
    reason: str


FleetCommand = (
    StoreRuns
    | EraseStream
    | SaveNode
    | SaveSweep
    | SaveGroup
    | SaveReference
    | EraseReference
    | SaveBaseline
    | SaveLevels
    | SaveFingerprint
    | SaveResults
    | EraseBaseline
    | SaveEvidence
    | AppendStory
    | SendAck
    | SendCommand
    | PublishReferences
    | Announce
    | LogLoad
    | LogNotBegun
    | quarantine.SaveRecord
    | quarantine.SaveFleetState
    | quarantine.EraseNode
    | quarantine.SaveTransition
    | quarantine.SaveRequest
    | quarantine.DispatchTransition
    | quarantine.LogResumedByHand
    | quarantine.SendAlarm
    | quarantine.ResendAlarm
)
