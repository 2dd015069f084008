"""How schedulers have a node, and what actors are told: new transitions, retries, and corrections after a survey.

A scheduler is compared with the decision only after a survey, every `resync_s`: only then is the observed state newer
than the last call of the actor. Only the latest transition of a node is retried.
"""

from enum import StrEnum
from typing import NamedTuple

from muster.model import ServiceState
from muster.transition import OUT_OF_SERVICE, Effect, Mark, SchedulerNode, Transition
from muster_coordinator.model.quarantine import OUT, RESUMED_BY_HAND, Hold, QuarantineRecord
from muster_coordinator.model.quarantine_events import NodeSurveyed
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine.desired import Rules


class Difference(StrEnum):
    """How the state at a scheduler differs from the decision.

    RESUMED_BY_HAND: a person resumed the node after this decision. MISSING: our mark is missing, in part or altogether,
    or stands although the node is in service. NEVER_CALLED: the actor was never called in enforce mode, as a dry run
    led to this state.
    """

    RESUMED_BY_HAND = "RESUMED_BY_HAND"
    MISSING = "MISSING"
    NEVER_CALLED = "NEVER_CALLED"


def diff(record: QuarantineRecord, latest: TransitionRecord | None, actor: str) -> Difference | None:
    """How the scheduler of `actor` differs from the decision; None when it does not, or when a call is due anyway.

    While muster leaves a node alone, its mark is not set again. It is removed even then, unless the node opted out.
    """
    seen, is_out = record.actors.observed[actor], record.state in OUT_OF_SERVICE
    is_ours_to_say = record.left_alone_because is None if is_out else not seen.opted_out
    differs = _differs(seen, is_out=is_out) and is_ours_to_say
    if latest is None or latest.transition.dry_run:
        is_decided = record.state is not ServiceState.ACCEPTING or record.decision.kept_out_as_new
        return Difference.NEVER_CALLED if differs and is_decided else None
    if not _is_settled(latest, actor):
        return None
    if is_out and seen.mark is Mark.UNDONE:
        return Difference.RESUMED_BY_HAND if _is_undone(seen, latest, actor) else Difference.MISSING
    return Difference.MISSING if differs else None


def _differs(seen: SchedulerNode, *, is_out: bool) -> bool:
    return seen.mark is Mark.NONE or seen.incomplete if is_out else seen.mark in (Mark.OURS, Mark.UNDONE)


def _is_undone(seen: SchedulerNode, latest: TransitionRecord, actor: str) -> bool:
    """Whether a person undid the latest decision, or an earlier one and the actor respects that.

    After a release, the mark of the earlier decision stands until the actor has replaced it by that of the release.
    """
    outcome = latest.outcomes.get(actor)
    is_respected = outcome is not None and outcome.effect is Effect.LEFT
    return is_respected or seen.transition in (None, latest.transition.id)


def _is_settled(latest: TransitionRecord, actor: str) -> bool:
    """Whether the actor has answered and no retry is due."""
    outcome = latest.outcomes.get(actor)
    return latest.told if outcome is None else outcome.effect is not Effect.FAILED


def reaches_actors(record: QuarantineRecord, transition: Transition, rules: Rules) -> bool:
    """Whether actors are called. In observe mode only to uncordon a node, or to take back a HELD that they show."""
    is_uncordoned = record.actors.shut_out_as is not None and not transition.is_out
    is_taken_back = transition.before is ServiceState.HELD and transition.after is ServiceState.IN_SERVICE
    return rules.decides or is_uncordoned or is_taken_back


def concerns_mode(record: QuarantineRecord, latest: TransitionRecord | None, rules: Rules) -> bool:
    """Whether actors are called for this transition in the present mode, retries included."""
    if latest is None or latest.transition.dry_run is not rules.is_dry:
        return False
    return reaches_actors(record, latest.transition, rules)


class Surveyed(NamedTuple):
    """A record after a survey, and the entries of the node's story: kind and text."""

    record: QuarantineRecord
    notes: tuple[tuple[str, str], ...] = ()


