"""What API servers would say against the examples: the fields of custom resources, and a check against them.

The table is muster's own, written from the public reference of each API. It has only the fields that an example uses.
If an example needs another field, look it up in the reference and add it here. The table has the shape of manifests:

| In the table | In a manifest |
|---|---|
| `"name!"` | a field that is required; others may be left out |
| `str`, `int`, `bool`, `QUANTITY` | a value of this type |
| `{"A", "B"}` | one of these texts |
| `[each]` | a list |
| `{"*": each}` | an object with any keys |
| `POD_TEMPLATE`, `JOB`, `METADATA` | a part of an object of Kubernetes, whose schema decides |

Nothing here knows bounds, patterns or rules between fields. `test_job_sets` reads JobSets by a definition that is not
ours; of the other kinds no package has one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Any

import kubernetes_validate

_KUBERNETES = "1.34"


@dataclass(frozen=True)
class CorePart:
    """A field of an object of Kubernetes."""

    version: str
    kind: str
    field: str


POD_TEMPLATE = CorePart("v1", "PodTemplate", "template")
JOB = CorePart("batch/v1", "Job", "spec")
METADATA = CorePart("v1", "ConfigMap", "metadata")  # of any kind that has no metadata of its own

QUANTITY = int | str
TEXTS = {"*": str}

# https://kubernetes.io/docs/reference/kubernetes-api/
EFFECT = {"NoSchedule", "PreferNoSchedule", "NoExecute"}
TAINT = {"key!": str, "value": str, "effect!": EFFECT}
TOLERATION = {"key": str, "operator": {"Exists", "Equal"}, "effect": EFFECT}
SELECTOR = {"matchLabels": TEXTS}

TRAINING_REPLICAS = {
    "replicas": int,
    "restartPolicy": {"Always", "OnFailure", "Never", "ExitCode"},
    "template": POD_TEMPLATE,
}

SPECS: dict[str, dict[str, dict[str, Any]]] = {
    # https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta2/
    "kueue.x-k8s.io/v1beta2": {
        "AdmissionCheck": {
            "controllerName!": str,
            "parameters": {"apiGroup!": str, "kind!": str, "name!": str},
        },
        "ClusterQueue": {
            "namespaceSelector": SELECTOR,
            "resourceGroups": [
                {
                    "coveredResources!": [str],
                    "flavors!": [{"name!": str, "resources!": [{"name!": str, "nominalQuota!": QUANTITY}]}],
                }
            ],
            "admissionChecksStrategy": {"admissionChecks!": [{"name!": str, "onFlavors": [str]}]},
        },
        "LocalQueue": {"clusterQueue": str},
        "ProvisioningRequestConfig": {
            "provisioningClassName!": str,
            "managedResources": [str],
            "retryStrategy": {"backoffLimitCount": int, "backoffBaseSeconds": int, "backoffMaxSeconds": int},
        },
        "ResourceFlavor": {"nodeLabels": TEXTS, "tolerations": [TOLERATION], "topologyName": str},
        "Topology": {"levels!": [{"nodeLabel!": str}]},
    },
    # https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/
    "jobset.x-k8s.io/v1alpha2": {
        "JobSet": {
            "suspend": bool,
            "ttlSecondsAfterFinished": int,
            "network": {"enableDNSHostnames": bool, "publishNotReadyAddresses": bool},
            "failurePolicy": {"maxRestarts": int},
            "replicatedJobs": [{"name!": str, "replicas": int, "template!": {"spec!": JOB}}],
        },
    },
    # https://www.kubeflow.org/docs/components/trainer/legacy-v1/user-guides/pytorch/
    "kubeflow.org/v1": {
        "PyTorchJob": {
            "runPolicy!": {
                "backoffLimit": int,
                "activeDeadlineSeconds": int,
                "ttlSecondsAfterFinished": int,
                "cleanPodPolicy": {"All", "Running", "None"},
            },
            "pytorchReplicaSpecs!": {"Master": TRAINING_REPLICAS, "Worker": TRAINING_REPLICAS},
        },
    },
    # https://ray-project.github.io/kuberay/reference/api/
    "ray.io/v1": {
        "RayCluster": {
            "suspend": bool,
            "rayVersion": str,
            "headGroupSpec!": {"rayStartParams": TEXTS, "template!": POD_TEMPLATE},
            "workerGroupSpecs": [
                {
                    "groupName!": str,
                    "replicas": int,
                    "minReplicas!": int,
                    "maxReplicas!": int,
                    "rayStartParams": TEXTS,
                    "template!": POD_TEMPLATE,
                }
            ],
        },
    },
    # https://pkg.go.dev/github.com/GoogleCloudPlatform/gke-networking-api/apis/network/v1
    "networking.gke.io/v1": {
        "GKENetworkParamSet": {"vpc": str, "vpcSubnet": str, "deviceMode": {"DPDK-VFIO", "NetDevice", "RDMA"}},
        "Network": {
            "type!": {"L2", "L3", "Device"},
            "parametersRef": {"group!": str, "kind!": str, "name!": str},
        },
    },
    # https://node-readiness-controller.sigs.k8s.io/reference/api-spec.html
    "readiness.node.x-k8s.io/v1alpha1": {
        "NodeReadinessRule": {
            "conditions!": [{"type!": str, "requiredStatus!": {"True", "False", "Unknown"}}],
            "enforcementMode!": {"bootstrap-only", "continuous"},
            "taint!": TAINT,
            "nodeSelector!": SELECTOR,
        },
    },
}
"""By version and kind, the fields of `spec`."""


def problems(item: dict[str, Any]) -> list[str]:
    """What an API server would say against a custom resource in SPECS or an object of Kubernetes."""
    spec = SPECS.get(item["apiVersion"], {}).get(item["kind"])
    if spec is None:
        return [*_of_kubernetes(item)]
    return [*_of_value(item, {"apiVersion!": str, "kind!": str, "metadata!": METADATA, "spec!": spec}, "")]


def _of_kubernetes(item: dict[str, Any], part: str = "$", path: str = "") -> Iterator[str]:
    """The problems of an object, in which `part` stands for what is at `path` in the manifest."""
    try:
        kubernetes_validate.validate(item, _KUBERNETES, strict=True)
    except kubernetes_validate.ValidationError as error:
        yield f"{path}{error.json_path.removeprefix(part)}: {error.message}"
    except kubernetes_validate.SchemaNotFoundError as error:
        yield error.message


def _of_value(value: Any, table: Any, path: str) -> Iterator[str]:
    match table, value:
        case CorePart(), _:
            item = {"apiVersion": table.version, "kind": table.kind, "metadata": {"name": "any"}, table.field: value}
            yield from _of_kubernetes(item, f"$.{table.field}", path)
        case {"*": each}, dict():
            for name, inner in value.items():
                yield from _of_value(inner, each, f"{path}.{name}")
        case dict(), dict():
            yield from _of_fields(value, table, path)
        case [each], list():
            for index, inner in enumerate(value):
                yield from _of_value(inner, each, f"{path}[{index}]")
        case _ if not _fits(value, table):
            yield f"{path}: {value!r} is not {_described(table)}"


def _of_fields(value: dict[str, Any], table: dict[str, Any], path: str) -> Iterator[str]:
    known = {name.removesuffix("!"): each for name, each in table.items()}
    yield from (f"{path}: needs {name}" for name in known if f"{name}!" in table and name not in value)
    for name, inner in value.items():
        if name in known:
            yield from _of_value(inner, known[name], f"{path}.{name}")
        else:
            yield f"{path}: has no {name}"


def _fits(value: Any, table: Any) -> bool:
    """Whether a text, a number or a boolean is allowed. Python counts True as a number; Kubernetes does not."""
    if isinstance(table, set):
        return isinstance(value, str) and value in table
    if isinstance(value, bool):
        return table is bool
    return isinstance(table, type | UnionType) and isinstance(value, table)


def _described(table: Any) -> str:
    match table:
        case set():
            return f"one of {', '.join(sorted(table))}"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return getattr(table, "__name__", str(table))
