"""Finds taints of others that keep normal work off a node. Pure.

Not every taint does that. Clouds taint all nodes with GPUs so that nothing else runs there, and sites taint pools of
nodes for a team. The work for such nodes tolerates these taints. Therefore a taint is ordinary if more than half of the
nodes with GPUs have it, or if the settings name it.

Example: six nodes have `nvidia.com/gpu=present:NoSchedule`, and one of them also has
`example.com/unhealthy:NoSchedule`. Only the second taint keeps work off its node.
"""

from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase

from muster_plugins.schedulers.kubernetes.node import KubernetesNode
from muster_plugins.schedulers.kubernetes.planned_departure import LEAVING_TAINTS
from muster_plugins.schedulers.kubernetes.reservation import KEY as TESTING
from muster_plugins.schedulers.kubernetes.settings import KubernetesActorSettings
from muster_plugins.schedulers.kubernetes.taints import Taint

_KEEPS_OFF = frozenset({"NoSchedule", "NoExecute"})

_OF_A_CORDON = "node.kubernetes.io/unschedulable"
"""Kubernetes adds this taint to cordoned nodes. The cordon counts by itself."""

TaintKind = tuple[str, str]
"""Key and effect of a taint; sites choose its value."""


def ordinary_kinds(nodes: Iterable[KubernetesNode], gpu_resources: tuple[str, ...]) -> frozenset[TaintKind]:
    """The taints that more than half of the nodes with GPUs have, or of all nodes if none has GPUs."""
    everybody = list(nodes)
    counted = [node for node in everybody if _has_gpus(node, gpu_resources)] or everybody
    times = Counter(kind for node in counted for kind in {_kind(taint) for taint in node.spec.taints})
    return frozenset(kind for kind, number in times.items() if 2 * number > len(counted))


def keeps_off(node: KubernetesNode, ordinary: frozenset[TaintKind], settings: KubernetesActorSettings) -> str | None:
    """The taints of others that keep work off the node, as text; None if there are none.

    Ours, ordinary ones, and those of a planned departure do not count.
    """
    passed_over = {TESTING, _OF_A_CORDON, settings.startup_taint, *LEAVING_TAINTS, *settings.ordinary_taints}
    ours = [settings.quarantine_taint] if settings.quarantine_taint else []
    found = [
        str(taint)
        for taint in node.spec.taints
        if taint.effect in _KEEPS_OFF
        and taint.key not in passed_over
        and _kind(taint) not in ordinary
        and not taint.is_among(ours)
    ]
    return f"taint {', '.join(found)}" if found else None


def _kind(taint: Taint) -> TaintKind:
    return taint.key, taint.effect


def _has_gpus(node: KubernetesNode, gpu_resources: tuple[str, ...]) -> bool:
    """Whether the node has ever announced GPUs: the number is 0 while their driver does not work."""
    return any(fnmatchcase(name, pattern) for name in node.status.capacity for pattern in gpu_resources)
