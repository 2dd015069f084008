"""How actors have a node, and what they are told: new transitions, retries, and corrections after a survey.

A scheduler is compared with the decision only when an actor has just shown the node, every `resync_s`: only then is
what was observed newer than what the actor was told. Only the latest transition of a node is retried.
"""

from enum import StrEnum
from typing import NamedTuple

from muster.model import ServiceState
from muster.transition import OUT_OF_SERVICE, Effect, Mark, SchedulerNode, Transition
from muster_coordinator.model.quarantine import OUT, Hold, QuarantineRecord
from muster_coordinator.model.quarantine_events import NodeSurveyed
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine.desired import Rules


class Difference(StrEnum):
    """How a scheduler has a node otherwise than decided.

    RESUMED_BY_HAND: a person let work in again. MISSING: our mark is missing, in part or altogether, or stands although
    the node is in service. UNTOLD: the actor was never told in earnest, as what led to this state was a dry run.
    """

    RESUMED_BY_HAND = "RESUMED_BY_HAND"
    MISSING = "MISSING"
    UNTOLD = "UNTOLD"


def diff(record: QuarantineRecord, latest: TransitionRecord | None, actor: str) -> Difference | None:
    """How the scheduler behind `actor` has a node otherwise than decided; None when it has not, or will be told anyway.

    While muster keeps its hands off a node, its mark is not set again. It is taken back even then, unless the node
    opted out.
    """
    seen, is_out = record.actors.observed[actor], record.state in OUT_OF_SERVICE
    is_ours_to_say = record.hands_off is None if is_out else not seen.opted_out
    differs = _differs(seen, is_out=is_out) and is_ours_to_say
    if latest is None or latest.transition.dry_run:
        is_decided = record.state is not ServiceState.ACCEPTING or record.decision.kept_out_as_new
        return Difference.UNTOLD if differs and is_decided else None
    if not _is_settled(latest, actor):
        return None
    if is_out and seen.mark is Mark.UNDONE:
        return Difference.RESUMED_BY_HAND
    return Difference.MISSING if differs else None


def _differs(seen: SchedulerNode, *, is_out: bool) -> bool:
    return seen.mark is Mark.NONE or seen.incomplete if is_out else seen.mark in (Mark.OURS, Mark.UNDONE)


def _is_settled(latest: TransitionRecord, actor: str) -> bool:
    """Whether the actor has answered and is not about to be told once more."""
    outcome = latest.outcomes.get(actor)
    return latest.told if outcome is None else outcome.effect is not Effect.FAILED


def reaches_actors(record: QuarantineRecord, transition: Transition, rules: Rules) -> bool:
    """Whether actors are told. In observe mode only, to let in what is shut out and to take back a shown HELD."""
    is_let_in = record.actors.shut_out_as is not None and not transition.is_out
    is_taken_back = transition.before is ServiceState.HELD and transition.after is ServiceState.IN_SERVICE
    return rules.decides or is_let_in or is_taken_back


def concerns_mode(record: QuarantineRecord, latest: TransitionRecord | None, rules: Rules) -> bool:
    """Whether actors are told of this transition in the present mode, also again."""
    if latest is None or latest.transition.dry_run is not rules.is_dry:
        return False
    return reaches_actors(record, latest.transition, rules)


class Surveyed(NamedTuple):
    """A record after a survey, and what the node's story says of it: kind and text."""

    record: QuarantineRecord
    notes: tuple[tuple[str, str], ...] = ()


def after_survey(record: QuarantineRecord, event: NodeSurveyed) -> Surveyed:
    """The record after an actor showed how its scheduler has the node.

    Another machine under the name of a node that is not out has taken its place: the node left. A node that is out and
    was registered anew may be another machine, which has passed no test.
    """
    before = record.actors.observed.get(event.actor)
    notes: list[tuple[str, str]] = []
    if (news := _news(before, event)) is not None:
        notes.append(("scheduler", news))
    is_other = _is_other_machine(record, before, event.node)
    is_swapped = before is not None and before.registration not in (None, event.node.registration)
    record = record.acting(observed={**record.actors.observed, event.actor: event.node}, was_listed=True)
    if is_other:
        notes.append(("left", f"{event.actor} has another node under this name, which is not accepted yet"))
        record = as_left(record)
    elif is_swapped and record.state in OUT:
        record = record.deciding(probation=None)
    return Surveyed(record, tuple(notes))


def _is_other_machine(record: QuarantineRecord, before: SchedulerNode | None, seen: SchedulerNode) -> bool:
    """Whether a node that is not out was registered anew, and is kept out until it is accepted.

    A node that opted out is not taken for another machine before it is muster's to let in again.
    """
    if not record.actors.was_listed or record.state in OUT or record.evidence.has_left:
        return False
    had_opted_out_as_new = before is not None and before.is_new and before.opted_out
    is_same = before is not None and before.registration == seen.registration and not had_opted_out_as_new
    return seen.is_new and not seen.opted_out and not is_same


def as_left(record: QuarantineRecord) -> QuarantineRecord:
    """The record of a node that left the fleet. A transition that would let it in is not about the next machine."""
    record = record.knowing(has_left=True)
    return record if record.state in OUT else record.acting(transition=None)


def _news(before: SchedulerNode | None, event: NodeSurveyed) -> str | None:
    """What others announced or did about a node at its scheduler, or that this is over; None when nothing changed."""
    was, said = _said_of(before), _said_of(event.node)
    return None if said == was else f"{event.actor}: {said or f'no longer: {was}'}"


def _said_of(seen: SchedulerNode | None) -> str:
    if seen is None:
        return ""
    said = [
        f"it is leaving: {seen.leaving}" if seen.leaving is not None else "",
        "it has opted out" if seen.opted_out else "",
        f"somebody else keeps it out: {seen.detail or 'without a reason'}" if seen.mark is Mark.FOREIGN else "",
        f"work is kept off it: {seen.keeps_off}" if seen.keeps_off is not None else "",
    ]
    return "; ".join(filter(None, said))


def hold_after_resume(record: QuarantineRecord, actor: str, now: float, *, everywhere: bool) -> Hold:
    """The hold that respects that a person let a node that muster had cordoned have work again."""
    others = [name for name, seen in record.actors.observed.items() if name != actor and seen.mark is Mark.OURS]
    elsewhere = f"; {'also uncordoned' if everywhere else 'still cordoned'} in {', '.join(others)}" if others else ""
    until = f"muster will not drain it until `muster quarantine release {record.node}`"
    return Hold(by=f"somebody at {actor}", reason=f"resumed by hand in {actor}{elsewhere}. {until}", at=now)


def after_outcome(record: QuarantineRecord, transition: Transition, actor: str) -> QuarantineRecord:
    """The record after an actor did what a transition says.

    What it let in is in at its scheduler before the next survey says so.
    """
    record = record.acting(shows_held=transition.after is ServiceState.HELD)
    seen = record.actors.observed.get(actor)
    if seen is None or record.actors.transition != transition.id or transition.is_out:
        return record
    if seen.mark not in (Mark.OURS, Mark.UNDONE):
        return record
    seen = seen.model_copy(update={"mark": Mark.NONE, "transition": None, "incomplete": False})
    return record.acting(observed={**record.actors.observed, actor: seen})
