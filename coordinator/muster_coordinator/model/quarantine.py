"""The quarantine's records: what is known of a node, what was decided about it, and what actors did with it."""

from enum import StrEnum
from typing import Any, Self

from pydantic import Field

from muster.alarm import Alarm
from muster.model import Action as SuggestedAction
from muster.model import Data, Instant, Json, Name, Seconds, ServiceState
from muster.transition import Cause, Mark, PluginText, SchedulerNode
from muster_coordinator.model.findings import FindingKey, StandingFinding
from muster_coordinator.model.scheduler_marks import kept_off, leaving

OUT = frozenset({ServiceState.CORDONED, ServiceState.PROBATION})
"""The states in which muster has taken a node out of service. An ACCEPTING node was never in service."""

KEEPING_OUT = frozenset({Mark.FOREIGN, Mark.OURS})
"""The marks with which a scheduler gives a node no work, whatever muster decided since."""


RESUMED_BY_HAND = "Resumed by hand in "
"""Begins the reason of a hold that a person caused at a scheduler."""


class Hold(Data):
    """A person's request that muster leaves a node as it is."""

    by: str
    reason: str
    at: Instant

    @property
    def text(self) -> str:
        """The hold in words. After a resume by hand, the reason says where and what ends the hold."""
        return self.reason if self.reason.startswith(RESUMED_BY_HAND) else f"Hold by {self.by}: {self.reason}"


class FindingTimes(Data):
    """When a finding was found, the latest last."""

    check: Name
    code: str
    device: int | None
    number: str = ""
    times: tuple[Instant, ...]

    @property
    def key(self) -> FindingKey:
        return self.check, self.code, self.device, self.number


class Requirement(Data):
    """The policy requires that a node is drained.

    `row` is the most urgent row. `codes` are the findings that count, the worst first. `cause` is what the first of
    them has in common with the same fault on other nodes; mass events count it. `unproven` are the checks that must
    find it once more first; when it is empty, the requirement is proven. Higher `urgency` (0 to 100) goes first.
    """

    row: Name
    codes: tuple[str, ...]
    cause: str
    action: SuggestedAction
    urgency: int
    reason: str
    unproven: tuple[Name, ...] = ()

    @property
    def is_proven(self) -> bool:
        return not self.unproven


class UpcomingRequirement(Data):
    """A row of the policy will require draining from `at` on, if `code` still stands then."""

    row: Name
    code: str
    at: Instant

    def text(self, at: str) -> str:
        """The same in words; `at` is its time as the reader wants to see it."""
        return f"{self.code} requires draining from {at} on, unless it clears before (policy row {self.row})"


class SecondOpinion(Data):
    """A check ran again to confirm what `run` found: `times` times, the last time as `test`.

    It runs again at `again_at`. That is None while a sweep that was started for it runs.
    """

    run: str
    test: Name
    times: int
    again_at: Instant | None


class ProbationTest(Data):
    """A check that a node must pass. A `strict` one must not be SKIPPED."""

    check: Name
    params: Json = {}
    strict: bool = False


class Probation(Data):
    """Progress of a node's tests.

    `passed` counts the rounds passed in a row. `waiting` are the tests of this round that are still to come; the first
    is under way as `test`, and is given up at `overdue_at` (a sweep always reports its end, so it has none). Between
    two rounds nothing runs until `next_at`. `trouble` says why the last round did not count, and `fruitless` counts
    the rounds in a row that brought the node no further.
    """

    begun: Instant
    passed: int = 0
    waiting: tuple[ProbationTest, ...] = ()
    test: Name | None = None
    overdue_at: Instant | None = None
    next_at: Instant = 0.0
    trouble: str = ""
    fruitless: int = 0


class Wait(StrEnum):
    """Why a node that should be cordoned is not."""

    LAST_NODE = "LAST_NODE"
    BUDGET = "BUDGET"
    DOMAIN_BUDGET = "DOMAIN_BUDGET"
    RATE = "RATE"
    MASS_EVENT = "MASS_EVENT"
    ORDER = "ORDER"
    CATCHING_UP = "CATCHING_UP"


