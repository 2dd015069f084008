"""What a start changes in stored records: decisions of another mode, interrupted tests, and waiting nodes."""

from muster.model import ServiceState
from muster_coordinator.model.quarantine import OUT, QuarantineRecord, Wait
from muster_coordinator.model.quarantine_events import QuarantineCommand, Restored
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine.actors import concerns_mode
from muster_coordinator.quarantine.admission import Admission, must_go
from muster_coordinator.quarantine.desired import Rules
from muster_coordinator.quarantine.event_result import EventResult
from muster_coordinator.quarantine.probation import after_restart
from muster_coordinator.quarantine.service_states import ServiceStates, note

PRETENDED = frozenset({ServiceState.HELD, ServiceState.CORDONED, ServiceState.PROBATION})
"""The states of a dry run that no longer count when it is over."""


class QuarantineStart:
    """Continues where the last coordinator ended, in the present `mode`."""

    def __init__(self, states: ServiceStates, admission: Admission, rules: Rules, mode: str) -> None:
        self._states = states
        self._admission = admission
        self._rules = rules
        self._mode = mode

    def restore(self, event: Restored, now: float) -> EventResult:
        """Takes over what is stored. Every node is reconciled with the first tick."""
        self._states.records.restore(event.records)
        self._states.transitions.restore(event.transitions, event.records)
        commands: list[QuarantineCommand] = []
        for record in event.records:
            switched = self._states.put(in_mode(record, self._rules, now))
            if switched.state is not record.state:
                text = f"{record.state} to {switched.state}: mode is {self._mode} now"
                commands.append(note(record, "service", text))
        self._admission.restore(event.fleet)
        self._admission.catching_up.begin(record.node for record in event.records if not record.evidence.has_left)
        for node in [*self._states.by_node]:
            commands += self._resume(node, now)
        return EventResult(commands)

    def _resume(self, node: str, now: float) -> list[QuarantineCommand]:
        record = self._states.put(resumed(self._states.by_node[node], self._rules))
        latest = self._states.transitions.latest(node)
        is_ours = concerns_mode(record, latest, self._rules)
        commands = [*self._states.transitions.resume(node)] if is_ours else []
        if shows_outdated_hold(record, self._states.transitions.latest(node), self._rules):
            reason = "it no longer waits to be drained"
            commands += self._states.announce(record, ServiceState.HELD, reason, now)
        self._states.records.look_at(node, now)
        return commands


def in_mode(record: QuarantineRecord, rules: Rules, now: float) -> QuarantineRecord:
    """The record without decisions of another mode that do not count in this one.

    When a dry run is over, a node that actors drained in enforce mode is still out; all others are in service. In
    observe mode no node waits.
    """
    if not rules.decides:
        record = record.with_decision(waits_for=None)
    state = _state_in_mode(record, rules)
    if not rules.is_dry:
        record = _without_rehearsal(record)
    if state is record.state:
        return record
    return record.with_decision(state=state, since=now, dry_run=False, waits_for=None, probation=None)


def _without_rehearsal(record: QuarantineRecord) -> QuarantineRecord:
    """The record without what a dry run that is over decided; drains before it still count.

    A record of the last release does not say which drains were rehearsed. If the node is out in the dry run alone, none
    of them counts.
    """
    decision = record.decision
    is_out_in_dry_run = decision.dry_run and record.state in OUT and record.actors.shut_out_as is None
    is_unknown = is_out_in_dry_run and not decision.rehearsed_at
    rehearsed = decision.cordoned_at if is_unknown else decision.rehearsed_at
    cordoned_at = tuple(moment for moment in decision.cordoned_at if moment not in rehearsed)
    return record.with_decision(dry_run=False, cordoned_at=cordoned_at, rehearsed_at=())


def _state_in_mode(record: QuarantineRecord, rules: Rules) -> ServiceState:
    if not rules.decides and record.state is ServiceState.HELD:
        return ServiceState.IN_SERVICE
    if not record.decision.dry_run or rules.is_dry:
        return record.state
    shut_out_as = record.actors.shut_out_as
    if shut_out_as is not None:
        return ServiceState.ACCEPTING if shut_out_as is ServiceState.ACCEPTING else ServiceState.CORDONED
    return ServiceState.IN_SERVICE if record.state in PRETENDED else record.state


def resumed(record: QuarantineRecord, rules: Rules) -> QuarantineRecord:
    """The record at the start. A node that must be drained waits until its evidence is complete."""
    record = after_restart(record)
    waits = rules.decides and record.state not in OUT and must_go(record) and record.decision.waits_for is None
    return record.with_decision(waits_for=Wait.CATCHING_UP) if waits else record


def shows_outdated_hold(record: QuarantineRecord, latest: TransitionRecord | None, rules: Rules) -> bool:
    """Whether actors still show that a node is HELD, although it no longer is in this mode."""
    is_shown = record.actors.shows_held and record.state is ServiceState.IN_SERVICE
    if not is_shown or record.evidence.has_left or rules.is_dry:
        return False
    return latest is None or latest.transition.dry_run or latest.transition.after is ServiceState.HELD
