"""Events of the quarantine (past tense) and the commands that follow from them (imperative)."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from muster.alarm import Alarm
from muster.model import Data, Instant, Json, Name, Seconds, Verdict
from muster.transition import Effect, PluginText, SchedulerNode
from muster_coordinator.model.findings import StandingFinding
from muster_coordinator.model.quarantine import FleetState, QuarantineRecord
from muster_coordinator.model.transitions import TransitionRecord

LEAST_PARTNERS = 3
"""Slow shows only in comparison: a sweep needs another pair beside the node and its partner."""


class Restored(Data):
    """The coordinator starts with what is stored; `transitions` are the latest of each node."""

    kind: Literal["restored"] = "restored"
    records: tuple[QuarantineRecord, ...]
    transitions: tuple[TransitionRecord, ...]
    fleet: FleetState = FleetState()


class NodeDescribed(Data):
    """A node's failure domain or the checks that it runs by itself became known or changed.

    `usual_checks` are the checks that most nodes run by themselves. `silent_after_s` is, for each check that the node
    can run, how long an ordered run may say nothing. `departure` says why the node leaves or restarts, by its agent.
    """

    kind: Literal["node_described"] = "node_described"
    node: Name
    domain: str | None
    own_checks: tuple[Name, ...]
    usual_checks: tuple[Name, ...] = ()
    silent_after_s: dict[Name, Seconds] = {}
    departure: PluginText | None = None


class NodeHeard(Data):
    """A node is online, for the first time or again."""

    kind: Literal["node_heard"] = "node_heard"
    node: Name


class NodeLost(Data):
    """A node's heartbeat has stopped."""

    kind: Literal["node_lost"] = "node_lost"
    node: Name


class EvidenceChanged(Data):
    """The findings that stand against a node now; `is_fit`: it is examined and healthy; `unfit_because`: why not.

    It is not complete while older runs may wait in the node's outbox.
    """

    kind: Literal["evidence_changed"] = "evidence_changed"
    node: Name
    findings: tuple[StandingFinding, ...]
    is_fit: bool
    unfit_because: str = ""
    is_complete: bool = True


class EvidenceOutdated(Data):
    """The coordinator could not hear any node for a while, and can again."""

    kind: Literal["evidence_outdated"] = "evidence_outdated"


class BacklogDelivered(Data):
    """A node that has older runs in its outbox delivered some; the youngest began at `through`."""

    kind: Literal["backlog_delivered"] = "backlog_delivered"
    node: Name
    through: Instant


class NodeSurveyed(Data):
    """The state of a node at the scheduler of an actor."""

    kind: Literal["node_surveyed"] = "node_surveyed"
    actor: Name
    node: SchedulerNode


class NodeNotListed(Data):
    """A scheduler that had a node no longer lists it."""

    kind: Literal["node_not_listed"] = "node_not_listed"
    actor: Name
    node: Name


class ActionEnded(Data):
    """The outcome of a transition at one actor."""

    kind: Literal["action_ended"] = "action_ended"
    node: Name
    transition: Name
    actor: Name
    effect: Effect
    detail: PluginText
    retry_after_s: float | None = None
    only_tells: bool = False


class AllActorsCalled(Data):
    """Every actor was called once for a transition."""

    kind: Literal["all_actors_called"] = "all_actors_called"
    node: Name
    transition: Name


class AlarmTaken(Data):
    """A plugin took the begin or the end of an alarm."""

    kind: Literal["alarm_taken"] = "alarm_taken"
    alarm: Alarm
    plugin: Name


class AlarmDelivered(Data):
    """All plugins took the begin or the end of an alarm."""

    kind: Literal["alarm_delivered"] = "alarm_delivered"
    alarm: Alarm


class TestEnded(Data):
    """A requested test has ended."""

    __test__ = False  # pytest takes it for a test otherwise

    kind: Literal["test_ended"] = "test_ended"
    node: Name
    test: Name
    verdict: Verdict


class HoldRequested(Data):
    """A person wants muster to leave a node as it is."""

    kind: Literal["hold_requested"] = "hold_requested"
    node: Name
    by: str
    reason: str