class MassEvent(Data):
    """A cause that many nodes share: how many have it, and since when that is too many."""

    cause: str
    nodes: int
    since: Instant


class NodeEvidence(Data):
    """What is known about a node: what its checks found, and whether it is online.

    - `findings`: the findings that count now, `seen` when each was found
    - `is_fit`: it is examined and healthy; `unfit_because`: why it is not, for people
    - `lost_at`: since when it is silent; `has_left`: it left the fleet
    - `domain`: its failure domain
    - `own_checks`: the checks that it runs by itself
    - `silent_after_s`: by check, how long an ordered run may say nothing
    - `departure`: why it leaves or restarts as planned, by its agent, which said so at `departure_at`
    """

    findings: tuple[StandingFinding, ...] = ()
    seen: tuple[FindingTimes, ...] = ()
    is_fit: bool = False
    unfit_because: str = ""
    lost_at: Instant | None = None
    has_left: bool = False
    domain: str | None = None
    own_checks: tuple[Name, ...] = ()
    silent_after_s: dict[Name, Seconds] = {}
    departure: PluginText | None = None
    departure_at: Instant = 0.0


class NodeDecision(Data):
    """What muster decided about a node, and what people requested.

    - `requirement`: what the policy requires, as last evaluated; `required_since` from when on, `cause_since` from when
      on with its present cause; `upcoming`: what it will require in time
    - `ignored_before`: a person released the node untested, and findings seen before then count for nothing
    - `waits_for`: why it is not cordoned although it should be
    - `causes`: the findings for which it is required, the worst first; once it is cordoned they stay as they were then,
      until it is in service again
    - `cordoned_at`: when it was cordoned so far, or failed its tests and stayed out; of these times, `failed_at` are
      those when it failed, `rehearsed_at` those of the dry run
    - `retest_checks`: the checks that found what it was cordoned for; `retest_because`: it was away, or somebody asked
    - `kept_out_as_new`: actors keep it out until it is accepted, as the budget had room for that when it joined
    """

    state: ServiceState = ServiceState.ACCEPTING
    since: Instant
    dry_run: bool = False
    requirement: Requirement | None = None
    upcoming: UpcomingRequirement | None = None
    required_since: Instant | None = None
    cause_since: Instant | None = None
    hold: Hold | None = None
    ignored_before: Instant = 0.0
    waits_for: Wait | None = None
    second_opinions: dict[Name, SecondOpinion] = {}
    causes: tuple[Cause, ...] = ()
    cordoned_at: tuple[Instant, ...] = ()
    failed_at: tuple[Instant, ...] = ()
    rehearsed_at: tuple[Instant, ...] = ()
    retest_checks: tuple[Name, ...] = ()
    retest_because: str | None = None
    probation: Probation | None = None
    kept_out_as_new: bool = False


class ActorStatus(Data):
    """How the actors have a node.

    - `transition`: the id of the latest one; what came of it lies with the transition
    - `observed`: by actor, how its scheduler had the node at the last survey; `was_listed`: some scheduler had it once
    - `shut_out_as`: the state for which actors were called to drain it, other than in a dry run; None once all have
      uncordoned it
    - `shows_held`: an actor was told that it is HELD, and not yet that this is over
    """

    transition: Name | None = None
    observed: dict[Name, SchedulerNode] = {}
    was_listed: bool = False
    shut_out_as: ServiceState | None = None
    shows_held: bool = False


_NO_EVIDENCE = NodeEvidence()
_NO_STATUS = ActorStatus()


