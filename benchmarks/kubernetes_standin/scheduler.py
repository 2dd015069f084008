"""Gives pods to nodes, as kube-scheduler does: by taints, cordons, labels, GPUs and required anti-affinity of hosts.

It knows nothing else: no priorities, no preemption, no other resources. Of nodes that fit, the first by name gets it.
"""

import asyncio
from collections.abc import Iterator

from benchmarks.kubernetes_standin.ownership import Writer
from benchmarks.kubernetes_standin.resources import NODES, PODS, Object
from benchmarks.kubernetes_standin.store import Change, Store

GPU = "nvidia.com/gpu"
HOST = "kubernetes.io/hostname"

_SCHEDULER = Writer("kube-scheduler", "Update")


class Scheduler:
    """Watches the nodes and pods of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        store.watchers.add(self._seen)

    def end(self) -> None:
        """Binds no further pod."""
        self._store.watchers.discard(self._seen)

    def _seen(self, change: Change) -> None:
        if change.resource in (NODES, PODS):
            asyncio.get_running_loop().call_soon(self._bind)

    def _bind(self) -> None:
        """Gives the first pod that waits and fits somewhere its node; that is a change, so the next one follows."""
        nodes = [stored.item for _, stored in self._store.all(NODES)]
        pods = [stored.item for _, stored in self._store.all(PODS)]
        for pod in (each for each in pods if not each["spec"].get("nodeName")):
            node = next((each for each in nodes if fits(pod, each, _on(each, pods))), None)
            if node is not None:
                self._give(pod, node["metadata"]["name"])
                return

    def _give(self, pod: Object, node: str) -> None:
        metadata, spec = pod["metadata"], pod["spec"] | {"nodeName": node}
        name, namespace = metadata["name"], metadata["namespace"]
        self._store.patch(PODS, namespace, name, _SCHEDULER, lambda old: old | {"spec": spec})


def fits(pod: Object, node: Object, others: list[Object]) -> bool:
    """Whether a pod may run on a node, beside the pods that are there."""
    spec, labels = pod["spec"], node["metadata"].get("labels", {})
    return (
        not node["spec"].get("unschedulable")
        and spec.get("nodeSelector", {}).items() <= labels.items()
        and all(_tolerates(spec, taint) for taint in node["spec"].get("taints", []))
        and _gpus(pod) + sum(map(_gpus, others)) <= int(node["status"]["allocatable"].get(GPU, 0))
        and not any(
            rule.items() <= other["metadata"].get("labels", {}).items() for rule in _shuns(pod) for other in others
        )
    )


def _on(node: Object, pods: list[Object]) -> list[Object]:
    return [pod for pod in pods if pod["spec"].get("nodeName") == node["metadata"]["name"]]


def _tolerates(spec: Object, taint: Object) -> bool:
    if taint["effect"] == "PreferNoSchedule":
        return True
    return any(
        toleration.get("key", taint["key"]) == taint["key"]
        and toleration.get("effect", taint["effect"]) == taint["effect"]
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""))
        for toleration in spec.get("tolerations", [])
    )


def _gpus(pod: Object) -> int:
    return sum(int(each.get("resources", {}).get("limits", {}).get(GPU, 0)) for each in pod["spec"]["containers"])


def _shuns(pod: Object) -> Iterator[dict[str, str]]:
    """The labels of pods with which it never shares a node."""
    rules = pod["spec"].get("affinity", {}).get("podAntiAffinity", {})
    for rule in rules.get("requiredDuringSchedulingIgnoredDuringExecution", []):
        assert rule["topologyKey"] == HOST, "teach the scheduler other places"
        yield rule["labelSelector"]["matchLabels"]
