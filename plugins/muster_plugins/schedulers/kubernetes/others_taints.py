"""Which taints of others keep work off a node that should have some. Pure.

Not every taint does. Clouds taint all nodes with GPUs so that nothing else runs there, and sites taint pools of nodes
for a team: the work that is meant for such nodes tolerates them. What more than half of the nodes with GPUs have is
therefore ordinary, and so is what the settings name. Example: of six nodes all have `nvidia.com/gpu=present:NoSchedule`
and one has `example.com/unhealthy:NoSchedule` besides: that one is kept off.
"""

from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase

from muster_plugins.schedulers.kubernetes.node import Node
from muster_plugins.schedulers.kubernetes.planned_departure import LEAVING_TAINTS
from muster_plugins.schedulers.kubernetes.reservation import KEY as TESTING
from muster_plugins.schedulers.kubernetes.settings import ActorSettings
from muster_plugins.schedulers.kubernetes.taints import Taint

_KEEPS_OFF = frozenset({"NoSchedule", "NoExecute"})

_OF_A_CORDON = "node.kubernetes.io/unschedulable"
"""Kubernetes adds it to what is cordoned, and a cordon counts by itself."""

Kind = tuple[str, str]
"""Key and effect of a taint; its value is the site's business."""


def ordinary_kinds(nodes: Iterable[Node], gpu_resources: tuple[str, ...]) -> frozenset[Kind]:
    """The taints that more than half of the nodes with GPUs have; of all nodes, where none has any."""
    everybody = list(nodes)
    counted = [node for node in everybody if _has_gpus(node, gpu_resources)] or everybody
    times = Counter(kind for node in counted for kind in {_kind(taint) for taint in node.spec.taints})
    return frozenset(kind for kind, number in times.items() if 2 * number > len(counted))


def keeps_off(node: Node, ordinary: frozenset[Kind], settings: ActorSettings) -> str | None:
    """The taints by which somebody keeps work off the node, for people; None when there are none.

    Not among them: ours, those that say that the node leaves as planned, and ordinary ones.
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


def _kind(taint: Taint) -> Kind:
    return taint.key, taint.effect


def _has_gpus(node: Node, gpu_resources: tuple[str, ...]) -> bool:
    """Whether the node has ever announced GPUs: the number is 0 while their driver does not work."""
    return any(fnmatchcase(name, pattern) for name in node.status.capacity for pattern in gpu_resources)
