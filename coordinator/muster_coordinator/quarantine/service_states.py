"""How a node changes its service state: its record, the transition for the actors, and its story."""

from typing import Any

from muster.model import Action, Name, ServiceState
from muster.transition import Transition
from muster_coordinator.model.quarantine import QuarantineRecord
from muster_coordinator.model.quarantine_events import QuarantineCommand
from muster_coordinator.quarantine.actors import reaches_actors
from muster_coordinator.quarantine.admission import Admission
from muster_coordinator.quarantine.change import Change, note, state_note
from muster_coordinator.quarantine.desired import ARROWS, Rules, StateStep, needs_person
from muster_coordinator.quarantine.ids import Ids
from muster_coordinator.quarantine.records import Records
from muster_coordinator.quarantine.transitions import Transitions


class ServiceStates:
    """Changes the service states of nodes: their `records`, and their latest `transitions`."""

    def __init__(
        self, records: Records, transitions: Transitions, admission: Admission, rules: Rules, ids: Ids
    ) -> None:
        self._records = records
        self._transitions = transitions
        self._admission = admission
        self._rules = rules
        self._ids = ids

    def apply(self, change: Change, now: float) -> list[QuarantineCommand]:
        """Stores a node's record, and makes the commands that follow from the change."""
        record = self._put(change.record)
        for moment in change.look_again_at:
            self._records.look_at(record.node, moment)
        commands = [*change.commands]
        if change.step is not None:
            commands += self._take_step(record, change.step, change, now)
        elif change.transition_from is not None:
            commands += self._make_transition(record, change.transition_from, change, now)
        if change.retried:
            commands += self._transitions.retry(record.node, change.retried)
        return commands

    def _put(self, record: QuarantineRecord) -> QuarantineRecord:
        """Replaces a node's record. If its transition no longer counts, nothing of it is retried."""
        if record.actors.transition is None:
            self._transitions.supersede(record.node)
        return self._records.put(record)

    def _take_step(
        self, record: QuarantineRecord, step: StateStep, change: Change, now: float
    ) -> list[QuarantineCommand]:
        """Brings a node to the state that the step leads to, and calls the actors that this concerns."""
        before = record.state
        record = self._put(_after_step(record, step, self._rules, now))
        if step is StateStep.CORDON:
            self._admission.note_cordon(now)
        if self._concerns_actors(record, step):
            commands = self._make_transition(record, before, change, now)
        else:
            commands = [state_note(record, before, change.reason, self._rules, now=now)]
        if record.state is ServiceState.CORDONED and needs_person(record.decision.cordoned_at, self._rules.returning):
            times = f"drained {len(record.decision.cordoned_at)} times"
            text = f"{times}; stays out until `muster quarantine release {record.node}`"
            cause = self._records.by_node[record.node].actors.transition
            commands.append(note(record, "service", text, cause))
        return commands

    def _make_transition(
        self, record: QuarantineRecord, before: ServiceState, change: Change, now: float
    ) -> list[QuarantineCommand]:
        """Stores a transition into the node's present state, and calls the actors if the mode allows it."""
        requirement = record.decision.requirement
        transition = Transition(
            id=self._ids.new("t"),
            node=record.node,
            before=before,
            after=record.state,
            reason=change.reason,
            at=now,
            codes=() if requirement is None else requirement.codes,
            causes=record.decision.causes,
            action=Action.NONE if requirement is None else requirement.action,
            by=change.by,
            dry_run=self._rules.is_dry,
        )
        to_actors = reaches_actors(record, transition, self._rules)
        is_shut_out = transition.is_out and self._rules.enforces
        shut_out_as = record.state if is_shut_out else record.actors.shut_out_as
        record = self._put(record.with_actor_status(transition=transition.id, shut_out_as=shut_out_as))
        story = state_note(record, before, change.reason, self._rules, now=now, cause=transition.id)
        return [story, *self._transitions.add(transition, to_actors=to_actors)]

    def _concerns_actors(self, record: QuarantineRecord, step: StateStep) -> bool:
        """Whether actors are called for a step: not for a node that only waits for its turn and is drained soon."""
        if step is StateStep.WAIT:
            return self._admission.waits_long(record)
        return step is not StateStep.CLEAR or self._transitions.is_latest_state(record.node, ServiceState.HELD)


def _after_step(record: QuarantineRecord, step: StateStep, rules: Rules, now: float) -> QuarantineRecord:
    after, decision = ARROWS[record.state, step], record.decision
    changes: dict[str, Any] = {}
    if after is ServiceState.IN_SERVICE:
        changes["causes"] = ()
    if step is StateStep.CORDON:
        changes["retest_checks"] = _checks_that_found(record)
    is_pretended = rules.is_dry and record.actors.shut_out_as is not None
    if after is ServiceState.CORDONED and not is_pretended:
        changes["cordoned_at"] = (*decision.cordoned_at, now)
        if step is StateStep.FAIL:
            changes["failed_at"] = (*decision.failed_at, now)
        if rules.is_dry:
            changes["rehearsed_at"] = (*decision.rehearsed_at, now)
    return record.with_decision(
        state=after,
        since=now,
        dry_run=rules.is_dry,
        waits_for=decision.waits_for if step is StateStep.WAIT else None,
        probation=None,
        retest_because=None,
        **changes,
    )


def _checks_that_found(record: QuarantineRecord) -> tuple[Name, ...]:
    """The checks that found what the node is cordoned for."""
    codes = () if record.decision.requirement is None else record.decision.requirement.codes
    return tuple(dict.fromkeys(finding.check for finding in record.evidence.findings if finding.code in codes))
