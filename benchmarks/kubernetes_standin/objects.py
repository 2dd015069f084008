"""Nodes and pods as kubelet and scheduler make them, of what a GPU node of a cloud has."""

import uuid
from collections.abc import Iterable, Mapping

from benchmarks.kubernetes_standin.resources import Object

_SINCE = "2026-01-01T00:00:00Z"


def node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[Mapping[str, str]] = (),
    unschedulable: bool = False,
    gpus: int = 8,
) -> Object:
    """A Ready node with GPUs, or of another kind when it has none."""
    return {
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "a3-megagpu-8g",
                **(labels or {}),
            },
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true", **(annotations or {})},
        },
        "spec": {
            "providerID": f"gce://muster/us-central1-a/{name}",
            "taints": [dict(taint) for taint in taints],
            "unschedulable": unschedulable,
        },
        "status": _status(name, gpus),
    }


def pod(name: str, node: str, *, namespace: str = "default", gpus: int = 0, phase: str = "Running") -> Object:
    """A pod on a node, with one container that asks for GPUs."""
    asked = {"cpu": "1", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "nodeName": node,
            "schedulerName": "default-scheduler",
            "serviceAccountName": "default",
            "containers": [{"name": "main", "image": "work", "resources": {"requests": asked, "limits": asked}}],
        },
        "status": {"phase": phase},
    }


def _status(name: str, gpus: int) -> Object:
    """What a kubelet says of its node."""
    resources = {"cpu": "192", "memory": "2113462536Ki", "pods": "110"}
    if gpus:
        resources["nvidia.com/gpu"] = str(gpus)
    return {
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
        "allocatable": resources,
        "capacity": resources,
        "conditions": [
            _condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            _condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            _condition("PIDPressure", "False", "KubeletHasSufficientPID"),
            _condition("Ready", "True", "KubeletReady"),
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": str(uuid.uuid4()),
            "containerRuntimeVersion": "containerd://2.0.6",
            "kernelVersion": "6.8.0-1033-gcp",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.34.0",
            "machineID": uuid.uuid4().hex,
            "operatingSystem": "linux",
            "osImage": "Ubuntu 24.04.3 LTS",
            "systemUUID": str(uuid.uuid4()),
        },
    }


def _condition(kind: str, status: str, reason: str) -> Object:
    times = {"lastHeartbeatTime": _SINCE, "lastTransitionTime": _SINCE}
    return {"type": kind, "status": status, **times, "reason": reason, "message": reason}
