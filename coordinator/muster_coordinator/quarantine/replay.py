"""What a policy would have decided: the reconciler, run over what happened in the past.

The replay plays the world around the reconciler, in mode enforce. Every actor drains and resumes at once. A test takes
a minute and fails while an ERROR of its check stands. A second opinion never reports: the stored runs are the evidence.
Between two events time passes in steps that end where time alone may change a decision. Events are not kept, so memory
grows with the nodes and the decisions, not with the length of the past.
"""

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from muster.errors import Refused
from muster.model import Data, Instant, Name, ServiceState, Severity, Verdict
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.model import quarantine_events as events
from muster_coordinator.model.findings import StandingFinding, cause_label
from muster_coordinator.model.quarantine import OUT, FleetState, QuarantineRecord, Requirement
from muster_coordinator.quarantine.policy import Policy, why_spared
from muster_coordinator.quarantine.reconciler import Reconciler

TICK_S = 0.25
"""Time passes in steps of at least this, as in a coordinator."""

TEST_S = 60.0
"""How long a test of a node takes."""


class ReplayedKind(StrEnum):
    """What a replay decided.

    DRAINED: the node was drained. WAITS: draining was required, but not admitted. ON_HOLD: draining was required, but a
    person held the node. RETURNED: it returned to service. FROZEN and UNFROZEN: a mass event began and ended.
    """

    DRAINED = "DRAINED"
    WAITS = "WAITS"
    ON_HOLD = "ON_HOLD"
    RETURNED = "RETURNED"
    FROZEN = "FROZEN"
    UNFROZEN = "UNFROZEN"


class ReplayedDecision(Data):
    """What a replay decided about a node, or about the fleet (`node` is None), when and why.

    `codes` are the findings that count and `row` is the row of the policy; a return and a mass event have none.
    """

    at: Instant
    node: Name | None
    kind: ReplayedKind
    because: str
    row: Name | None = None
    codes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Required:
    """The policy required draining: from when on, and why."""

    at: float
    requirement: Requirement


@dataclass(slots=True)
class NodeReplay:
    """What the policy required of one node, whatever the budget, mass events and the rate allowed.

    `first` is when draining was first required, `times` how often that began.
    """

    first: Required | None = None
    times: int = 0
    _is_required: bool = False
    _errors: dict[str, str] = field(default_factory=dict)
    _acted_on: set[str] = field(default_factory=set)

    @property
    def spared(self) -> dict[str, str]:
        """By code, the errors that would not have drained the node, and why not."""
        return {code: reason for code, reason in self._errors.items() if code not in self._acted_on}

    def note(self, record: QuarantineRecord, policy: Policy, now: float) -> None:
        """Takes in the record of the node as it is now."""
        errors = (finding for finding in record.evidence.findings if finding.severity is Severity.ERROR)
        self._errors.update((finding.code, _why_not(policy, finding)) for finding in errors)
        requirement = record.decision.requirement
        if requirement is None:
            self._is_required = False
        elif requirement.is_proven:
            self._acted_on.update(requirement.codes)
            if not self._is_required:
                self._is_required = True
                self.first = self.first or Required(now, requirement)
                self.times += 1


def _why_not(policy: Policy, finding: StandingFinding) -> str:
    row = policy.row_of(finding)
    if row is None or not row.drains:
        return why_spared(row)
    return f"policy row {row.name} wants more repeats, time or proof"


