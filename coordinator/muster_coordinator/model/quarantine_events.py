"""What the quarantine is told (events, past tense) and what it wants done (commands, imperative).

All of it is data that is written down as it comes, so that a stored log can be gone through again.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from muster.model import Data, Instant, Json, Name, Seconds, Verdict
from muster.quarantine_settings import QuarantineSettings
from muster.transition import Effect, SchedulerNode, Text
from muster_coordinator.model.actions import Action
from muster_coordinator.model.case import Case
from muster_coordinator.model.charge import Charge
from muster_coordinator.model.policy_row import Row

LEAST_PARTNERS = 3
"""What is slow shows in comparison only: beside a node and its partner, another pair must take part in a sweep."""


class MassEvent(Data):
    """A cause that many nodes share: a finding's code, how many have it, and since when that is too many."""

    cause: str
    nodes: int
    since: Instant


class Restored(Data):
    """The quarantine begins, by these settings and rows of the policy, with what is stored.

    `actions` are the latest transition of each node. It is the first entry of the log of each leadership.
    """

    kind: Literal["restored"] = "restored"
    settings: QuarantineSettings
    rows: tuple[Row, ...]
    cases: tuple[Case, ...]
    actions: tuple[Action, ...]


class Renewed(Data):
    """The log begins anew in the middle of a leadership, with everything that is known, so that what is older can go.

    `earlier` are the transitions before the latest of which actors are still being told; `frozen` are the mass events
    that stand, and `let_pass` the causes of those that a person has lifted. So many `ids` were given so far.
    """

    kind: Literal["renewed"] = "renewed"
    settings: QuarantineSettings
    rows: tuple[Row, ...]
    cases: tuple[Case, ...]
    actions: tuple[Action, ...]
    earlier: tuple[Action, ...]
    frozen: tuple[MassEvent, ...]
    let_pass: tuple[str, ...]
    ids: int


class NodeDescribed(Data):
    """A node has been heard of: where it stands, and which checks it runs by itself.

    `usual_checks` are the checks that most nodes run by themselves. `patience_s` is, for each check that the node can
    run, how long an ordered run may say nothing.
    """

    kind: Literal["node_described"] = "node_described"
    node: Name
    place: str | None
    own_checks: tuple[Name, ...]
    usual_checks: tuple[Name, ...] = ()
    patience_s: dict[Name, Seconds] = {}


class NodeHeard(Data):
    """A node is there, for the first time or again."""

    kind: Literal["node_heard"] = "node_heard"
    node: Name


class NodeLost(Data):
    """A node's heartbeat has stopped."""

    kind: Literal["node_lost"] = "node_lost"
    node: Name


class EvidenceChanged(Data):
    """What stands against a node is something else now; `fit` says that it has been examined and is healthy."""

    kind: Literal["evidence_changed"] = "evidence_changed"
    node: Name
    charges: tuple[Charge, ...]
    fit: bool


class NodeSurveyed(Data):
    """How the scheduler of an actor has a node."""

    kind: Literal["node_surveyed"] = "node_surveyed"
    actor: Name
    node: SchedulerNode


class NodeNotListed(Data):
    """The scheduler that had a node has it no more."""

    kind: Literal["node_not_listed"] = "node_not_listed"
    actor: Name
    node: Name


class ActionEnded(Data):
    """What came of a transition at one actor."""

    kind: Literal["action_ended"] = "action_ended"
    node: Name
    transition: Name
    actor: Name
    effect: Effect
    detail: Text
    retry_after_s: float | None = None
    only_tells: bool = False


class AllTold(Data):
    """Every actor has been told a transition once."""

    kind: Literal["all_told"] = "all_told"
    node: Name
    transition: Name


class TestEnded(Data):
    """What a test that was asked for has said."""

    __test__ = False  # pytest takes it for a test otherwise

    kind: Literal["test_ended"] = "test_ended"
    node: Name
    test: Name
    verdict: Verdict


class HoldRequested(Data):
    """Somebody wants us to keep our hands off a node."""

    kind: Literal["hold_requested"] = "hold_requested"
    node: Name
    by: str
    reason: str


class ReleaseRequested(Data):
    """Somebody wants a node to be tested and to come back; when `untested`, to come back at once."""

    kind: Literal["release_requested"] = "release_requested"
    node: Name
    by: str
    reason: str
    untested: bool = False


class FreezeLifted(Data):
    """Somebody says that nodes may be taken out although many have the same trouble."""

    kind: Literal["freeze_lifted"] = "freeze_lifted"
    by: str
    reason: str


class NodeForgotten(Data):
    """Somebody says that a node that is silent has left the fleet for good."""

    kind: Literal["node_forgotten"] = "node_forgotten"
    node: Name
    by: str
    reason: str


class NodeLongGone(Data):
    """A node was away for so long that it need be remembered no more."""

    kind: Literal["node_long_gone"] = "node_long_gone"
    node: Name


class TimePassed(Data):
    """Time has passed."""

    kind: Literal["time_passed"] = "time_passed"


Answer = NodeSurveyed | NodeNotListed | ActionEnded | AllTold

Request = HoldRequested | ReleaseRequested | FreezeLifted | NodeForgotten

Beginning = Restored | Renewed

Happening = NodeDescribed | NodeHeard | NodeLost | EvidenceChanged | TestEnded | NodeLongGone | TimePassed

Event = Beginning | Happening | Answer | Request

AnyEvent = Annotated[Event, Field(discriminator="kind")]


class Asked(Data):
    """What a person has asked for, and when, as it is stored."""

    id: Name
    at: Instant
    request: Annotated[Request, Field(discriminator="kind")]

    @property
    def node(self) -> str | None:
        """The node that it is about; None when it is about all."""
        return None if isinstance(self.request, FreezeLifted) else self.request.node


Decided = Action | Asked
"""One entry of the history: a transition with what came of it, or what a person has asked for."""

DECIDED: TypeAdapter[Decided] = TypeAdapter(Decided)


class SaveCase(Data):
    """Write a case over the one that is stored."""

    kind: Literal["save_case"] = "save_case"
    case: Case


class EraseNode(Data):
    """Remove what is stored of a node; its story and its transitions go when they are old."""

    kind: Literal["erase_node"] = "erase_node"
    node: Name


class SaveAction(Data):
    """Write a transition with its outcomes over what is stored of it."""

    kind: Literal["save_action"] = "save_action"
    action: Action


class SaveRequest(Data):
    """Write down what a person has asked for."""

    kind: Literal["save_request"] = "save_request"
    asked: Asked


class Act(Data):
    """Tell actors about a transition: those that are named, or all."""

    kind: Literal["act"] = "act"
    action: Action
    actors: tuple[Name, ...] = ()


class StartTest(Data):
    """Have a node tested under this id: alone, or in a sweep with healthy partners when the check is one of groups."""

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


class Alarm(Data):
    """Tell whoever watches over the fleet."""

    kind: Literal["alarm"] = "alarm"
    text: str


Decision = EraseNode | SaveAction | SaveRequest | Act | StartTest | Note | Alarm

Command = SaveCase | Decision

AnyDecision = Annotated[Decision, Field(discriminator="kind")]


class Step(Data):
    """One entry of the log: what was told at which time, and what was decided. How the cases were follows from that."""

    at: Instant
    event: AnyEvent
    decisions: tuple[AnyDecision, ...]


def step_of(event: Event, said: Iterable[Command], at: float) -> Step:
    """The entry about an event that has led to all this."""
    return Step(at=at, event=event, decisions=tuple(it for it in said if not isinstance(it, SaveCase)))
