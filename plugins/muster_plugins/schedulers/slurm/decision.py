"""The change on a node in Slurm for a transition, given its state there. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster import Effect, Transition
from muster_plugins.schedulers.slurm.marks import (
    SlurmHold,
    describe,
    hold,
    marked,
    quarantine_reason,
    with_mark,
    without_mark,
)
from muster_plugins.schedulers.slurm.nodes import SlurmNode


@dataclass(frozen=True, slots=True, kw_only=True)
class ScontrolStep:
    """The update that scontrol must make on the node, if any, and the outcome after it."""

    effect: Effect
    detail: str
    update: Mapping[str, str] = field(default_factory=dict)


def decide(node: SlurmNode, transition: Transition, opt_out_feature: str) -> ScontrolStep:
    """The missing step. A drain and its mark are one update, which Slurm applies as a whole."""
    if opt_out_feature in node.features:
        return ScontrolStep(effect=Effect.LEFT, detail=f"has opted out by its feature {opt_out_feature}")
    return _drain(node, transition) if transition.is_out else _resume(node)


def _drain(node: SlurmNode, transition: Transition) -> ScontrolStep:
    now, is_marked = hold(node), marked(node) == transition.id
    if now is SlurmHold.OTHERS:
        return ScontrolStep(effect=Effect.LEFT, detail=describe(node))
    if now is SlurmHold.QUARANTINE and is_marked:
        return ScontrolStep(effect=Effect.DONE, detail="is drained already")
    if is_marked:
        return ScontrolStep(
            effect=Effect.LEFT, detail=f"was drained for {transition.id}, and somebody has resumed it since"
        )
    reason = quarantine_reason(transition, node)
    update = {"State": "DRAIN", "Reason": reason, "Comment": with_mark(node.comment, transition.id)}
    jobs = ", its jobs run to their end" if node.has_jobs else ""
    return ScontrolStep(effect=Effect.DONE, detail=f"drained with the reason {reason!r}{jobs}", update=update)


def _resume(node: SlurmNode) -> ScontrolStep:
    unmark = {"Comment": without_mark(node.comment)} if marked(node) else {}
    match hold(node):
        case SlurmHold.QUARANTINE:
            return ScontrolStep(effect=Effect.DONE, detail="resumed", update={"State": _undrain(node), **unmark})
        case SlurmHold.OTHERS:
            return ScontrolStep(effect=Effect.LEFT, detail=describe(node), update=unmark)
        case SlurmHold.TEST:
            return ScontrolStep(effect=Effect.DONE, detail="returns to service when its test ends", update=unmark)
        case SlurmHold.ABSENCE:
            return ScontrolStep(effect=Effect.DONE, detail=f"is not drained, but {describe(node)}", update=unmark)
        case SlurmHold.NOTHING:
            return ScontrolStep(effect=Effect.DONE, detail="is not drained", update=unmark)


def _undrain(node: SlurmNode) -> str:
    """RESUME returns a node that was away, but would also cancel a reboot that somebody requested."""
    return "RESUME" if "DOWN" in node.state else "UNDRAIN"
