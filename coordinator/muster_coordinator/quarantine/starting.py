"""What a start changes in stored records: decisions of another mode, interrupted tests, and what waits."""

from muster.model import ServiceState
from muster_coordinator.model.quarantine import OUT, QuarantineRecord, Wait
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine.desired import Rules
from muster_coordinator.quarantine.probation import after_restart

PRETENDED = frozenset({ServiceState.HELD, ServiceState.CORDONED, ServiceState.PROBATION})
"""The states of a dry run that count no more when it is over."""


def in_mode(record: QuarantineRecord, rules: Rules, now: float) -> QuarantineRecord:
    """The record without what was decided in another mode and does not count in this one.

    When a dry run is over, a node that actors were told in earnest to keep out is still out; all others are in service.
    Observe mode keeps nobody waiting.
    """
    decision = record.decision
    if not rules.decides:
        record = record.deciding(waits_for=None)
    state = _state_in_mode(record, rules)
    if state is record.state:
        return record.deciding(dry_run=decision.dry_run and rules.is_dry)
    cordoned_at = decision.cordoned_at if state is ServiceState.CORDONED else ()
    return record.deciding(
        state=state, since=now, dry_run=False, waits_for=None, probation=None, cordoned_at=cordoned_at
    )


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
    """The record at the start. Nodes that must go wait in the order of how bad they are, not of their names."""
    record = after_restart(record)
    must_go = rules.decides and record.state not in OUT and record.is_proven and record.hands_off is None
    return record.deciding(waits_for=Wait.ORDER) if must_go and record.decision.waits_for is None else record


def shows_outdated_hold(record: QuarantineRecord, latest: TransitionRecord | None, rules: Rules) -> bool:
    """Whether actors go on showing that a node is HELD, which is not so any more in this mode."""
    is_shown = record.actors.shows_held and record.state is ServiceState.IN_SERVICE
    if not is_shown or record.evidence.has_left or rules.is_dry:
        return False
    return latest is None or latest.transition.dry_run or latest.transition.after is ServiceState.HELD