class Replay:
    """The nodes in `records` from `since` on, under `policy` and the budget and waits of `settings`.

    `by_node` has the nodes about which something was found, `decisions` what was decided in order, and `most_out` how
    many nodes were out at once at most.
    """

    def __init__(
        self, settings: QuarantineSettings, policy: Policy, records: Iterable[QuarantineRecord], since: float
    ) -> None:
        self.by_node: dict[str, NodeReplay] = {}
        self.decisions: list[ReplayedDecision] = []
        self.most_out = 0
        self._policy = policy
        self._reconciler = Reconciler(settings.model_copy(update={"mode": "enforce"}), policy, epoch=0)
        self._tests: list[tuple[float, Name, Name]] = []  # under way: when each ends, its node and its id
        self._seen: dict[str, QuarantineRecord] = {record.node: record for record in records}
        self._out: set[str] = set()
        self._fleet = FleetState()
        self._now = since
        self._ticked_at = float("-inf")
        self._handle(events.Restored(records=tuple(self._seen.values()), transitions=()), since)

    def take(self, event: events.QuarantineEvent, at: float) -> None:
        """Takes in an event. A request that is not valid in the replay is skipped."""
        self.pass_time(at)
        try:
            self._handle(event, at)
        except Refused:
            return
        self._handle(events.TimePassed(), at)

    def pass_time(self, until: float) -> None:
        """Lets time pass up to `until`, in steps that end where time alone may change a decision."""
        while (moment := self._next_moment()) is not None and moment <= until:
            self._ticked_at = moment
            while self._tests and self._tests[0][0] <= moment:
                _, node, test = heapq.heappop(self._tests)
                if self._is_under_way(node, test):
                    self._handle(events.TestEnded(node=node, test=test, verdict=self._verdict(node)), moment)
            self._handle(events.TimePassed(), moment)

    @property
    def drained(self) -> frozenset[str]:
        """The nodes that were drained at least once."""
        drains = (decision for decision in self.decisions if decision.kind is ReplayedKind.DRAINED)
        return frozenset(drain.node for drain in drains if drain.node is not None)

    def _next_moment(self) -> float | None:
        moments = [self._tests[0][0]] if self._tests else []
        if (next_look := self._reconciler.next_look(self._now)) is not None:
            moments.append(next_look)
        return max(min(moments), self._ticked_at + TICK_S) if moments else None

    def _handle(self, event: events.QuarantineEvent, now: float) -> None:
        """Has the reconciler handle an event, plays the answers of actors and tests, and notes the decisions."""
        self._now = now
        coming: deque[events.QuarantineEvent] = deque([event])
        while coming:
            for command in self._reconciler.handle(coming.popleft(), now):
                match command:
                    case events.SaveRecord(record=record):
                        self._note(record, now)
                    case events.SaveFleetState(state=fleet):
                        self._note_fleet(fleet, now)
                    case events.DispatchTransition(record=dispatched):
                        transition = dispatched.transition
                        coming.append(events.AllActorsCalled(node=transition.node, transition=transition.id))
                    case events.StartTest(node=node, test=test) if self._is_under_way(node, test):
                        heapq.heappush(self._tests, (now + TEST_S, node, test))

    def _is_under_way(self, node: Name, test: Name) -> bool:
        """Whether this is the test of a node's probation; a second opinion is not, and never reports."""
        probation = self._reconciler.records[node].decision.probation
        return probation is not None and probation.test == test

    def _verdict(self, node: Name) -> Verdict:
        """The verdict of the running test."""
        record = self._reconciler.records[node]
        probation = record.decision.probation
        errors = {finding.check for finding in record.evidence.findings if finding.severity is Severity.ERROR}
        is_bad = probation is not None and probation.waiting[0].check in errors
        return Verdict.FAIL if is_bad else Verdict.PASS

    def _note(self, record: QuarantineRecord, now: float) -> None:
        before, self._seen[record.node] = self._seen.get(record.node, record), record
        if record.evidence.findings:
            self.by_node.setdefault(record.node, NodeReplay())
        if record.node in self.by_node:
            self.by_node[record.node].note(record, self._policy, now)
        decided = _decided(before, record)
        if decided is ReplayedKind.DRAINED:
            self._out.add(record.node)
            self.most_out = max(self.most_out, len(self._out))
        elif decided is ReplayedKind.RETURNED:
            self._out.discard(record.node)
        if decided is not None:
            self.decisions.append(self._decision(record, decided, now))

    def _decision(self, record: QuarantineRecord, kind: ReplayedKind, now: float) -> ReplayedDecision:
        requirement = record.decision.requirement
        if kind is ReplayedKind.RETURNED or requirement is None:
            because = "it passed its tests, or a person released it"
            return ReplayedDecision(at=now, node=record.node, kind=kind, because=because)
        because = requirement.reason
        if kind is ReplayedKind.WAITS:
            because = self._reconciler.case_view(record.node).held_because
        elif kind is ReplayedKind.ON_HOLD:
            because = str(record.left_alone_because)
        row, codes = requirement.row, requirement.codes
        return ReplayedDecision(at=now, node=record.node, kind=kind, because=because, row=row, codes=codes)

    def _note_fleet(self, fleet: FleetState, now: float) -> None:
        before = {event.cause for event in self._fleet.mass_events}
        self._fleet, standing = fleet, {event.cause: event for event in fleet.mass_events}
        for cause in sorted(standing.keys() - before):
            because = f"{standing[cause].nodes} nodes report {cause_label(cause)}"
            self._note_freeze(ReplayedKind.FROZEN, because, now)
        for cause in sorted(before - standing.keys()):
            label = cause_label(cause)
            because = f"a person lifted it: {label}" if cause in fleet.lifted else f"few nodes still report {label}"
            self._note_freeze(ReplayedKind.UNFROZEN, because, now)

    def _note_freeze(self, kind: ReplayedKind, because: str, now: float) -> None:
        self.decisions.append(ReplayedDecision(at=now, node=None, kind=kind, because=because))


def _decided(before: QuarantineRecord, after: QuarantineRecord) -> ReplayedKind | None:
    """What was decided about a node between two of its records; a wait counts only when it begins."""
    if after.state in OUT and before.state not in OUT:
        return ReplayedKind.DRAINED
    if before.state in OUT and after.state is ServiceState.IN_SERVICE:
        return ReplayedKind.RETURNED
    if after.decision.waits_for is not None and before.decision.waits_for is None:
        return ReplayedKind.WAITS
    if _is_kept_by_hand(after) and not _is_kept_by_hand(before):
        return ReplayedKind.ON_HOLD
    return None


def _is_kept_by_hand(record: QuarantineRecord) -> bool:
    return record.state not in OUT and record.is_proven and record.left_alone_because is not None
