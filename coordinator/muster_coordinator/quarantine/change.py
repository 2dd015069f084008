"""What an event changes about one node. Intakes return it, and `ServiceStates.apply` brings it about."""

from typing import NamedTuple

from muster.model import Json, Name, ServiceState, format_instant
from muster_coordinator.model.quarantine import QuarantineRecord
from muster_coordinator.model.quarantine_events import Note, QuarantineCommand
from muster_coordinator.quarantine.desired import Rules, StateStep, needs_person, retest_at


class Change(NamedTuple):
    """A node's record after an event, and what follows from it.

    - `commands`: what to do first, mostly entries of the node's story
    - `step`: the step that the node takes now
    - `transition_from`: without a step, actors are called for the record's state; this is the state before
    - `reason`, `by`: why the step or the transition is made, and on whose request
    - `retried`: the actors that are called again for the latest transition
    - `look_again_at`: when time alone may change a decision
    """

    record: QuarantineRecord
    commands: tuple[QuarantineCommand, ...] = ()
    step: StateStep | None = None
    transition_from: ServiceState | None = None
    reason: str = ""
    by: str | None = None
    retried: tuple[Name, ...] = ()
    look_again_at: tuple[float, ...] = ()


def note(
    record: QuarantineRecord, about: str, text: str, cause: str | None = None, *, data: Json | None = None
) -> Note:
    """An entry of a node's story."""
    return Note(node=record.node, about=about, text=text, cause=cause, data=data or {})


def state_note(
    record: QuarantineRecord,
    before: ServiceState,
    reason: str,
    rules: Rules,
    *,
    now: float,
    cause: Name | None = None,
) -> Note:
    """What a node's story says of its state."""
    state = record.state
    change = f"stays {state}" if before is state else f"{before} to {state}"
    comes_back = state is ServiceState.CORDONED and not needs_person(record.decision.cordoned_at, rules.returning)
    at = retest_at(record, rules.returning)
    back = f"; retest after {format_instant(at)} once all faults have cleared" if comes_back and at > now else ""
    dry = " (dry run)" if rules.is_dry else ""
    return note(record, "service", f"{change}{dry}: {reason}{back}", cause)
