"""Whose word it is that a node gets work or none, and when that is a reason to leave it alone. Pure.

A node that we cordon gets an annotation in the same request, which says so. While that is there, the cordon is ours,
unless the API server knows that only others want it: they have undone ours and set their own. It stays ours when
somebody takes only the annotation away, since the API server knows that we applied it. Any other cordon is somebody
else's, and so is the taint that we would add. Where the cordon is gone, but not the annotation or the label that came
with it, somebody has undone it. It stays undone until a person asks for a test of the node.
"""

from pydantic import ValidationError

from muster import Cause, Mark, Transition
from muster.model import Data, Instant, Name, ServiceState
from muster.transition import OUT_OF_SERVICE
from muster_plugins.schedulers.kubernetes.node import FieldsOfManager, KubernetesNode
from muster_plugins.schedulers.kubernetes.settings import ActorSettings
from muster_plugins.schedulers.kubernetes.taints import Taint
from muster_plugins.schedulers.kubernetes.texts import state_label

FIELD_MANAGER = "muster"
"""The field manager under which the API server keeps what we have applied."""

_OUT_LABELS = frozenset(map(state_label, OUT_OF_SERVICE))


class OurMark(Data):
    """The annotation: which transition keeps the node out, why, since when, and the taint that we added, if any.

    `causes` are the transition's. Annotations of earlier versions have none.
    """

    transition: Name
    state: ServiceState
    reason: str
    since: Instant
    causes: tuple[Cause, ...] = ()
    taint: Taint | None = None


def our_mark(node: KubernetesNode, settings: ActorSettings) -> OurMark | None:
    """Our mark on the node; None if it is missing or cannot be read."""
    try:
        return OurMark.model_validate_json(node.metadata.annotations.get(settings.mark_key, ""))
    except ValidationError:
        return None


def whose_mark(node: KubernetesNode, settings: ActorSettings) -> Mark:
    """Who keeps the node out of scheduling. The startup taint counts as ours."""
    if node.spec.unschedulable:
        return Mark.OURS if is_our_cordon(node, settings) else Mark.FOREIGN
    if our_mark(node, settings):
        return Mark.UNDONE
    taint = settings.quarantine_taint
    if taint and taint.is_among(node.spec.taints):
        return Mark.FOREIGN
    if node.metadata.labels.get(settings.state_key) in _OUT_LABELS:
        return Mark.UNDONE
    return Mark.OURS if is_new(node, settings) else Mark.NONE


def is_new(node: KubernetesNode, settings: ActorSettings) -> bool:
    """Whether the node has the startup taint."""
    return any(taint.key == settings.startup_taint for taint in node.spec.taints)


def is_our_cordon(node: KubernetesNode, settings: ActorSettings) -> bool:
    """Whether the node is cordoned by us: only by us, or also by others as long as our mark is there.

    The mark has to do where the API server does not remember who has wanted the cordon.
    """
    by_us = {_is_us(writer) for writer in _cordoning(node)}
    is_ours = by_us == {True} if our_mark(node, settings) is None else by_us != {False}
    return node.spec.unschedulable and is_ours


def our_taint(node: KubernetesNode, settings: ActorSettings) -> Taint | None:
    """The taint that we added, if any, by the mark. A node that we cordoned without a mark has the usual one."""
    mark = our_mark(node, settings)
    if mark is not None:
        return mark.taint
    return settings.quarantine_taint if is_our_cordon(node, settings) else None


def is_incomplete(node: KubernetesNode, settings: ActorSettings) -> bool:
    """Whether a node that is ours has lost its mark or the taint that this tells of, or is merely new."""
    mark = our_mark(node, settings)
    return mark is None or (mark.taint is not None and not mark.taint.is_among(node.spec.taints))


def others_word(node: KubernetesNode) -> str:
    """What somebody else did to keep the node out: the program and the time, if the API server knows them."""
    if not node.spec.unschedulable:
        return "tainted by somebody else"
    others = (writer for writer in _cordoning(node) if not _is_us(writer))
    return next((f"cordoned with {it.manager} at {it.time}" for it in others), "cordoned by somebody else")


def _cordoning(node: KubernetesNode) -> list[FieldsOfManager]:
    """Who decided whether the node gets work, as the API server remembers it."""
    return [writer for writer in node.metadata.managed_fields if "f:unschedulable" in writer.fields.spec]


def _is_us(writer: FieldsOfManager) -> bool:
    return (writer.manager, writer.operation) == (FIELD_MANAGER, "Apply")


def has_opted_out(node: KubernetesNode, settings: ActorSettings) -> bool:
    """Whether the node has the opt-out label."""
    key, _, value = settings.opt_out.partition("=")
    return node.metadata.labels.get(key) == value


def _is_asked_for_since(node: KubernetesNode, transition: Transition, settings: ActorSettings) -> bool:
    """Whether a person asked for this transition after somebody undid an earlier one of ours, whose mark is left."""
    mark = our_mark(node, settings)
    return transition.by is not None and (mark is None or mark.transition != transition.id)


def why_left(node: KubernetesNode, transition: Transition, settings: ActorSettings) -> str | None:
    """Why we leave the node as it is, None when we may do what the transition asks for.

    Our mark beside a cordon of somebody else goes when the node is let back: nobody would take it away later.
    """
    if has_opted_out(node, settings):
        return f"has opted out by its label {settings.opt_out}"
    mark = whose_mark(node, settings)
    tidies_up = not transition.is_out and our_mark(node, settings) is not None
    if mark is Mark.FOREIGN and not tidies_up:
        return f"is {others_word(node)}, which is not ours to change"
    if mark is Mark.UNDONE and transition.is_out and not _is_asked_for_since(node, transition, settings):
        return "was cordoned by us, and somebody has uncordoned it since"
    return None
