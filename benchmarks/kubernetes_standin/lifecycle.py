"""The one controller that cannot be left out: it taints what is unschedulable, and so writes the taints of cordons.

kube-controller-manager does it a moment after a cordon, with a patch of all taints, which then are its own. Whoever
thinks that a node's taints are theirs alone finds out here.
"""

import asyncio

from benchmarks.kubernetes_standin.ownership import Writer
from benchmarks.kubernetes_standin.resources import NODES, Object
from benchmarks.kubernetes_standin.store import Change, Store

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

_CONTROLLER = Writer("kube-controller-manager", "Update")


class NodeLifecycle:
    """Watches the nodes of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        store.watchers.add(self._seen)

    def _seen(self, change: Change) -> None:
        if change.resource is NODES and change.after and _is_due(change.after.item):
            asyncio.get_running_loop().call_soon(self._taint, change.after.item["metadata"]["name"])

    def _taint(self, name: str) -> None:
        if self._store.has(NODES, "", name) and _is_due(self._store.get(NODES, "", name).item):
            self._store.patch(NODES, "", name, _CONTROLLER, _settled)


def _is_due(node: Object) -> bool:
    return node["spec"].get("unschedulable", False) is not any(_is_ours(taint) for taint in _taints(node))


def _settled(node: Object) -> Object:
    others = [taint for taint in _taints(node) if not _is_ours(taint)]
    ours = [{"key": UNSCHEDULABLE, "effect": "NoSchedule"}] if node["spec"].get("unschedulable") else []
    return node | {"spec": node["spec"] | {"taints": [*others, *ours]}}


def _taints(node: Object) -> list[Object]:
    taints: list[Object] = node["spec"].get("taints", [])
    return taints


def _is_ours(taint: Object) -> bool:
    return bool(taint["key"] == UNSCHEDULABLE and taint["effect"] == "NoSchedule")
