"""Who cordoned a node, and when muster must leave it alone. Pure.

When we cordon a node, the same request adds an annotation, which marks the cordon as ours. While the annotation exists,
the cordon is ours, unless the API server says that only others hold it: then they have undone ours and set their own.
If somebody removes only the annotation, the cordon is still ours, because the API server knows that we applied it. Any
other cordon belongs to somebody else, and so does a taint equal to the one that we would add. If the cordon is gone but
the annotation or the label remains, somebody has undone our cordon. It stays undone until a person requests a test of
the node.
"""

from pydantic import ValidationError

from muster import Cause, Mark, Transition
from muster.model import Data, Instant, Name, ServiceState
from muster.transition import OUT_OF_SERVICE
from muster_plugins.schedulers.kubernetes.node import FieldsOfManager, KubernetesNode
from muster_plugins.schedulers.kubernetes.settings import KubernetesActorSettings
from muster_plugins.schedulers.kubernetes.taints import Taint
from muster_plugins.schedulers.kubernetes.texts import state_label

FIELD_MANAGER = "muster"
"""The field manager under which the API server records our changes."""

_OUT_LABELS = frozenset(map(state_label, OUT_OF_SERVICE))


class OurMark(Data):
    """The annotation: the transition that cordoned the node, why, since when, and the taint that we added, if any.

    `causes` are the transition's. Annotations of earlier versions have none.
    """

    transition: Name
    state: ServiceState
    reason: str
    since: Instant
    causes: tuple[Cause, ...] = ()
    taint: Taint | None = None


def our_mark(node: KubernetesNode, settings: KubernetesActorSettings) -> OurMark | None:
    """Our mark on the node; None if it is missing or cannot be read."""
    try:
        return OurMark.model_validate_json(node.metadata.annotations.get(settings.mark_key, ""))
    except ValidationError:
        return None


def mark_owner(node: KubernetesNode, settings: KubernetesActorSettings) -> Mark:
    """Who keeps work off the node. The startup taint counts as ours."""
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


def is_new(node: KubernetesNode, settings: KubernetesActorSettings) -> bool:
    """Whether the node has the startup taint."""
    return any(taint.key == settings.startup_taint for taint in node.spec.taints)


def is_our_cordon(node: KubernetesNode, settings: KubernetesActorSettings) -> bool:
    """Whether the cordon of the node is ours: only ours, or also that of others as long as our mark exists.

    The mark decides if the API server does not remember who cordoned the node.
    """
    by_us = {_is_us(writer) for writer in _cordoning(node)}
    is_ours = by_us == {True} if our_mark(node, settings) is None else by_us != {False}
    return node.spec.unschedulable and is_ours


def our_taint(node: KubernetesNode, settings: KubernetesActorSettings) -> Taint | None:
    """The taint that we added, if any, from the mark. A node that we cordoned without a mark has the usual one."""
    mark = our_mark(node, settings)
    if mark is not None:
        return mark.taint
    return settings.quarantine_taint if is_our_cordon(node, settings) else None


def is_incomplete(node: KubernetesNode, settings: KubernetesActorSettings) -> bool:
    """Whether a node that is ours lacks its mark or the taint in the mark, or only has the startup taint."""
    mark = our_mark(node, settings)
    return mark is None or (mark.taint is not None and not mark.taint.is_among(node.spec.taints))


def describe_others_mark(node: KubernetesNode) -> str:
    """How somebody else keeps work off the node: the program and the time, if the API server knows them."""
    if not node.spec.unschedulable:
        return "tainted by somebody else"
    others = (writer for writer in _cordoning(node) if not _is_us(writer))
    return next((f"cordoned with {writer.manager} at {writer.time}" for writer in others), "cordoned by somebody else")


def _cordoning(node: KubernetesNode) -> list[FieldsOfManager]:
    """The writer who last decided whether the node gets work, as the API server remembers it."""
    return [writer for writer in node.metadata.managed_fields if "f:unschedulable" in writer.fields.spec]


def _is_us(writer: FieldsOfManager) -> bool:
    return (writer.manager, writer.operation) == (FIELD_MANAGER, "Apply")


def has_opted_out(node: KubernetesNode, settings: KubernetesActorSettings) -> bool:
    """Whether the node has the opt-out label."""
    key, _, value = settings.opt_out.partition("=")
    return node.metadata.labels.get(key) == value


def _is_asked_for_since(node: KubernetesNode, transition: Transition, settings: KubernetesActorSettings) -> bool:
    """Whether a person requested this transition after somebody undid our earlier one, whose mark is left."""
    mark = our_mark(node, settings)
    return transition.by is not None and (mark is None or mark.transition != transition.id)


def why_left(node: KubernetesNode, transition: Transition, settings: KubernetesActorSettings) -> str | None:
    """Why muster must leave the node as it is; None if it may carry out the transition.

    When a node returns to service, our mark is removed even if others still cordon it: nobody would remove it later.
    """
    if has_opted_out(node, settings):
        return f"has opted out by its label {settings.opt_out}"
    mark = mark_owner(node, settings)
    tidies_up = not transition.is_out and our_mark(node, settings) is not None
    if mark is Mark.FOREIGN and not tidies_up:
        return f"is {describe_others_mark(node)}, which is not ours to change"
    if mark is Mark.UNDONE and transition.is_out and not _is_asked_for_since(node, transition, settings):
        return "was cordoned by us, and somebody has uncordoned it since"
    return None
