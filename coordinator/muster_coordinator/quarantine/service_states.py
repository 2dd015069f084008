"""How a node changes its service state: its record, the transition for the actors, and its story."""

from collections.abc import Callable, Mapping

from muster.model import Action, Json, Name, ServiceState, format_instant
from muster.transition import Transition
from muster_coordinator.model.quarantine import NodeDecision, QuarantineRecord
from muster_coordinator.model.quarantine_events import Note, QuarantineCommand
from muster_coordinator.quarantine.actors import concerns_mode, reaches_actors
from muster_coordinator.quarantine.admission import Admission
from muster_coordinator.quarantine.desired import ARROWS, Rules, Step, needs_person, retest_at
from muster_coordinator.quarantine.records import Records
from muster_coordinator.quarantine.transitions import Transitions

NewId = Callable[[str], Name]
"""Makes an id; its first letter tells people what it is about."""


class ServiceStates:
    """The service states of all nodes, in `records`, with the latest `transitions`."""

    def __init__(
        self, records: Records, transitions: Transitions, admission: Admission, rules: Rules, new_id: NewId
    ) -> None:
        self.records = records
        self.transitions = transitions
        self._admission = admission
        self._rules = rules
        self._new_id = new_id

    @property
    def by_node(self) -> Mapping[str, QuarantineRecord]:
        """The record of every node, by name."""
        return self.records.by_node

    def put(self, record: QuarantineRecord) -> QuarantineRecord:
        """Takes a record. If its transition no longer counts, nothing of it is retried."""
        if record.actors.transition is None:
            self.transitions.supersede(record.node)
        return self.records.put(record)

    def step(
        self, record: QuarantineRecord, step: Step, reason: str, now: float, by: str | None = None
    ) -> list[QuarantineCommand]:
        """Brings a node to the state that the step leads to, and calls the actors that this concerns."""
        before = record.state
        record = self.put(self._stepped(record, step, now))
        if step is Step.CORDON:
            self._admission.note_cordon(now)
        if self._concerns_actors(record, step):
            commands = self.announce(record, before, reason, now, by=by)
        else:
            commands = [self.story(record, before, reason, now)]
        if record.state is ServiceState.CORDONED and needs_person(record.decision.cordoned_at, self._rules.returning):
            record = self.by_node[record.node]
            times = f"drained {len(record.decision.cordoned_at)} times"
            text = f"{times}; stays out until `muster quarantine release {record.node}`"
            commands.append(note(record, "service", text, record.actors.transition))
        return commands

    def announce(
        self, record: QuarantineRecord, before: ServiceState, reason: str, now: float, *, by: str | None = None
    ) -> list[QuarantineCommand]:
        """Stores a transition into the node's present state, and calls the actors if the mode allows it."""
        requirement = record.decision.requirement
        transition = Transition(
            id=self._new_id("t"),
            node=record.node,
            before=before,
            after=record.state,
            reason=reason,
            at=now,
            codes=() if requirement is None else requirement.codes,
            causes=record.decision.causes,
            action=Action.NONE if requirement is None else requirement.action,
            by=by,
            dry_run=self._rules.is_dry,
        )
        is_shut_out = transition.is_out and self._rules.decides and not self._rules.is_dry
        to_actors = reaches_actors(record, transition, self._rules)
        shut_out_as = record.state if is_shut_out else record.actors.shut_out_as
        record = self.put(record.with_actor_status(transition=transition.id, shut_out_as=shut_out_as))
        story = self.story(record, before, reason, now, transition.id)
        return [story, *self.transitions.add(transition, to_actors=to_actors)]

    def story(
        self, record: QuarantineRecord, before: ServiceState, reason: str, now: float, cause: Name | None = None
    ) -> Note:
        """What a node's story says of its state."""
        state, returning = record.state, self._rules.returning
        change = f"stays {state}" if before is state else f"{before} to {state}"
        comes_back = state is ServiceState.CORDONED and not needs_person(record.decision.cordoned_at, returning)
        at = retest_at(record, returning)
        back = f"; retest after {format_instant(at)} once all faults have cleared" if comes_back and at > now else ""
        return note(record, "service", f"{change}{self._dry}: {reason}{back}", cause)

    def latest_leads_to(self, node: str, state: ServiceState) -> bool:
        """Whether the latest transition of the node leads to this state."""
        return self.transitions.latest_leads_to(node, state)

    def look_at_retry(self, node: str) -> None:
        """Schedules a look at a node for the next retry of an actor."""
        latest = self.transitions.latest(node)
        if latest is not None and concerns_mode(self.by_node[node], latest, self._rules):
            self.records.look_at(node, latest.next_try)

    @property
    def _dry(self) -> str:
        return " (dry run)" if self._rules.is_dry else ""

    def _stepped(self, record: QuarantineRecord, step: Step, now: float) -> QuarantineRecord:
        after = ARROWS[record.state, step]
        decision = record.decision
        is_pretended = self._rules.is_dry and record.actors.shut_out_as is not None
        is_counted = after is ServiceState.CORDONED and not is_pretended
        return record.with_decision(
            state=after,
            since=now,
            dry_run=self._rules.is_dry,
            waits_for=decision.waits_for if step is Step.WAIT else None,
            probation=None,
            retest_because=None,
            causes=() if after is ServiceState.IN_SERVICE else decision.causes,
            **(self._counting_cordon(decision, step, now) if is_counted else {}),
            retest_checks=_checks_that_found(record) if step is Step.CORDON else decision.retest_checks,
        )

    def _counting_cordon(self, decision: NodeDecision, step: Step, now: float) -> dict[str, tuple[float, ...]]:
        is_failure, is_rehearsal = step is Step.FAIL, self._rules.is_dry
        return {
            "cordoned_at": (*decision.cordoned_at, now),
            "failed_at": (*decision.failed_at, now) if is_failure else decision.failed_at,
            "rehearsed_at": (*decision.rehearsed_at, now) if is_rehearsal else decision.rehearsed_at,
        }

    def _concerns_actors(self, record: QuarantineRecord, step: Step) -> bool:
        """Whether actors are called for a step: not for a node that only waits for its turn and is drained soon."""
        if step is Step.WAIT:
            return self._admission.waits_long(record)
        return step is not Step.CLEAR or self.latest_leads_to(record.node, ServiceState.HELD)


def note(
    record: QuarantineRecord, about: str, text: str, cause: str | None = None, *, data: Json | None = None
) -> Note:
    """An entry of a node's story."""
    return Note(node=record.node, about=about, text=text, cause=cause, data=data or {})


def _checks_that_found(record: QuarantineRecord) -> tuple[Name, ...]:
    """The checks that found what the node is cordoned for."""
    codes = () if record.decision.requirement is None else record.decision.requirement.codes
    return tuple(dict.fromkeys(finding.check for finding in record.evidence.findings if finding.code in codes))
