"""What it means when a scheduler has a node otherwise than we have decided."""

from enum import StrEnum

from muster.model import ServiceState
from muster.transition import OUT_OF_SERVICE, Effect, Mark, SchedulerNode
from muster_coordinator.model.actions import Action
from muster_coordinator.model.case import Case


class Drift(StrEnum):
    """How a scheduler has a node otherwise than decided.

    UNDONE: a person has let work in again. AGAIN: the actor has to be told again. UNTOLD: it was never told in earnest,
    as what led to this state was only rehearsed.
    """

    UNDONE = "UNDONE"
    AGAIN = "AGAIN"
    UNTOLD = "UNTOLD"


def drift(case: Case, actor: str, latest: Action | None) -> Drift | None:
    """How the scheduler behind `actor` has a node other than decided; None when it has not, or will be told anyway.

    `latest` is the node's latest transition. A mark of ours is not set again while we may do nothing about the node,
    and is taken back even then, unless the node has opted out.
    """
    seen, is_out = case.views[actor], case.state in OUT_OF_SERVICE
    is_ours_to_say = case.hands_off is None if is_out else not seen.opted_out
    is_otherwise = _is_otherwise(seen, is_out=is_out) and is_ours_to_say
    if latest is None or latest.transition.dry_run:
        is_decided = case.state is not ServiceState.ACCEPTING or case.kept_out
        return Drift.UNTOLD if is_otherwise and is_decided else None
    if not _is_settled(latest, actor):
        return None
    if is_out and seen.mark is Mark.UNDONE:
        return Drift.UNDONE
    return Drift.AGAIN if is_otherwise else None


def _is_otherwise(seen: SchedulerNode, *, is_out: bool) -> bool:
    """Whether a mark of ours is missing, in part or altogether, or is there, perhaps in part, and should not be."""
    return seen.mark is Mark.NONE or seen.incomplete if is_out else seen.mark in (Mark.OURS, Mark.UNDONE)


def _is_settled(latest: Action, actor: str) -> bool:
    """Whether the actor has answered and is not about to be told once more."""
    outcome = latest.outcomes.get(actor)
    return latest.told if outcome is None else outcome.effect is not Effect.FAILED
