"""The changes on a node for a transition, given its state at the API server. Pure.

Labels, annotations and the cordon are applied with our own field manager. If we leave out a field that we applied
before, the API server removes it, unless others want it, too. Taints are one value to the API server, and applying them
would take over all of them. Therefore we change that value only if nobody has changed it since.

When a node is drained, the mark is written before the taint; when it returns, the mark is removed after the taint.
After an interruption between the two, the cordon is still known to be ours, and so is the taint that the mark names. A
taint of earlier settings is removed before the mark changes.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from muster import Transition
from muster.model import ServiceState
from muster_plugins.schedulers.kubernetes.calls import PATCH_NODE, Call
from muster_plugins.schedulers.kubernetes.marks import OurMark, is_our_cordon, our_mark, our_taint
from muster_plugins.schedulers.kubernetes.node import KubernetesNode
from muster_plugins.schedulers.kubernetes.settings import KubernetesActorSettings
from muster_plugins.schedulers.kubernetes.taints import Taint, replaced, taints_patch
from muster_plugins.schedulers.kubernetes.texts import state_label


class Form(StrEnum):
    """The content types of patches."""

    APPLY = "application/apply-patch+yaml"
    MERGE = "application/merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A change of a node: the content of its metadata and of the other fields. `says` describes it to people.

    A `guarded` change was decided from the node's state and must not be applied to a node that has changed since.
    """

    call: Call
    form: Form
    says: str
    guarded: bool = True
    metadata: dict[str, Any] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)


def patches(node: KubernetesNode, transition: Transition, settings: KubernetesActorSettings) -> list[Patch]:
    """The patches that bring the node to the state of the transition, in order."""
    before, old = node.spec.taints, our_taint(node, settings)
    if transition.is_out:
        ours = settings.quarantine_taint
        after = replaced(before, old, ours)
        kept = [taint for taint in before if taint.is_among(after)]
        return [*_retaint(before, kept), *_mark(node, transition, settings, ours), *_retaint(kept, after)]
    after = [taint for taint in replaced(before, old, None) if taint.key != settings.startup_taint]
    return [*_retaint(before, after), *_unmark(node, transition, settings)]


def _retaint(before: list[Taint], after: list[Taint]) -> list[Patch]:
    if before == after:
        return []
    added = [f"taint {taint}" for taint in after if not taint.is_among(before)]
    removed = [f"no taint {taint}" for taint in before if not taint.is_among(after)]
    says = ", ".join([*added, *removed])
    return [Patch(call=PATCH_NODE, form=Form.MERGE, says=says, rest=taints_patch(after))]


def _mark(
    node: KubernetesNode, transition: Transition, settings: KubernetesActorSettings, taint: Taint | None
) -> list[Patch]:
    mark = OurMark(
        transition=transition.id,
        state=transition.after,
        reason=transition.reason,
        since=transition.at,
        causes=transition.causes,
        taint=taint,
    )
    annotations = {settings.mark_key: mark.model_dump_json(exclude_defaults=True)}
    if settings.drain_hint is not None and transition.after is ServiceState.CORDONED:
        key, _, value = settings.drain_hint.partition("=")
        annotations[key] = value
    if node.spec.unschedulable and annotations.items() <= node.metadata.annotations.items():
        return []
    label, state = settings.state_key, state_label(transition.after)
    says = f"spec.unschedulable=true, label {label}={state}, annotation {', '.join(annotations)}"
    metadata = {"labels": {label: state}, "annotations": annotations}
    rest = {"spec": {"unschedulable": True}}
    return [Patch(call=PATCH_NODE, form=Form.APPLY, says=says, metadata=metadata, rest=rest)]


def _unmark(node: KubernetesNode, transition: Transition, settings: KubernetesActorSettings) -> list[Patch]:
    label, state = settings.state_key, state_label(transition.after)
    is_ours = our_mark(node, settings) is not None or is_our_cordon(node, settings)
    if not is_ours and node.metadata.labels.get(label) == state:
        return []
    undone = f"no spec.unschedulable, no annotation {settings.mark_key}, " if is_ours else ""
    says = f"{undone}label {label}={state}"
    return [Patch(call=PATCH_NODE, form=Form.APPLY, says=says, metadata={"labels": {label: state}})]