class ReleaseRequested(Data):
    """A person wants a node tested and returned to service; when `untested`, returned at once."""

    kind: Literal["release_requested"] = "release_requested"
    node: Name
    by: str
    reason: str
    untested: bool = False


class FreezeLifted(Data):
    """A person lifts a mass-event freeze: the nodes themselves are faulty."""

    kind: Literal["freeze_lifted"] = "freeze_lifted"
    by: str
    reason: str


class NodeForgotten(Data):
    """A person says that a silent node has left the fleet for good."""

    kind: Literal["node_forgotten"] = "node_forgotten"
    node: Name
    by: str
    reason: str


class NodeErased(Data):
    """A node is past retention."""

    kind: Literal["node_erased"] = "node_erased"
    node: Name


class TimePassed(Data):
    """Time has passed."""

    kind: Literal["time_passed"] = "time_passed"


QuarantineRequest = HoldRequested | ReleaseRequested | FreezeLifted | NodeForgotten

QuarantineEvent = (
    Restored
    | NodeDescribed
    | NodeHeard
    | NodeLost
    | EvidenceChanged
    | EvidenceOutdated
    | BacklogDelivered
    | TestEnded
    | NodeSurveyed
    | NodeNotListed
    | ActionEnded
    | AllActorsCalled
    | AlarmTaken
    | AlarmDelivered
    | NodeErased
    | TimePassed
    | QuarantineRequest
)


class Asked(Data):
    """A person's request with its time, as it is stored."""

    id: Name
    at: Instant
    request: Annotated[QuarantineRequest, Field(discriminator="kind")]

    @property
    def node(self) -> str | None:
        """The node of the request; None when it is about the fleet."""
        return None if isinstance(self.request, FreezeLifted) else self.request.node


Decided = TransitionRecord | Asked
"""One entry of the history: a transition with its outcomes, or a person's request."""

DECIDED: TypeAdapter[Decided] = TypeAdapter(Decided)


class SaveRecord(Data):
    """Write a node's record over the one that is stored."""

    kind: Literal["save_record"] = "save_record"
    record: QuarantineRecord


class SaveFleetState(Data):
    """Write the fleet's state over the one that is stored."""

    kind: Literal["save_fleet_state"] = "save_fleet_state"
    state: FleetState


class EraseNode(Data):
    """Delete what is stored of a node; its story and its transitions go when they are old."""

    kind: Literal["erase_node"] = "erase_node"
    node: Name


class SaveTransition(Data):
    """Write a transition with its outcomes over what is stored of it."""

    kind: Literal["save_transition"] = "save_transition"
    record: TransitionRecord


class SaveRequest(Data):
    """Store a person's request."""

    kind: Literal["save_request"] = "save_request"
    asked: Asked


class DispatchTransition(Data):
    """Call actors for a transition: those that are named, or all."""

    kind: Literal["dispatch_transition"] = "dispatch_transition"
    record: TransitionRecord
    actors: tuple[Name, ...] = ()


class StartTest(Data):
    """Test a node under this id: alone, or in a sweep with healthy partners for a group check."""

    kind: Literal["start_test"] = "start_test"
    node: Name
    test: Name
    check: Name
    params: Json = {}
    partners: int


class Note(Data):
    """Append to a node's story."""

    kind: Literal["note"] = "note"
    node: Name
    about: str
    text: str
    cause: str | None = None
    data: Json = {}


class LogResumedByHand(Data):
    """Log that a person resumed a node at the scheduler of an actor, and what follows."""

    kind: Literal["log_resumed_by_hand"] = "log_resumed_by_hand"
    node: Name
    actor: Name
    text: str


class SendAlarm(Data):
    """Notify people that an alarm has begun or is over."""

    kind: Literal["send_alarm"] = "send_alarm"
    alarm: Alarm


class ResendAlarm(Data):
    """Notify the plugins of an alarm, except those that have taken it: the last coordinator could not tell them all."""

    kind: Literal["resend_alarm"] = "resend_alarm"
    alarm: Alarm
    taken_by: tuple[Name, ...] = ()


QuarantineCommand = (
    SaveRecord
    | SaveFleetState
    | EraseNode
    | SaveTransition
    | SaveRequest
    | DispatchTransition
    | StartTest
    | Note
    | LogResumedByHand
    | SendAlarm
    | ResendAlarm
)