def after_survey(record: QuarantineRecord, event: NodeSurveyed) -> Surveyed:
    """The record after an actor showed how its scheduler has the node.

    If another machine was registered under the name of a node that is not out, the old node left. A node that is out
    and was registered again may be another machine, so its passed rounds no longer count.
    """
    before = record.actors.observed.get(event.actor)
    notes: list[tuple[str, str]] = []
    if (news := _news(before, event)) is not None:
        notes.append(("scheduler", news))
    is_other = _is_other_machine(record, before, event.node)
    is_swapped = before is not None and before.registration not in (None, event.node.registration)
    record = record.with_actor_status(observed={**record.actors.observed, event.actor: event.node}, was_listed=True)
    if is_other:
        notes.append(("left", f"{event.actor} has another machine under this name, which is not accepted yet"))
        record = as_left(record)
    elif is_swapped and record.state in OUT:
        record = record.with_decision(probation=None)
    return Surveyed(record, tuple(notes))


def _is_other_machine(record: QuarantineRecord, before: SchedulerNode | None, seen: SchedulerNode) -> bool:
    """Whether a node that is not out was registered again, and is kept out until it is accepted.

    A node that opted out is not taken for another machine until it opts in again.
    """
    if not record.actors.was_listed or record.state in OUT or record.evidence.has_left:
        return False
    had_opted_out_as_new = before is not None and before.is_new and before.opted_out
    is_same = before is not None and before.registration == seen.registration and not had_opted_out_as_new
    return seen.is_new and not seen.opted_out and not is_same


def as_left(record: QuarantineRecord) -> QuarantineRecord:
    """The record of a node that left the fleet. A transition that uncordons it must not uncordon the next machine."""
    record = record.with_evidence(has_left=True)
    return record if record.state in OUT else record.with_actor_status(transition=None)


def _news(before: SchedulerNode | None, event: NodeSurveyed) -> str | None:
    """What others announced or did at the scheduler, or that this is over; None when nothing changed."""
    was, is_now = _marks_of(before), _marks_of(event.node)
    return None if is_now == was else f"{event.actor}: {is_now or f'no longer: {was}'}"


def _marks_of(seen: SchedulerNode | None) -> str:
    if seen is None:
        return ""
    marks = [
        f"leaving: {seen.leaving}" if seen.leaving is not None else "",
        "opted out" if seen.opted_out else "",
        f"drained by others: {seen.detail or 'no reason given'}" if seen.mark is Mark.FOREIGN else "",
        f"others keep work off it: {seen.keeps_off}" if seen.keeps_off is not None else "",
    ]
    return "; ".join(filter(None, marks))


def hold_after_resume(record: QuarantineRecord, actor: str, now: float, *, everywhere: bool) -> Hold:
    """The hold after a person resumed a node that muster had cordoned."""
    others = [name for name, seen in record.actors.observed.items() if name != actor and seen.mark is Mark.OURS]
    elsewhere = f" ({'also resumed' if everywhere else 'still drained'} in {', '.join(others)})" if others else ""
    until = f"muster will not drain it until `muster quarantine release {record.node}`"
    return Hold(by=f"somebody at {actor}", reason=f"{RESUMED_BY_HAND}{actor}{elsewhere}; {until}", at=now)


def after_outcome(record: QuarantineRecord, transition: Transition, actor: str) -> QuarantineRecord:
    """The record after an actor carried out a transition.

    A node that it uncordoned counts as uncordoned at once, before the next survey.
    """
    record = record.with_actor_status(shows_held=transition.after is ServiceState.HELD)
    seen = record.actors.observed.get(actor)
    if seen is None or record.actors.transition != transition.id or transition.is_out:
        return record
    if seen.mark not in (Mark.OURS, Mark.UNDONE):
        return record
    seen = seen.model_copy(update={"mark": Mark.NONE, "transition": None, "incomplete": False})
    return record.with_actor_status(observed={**record.actors.observed, actor: seen})