class QuarantineRecord(Data):
    """Everything from which the service state of one node is decided, as it is stored."""

    node: Name
    # New records share these, as nothing changes them. A plain default would be copied deeply for each record.
    evidence: NodeEvidence = Field(default_factory=lambda: _NO_EVIDENCE)
    decision: NodeDecision
    actors: ActorStatus = Field(default_factory=lambda: _NO_STATUS)

    def with_evidence(self, **changes: Any) -> Self:
        """The record with these fields of the evidence changed."""
        return self if _holds(self.evidence, changes) else self._with("evidence", self.evidence, changes)

    def with_decision(self, **changes: Any) -> Self:
        """The record with these fields of the decision changed."""
        return self if _holds(self.decision, changes) else self._with("decision", self.decision, changes)

    def with_actor_status(self, **changes: Any) -> Self:
        """The record with these fields of the actors' status changed."""
        return self if _holds(self.actors, changes) else self._with("actors", self.actors, changes)

    def _with(self, name: str, part: Data, changes: dict[str, Any]) -> Self:
        return self.model_copy(update={name: part.model_copy(update=changes)})

    @property
    def state(self) -> ServiceState:
        return self.decision.state

    @property
    def is_online(self) -> bool:
        return self.evidence.lost_at is None

    @property
    def is_member(self) -> bool:
        """Whether it counts as capacity of the fleet."""
        return not self.evidence.has_left and self.state is not ServiceState.ACCEPTING

    @property
    def is_away(self) -> bool:
        """Whether it gives no capacity now, whatever the reason."""
        if self.state in OUT or self.actors.shut_out_as is not None or not self.is_online:
            return True
        return any(seen.mark in KEEPING_OUT or seen.keeps_off is not None for seen in self.actors.observed.values())

    @property
    def kept_off(self) -> tuple[str, ...]:
        """How others keep work off it without a cordon. muster may still cordon it."""
        return kept_off(self.actors.observed)

    @property
    def is_kept_out(self) -> bool:
        """Whether it is new, and kept out until it is accepted."""
        is_new = not self.evidence.has_left and self.state is ServiceState.ACCEPTING
        return self.decision.kept_out_as_new and is_new

    @property
    def leaving(self) -> str | None:
        """Why it leaves as planned, by its agent or a scheduler; None when it stays."""
        return self.evidence.departure or leaving(self.actors.observed)

    @property
    def left_alone_because(self) -> str | None:
        """Why muster leaves it alone; None when it does not."""
        return left_alone_because(self.decision.hold, self.actors.observed)

    @property
    def is_proven(self) -> bool:
        """Whether it is proven that it must be cordoned."""
        return self.decision.requirement is not None and self.decision.requirement.is_proven

    def is_long_gone(self, before: float, left_before: float) -> bool:
        """Whether it was away since `before`, and no scheduler has it.

        For a node that has left the fleet, `left_before` counts when nobody holds it and it was never out.
        """
        lost_at = self.evidence.lost_at
        if lost_at is None or self.actors.observed:
            return False
        is_plain = self.evidence.has_left and self.decision.hold is None and not self.decision.cordoned_at
        return lost_at < (left_before if is_plain else before)

    def awaits(self, test: str) -> bool:
        """Whether this test is under way, in probation or as a second opinion."""
        decision = self.decision
        is_next = decision.probation is not None and decision.probation.test == test
        return is_next or any(opinion.test == test for opinion in decision.second_opinions.values())


def _holds(part: Data, changes: dict[str, Any]) -> bool:
    """Whether the part has these values already. Most events change nothing, and a copy costs more than a look."""
    return all(getattr(part, name) == value for name, value in changes.items())


def left_alone_because(hold: Hold | None, observed: dict[Name, SchedulerNode]) -> str | None:
    """Why muster leaves a node alone: a hold, an opt-out or a drain by others; None when it does not."""
    if hold is not None:
        return hold.text
    for actor, seen in observed.items():
        if seen.opted_out:
            return f"Opted out in {actor}"
        if seen.mark is Mark.FOREIGN:
            return f"Drained by others in {actor}: {seen.detail or 'no reason given'}"
    return None


class AlarmDelivery(Data):
    """The begin or the end of an alarm that not every plugin has taken; `taken_by` are those that have."""

    alarm: Alarm
    taken_by: tuple[Name, ...] = ()


class FleetState(Data):
    """What was decided about the whole fleet.

    `lifted` are causes that a person lifted, while many share them. `alarms` are those that stand; `undelivered` are
    begins and ends that plugins are still to be told.
    """

    mass_events: tuple[MassEvent, ...] = ()
    lifted: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    undelivered: tuple[AlarmDelivery, ...] = ()
