"""What the policy's answer changes in a node's record, and what the node's story says about it.

The story gets an entry when the row, the cause or the proof changes, not with every run that repeats a finding.
"""

from collections.abc import Iterable

from muster.model import Json, ServiceState, format_instant
from muster.transition import Cause
from muster_coordinator.model.quarantine import OUT, QuarantineRecord, Requirement
from muster_coordinator.model.quarantine_events import Note
from muster_coordinator.quarantine.change import Change, note
from muster_coordinator.quarantine.policy import PolicyResult


def after_evaluation(record: QuarantineRecord, result: PolicyResult, now: float) -> Change:
    """The record after the policy evaluated it at `now`."""
    before = record.decision
    notes: list[Note] = []
    if result.causes != before.causes and not _keeps_causes(record):
        record = record.with_decision(causes=result.causes)
    if result.requirement != before.requirement:
        record = _requiring(record, result.requirement, now)
        if _gist(result.requirement) != _gist(before.requirement):
            data: Json = {} if result.requirement is None else result.requirement.model_dump(mode="json")
            text = requirement_text(result.requirement, result.causes)
            notes.append(note(record, "policy", text, data=data))
    if result.upcoming != before.upcoming:
        record = record.with_decision(upcoming=result.upcoming)
        if result.upcoming is not None:
            text = result.upcoming.text(format_instant(result.upcoming.at))
            data = result.upcoming.model_dump(mode="json")
            notes.append(note(record, "policy", text, data=data))
    look_again_at = () if result.next_change is None else (result.next_change,)
    return Change(record, tuple(notes), look_again_at=look_again_at)


def requirement_text(requirement: Requirement | None, causes: Iterable[Cause]) -> str:
    """What the policy requires, with the row and its reason: `XID 79 requires draining (policy row …): …`."""
    if requirement is None:
        return "No finding requires draining any more"
    found = dict.fromkeys(cause.label for cause in causes)
    verb = "requires" if len(found) == 1 else "require"
    unproven = ", ".join(requirement.unproven)
    proof = f" once {unproven} finds it again" if unproven else ""
    return f"{', '.join(found)} {verb} draining{proof} (policy row {requirement.row}): {requirement.reason}"


def _requiring(record: QuarantineRecord, requirement: Requirement | None, now: float) -> QuarantineRecord:
    """The record with this requirement.

    A HELD node keeps waiting while a second run confirms its finding. Any other node waits only for what is proven.
    """
    before = record.decision
    if requirement is None:
        return record.with_decision(requirement=None, required_since=None, cause_since=None, waits_for=None)
    has_same_cause = before.requirement is not None and before.requirement.cause == requirement.cause
    is_waiting = requirement.is_proven or record.state is ServiceState.HELD
    return record.with_decision(
        requirement=requirement,
        required_since=before.required_since or now,
        cause_since=before.cause_since if has_same_cause and before.cause_since is not None else now,
        waits_for=before.waits_for if is_waiting else None,
    )


def _keeps_causes(record: QuarantineRecord) -> bool:
    """Whether the causes stay as they are: a node that is out keeps the causes for which it was cordoned."""
    return record.state in OUT and bool(record.decision.causes)


def _gist(requirement: Requirement | None) -> tuple[object, ...]:
    """What makes a requirement worth a new entry of the story."""
    return () if requirement is None else (requirement.row, requirement.cause, requirement.is_proven)
