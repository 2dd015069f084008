"""The idle probe `kubernetes`: whether a pod on this node has GPUs.

A pod has the GPUs that its containers request from the moment that it is bound to the node until it has succeeded or
failed, also while it waits for its images or is being deleted. A pod with a resource claim counts, because the claim
itself is another object. The idle probe of NVML sees GPUs that a pod uses without requesting them.

For a node that does not exist, the API server returns an empty list of pods, as for an idle node. But a node that
serves GPUs always has pods, at least the one in which the agent runs.
"""

from fnmatch import fnmatchcase
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from muster import Idleness
from muster_plugins.schedulers.kubernetes.api import ApiServer, Unanswered
from muster_plugins.schedulers.kubernetes.calls import LIST_PODS


class _Resources(BaseModel):
    requests: dict[str, str] = {}

    def has_any(self, patterns: tuple[str, ...]) -> bool:
        return any(
            amount != "0" and any(fnmatchcase(name, pattern) for pattern in patterns)
            for name, amount in self.requests.items()
        )


class _Container(BaseModel):
    resources: _Resources = _Resources()


class _Spec(BaseModel):
    containers: list[_Container]
    init_containers: list[_Container] = Field([], alias="initContainers")
    resource_claims: list[Any] = Field([], alias="resourceClaims")


class _Metadata(BaseModel):
    uid: str


class _Pod(BaseModel):
    metadata: _Metadata
    spec: _Spec

    def has_any(self, patterns: tuple[str, ...]) -> bool:
        containers = (*self.spec.containers, *self.spec.init_containers)
        asks = any(container.resources.has_any(patterns) for container in containers)
        return asks or bool(self.spec.resource_claims)


class _PodList(BaseModel):
    """The fields of a pod that the probe reads."""

    items: list[_Pod]


def probe(
    server: ApiServer, node: str, gpu_resources: tuple[str, ...], own_pod: str | None, _own: frozenset[int]
) -> Idleness:
    """BUSY while a pod other than our own requests one of the resources; Unanswered if the server does not answer."""
    pods = {pod.metadata.uid: pod for pod in _pods_on(node, server)}
    if not pods or (own_pod is not None and own_pod not in pods):
        missing = f"without pod {own_pod}" if pods else "no pods at all"
        raise Unanswered(f"{missing} on node {node}: is this its name in Kubernetes?")
    others = (pod for uid, pod in pods.items() if uid != own_pod)
    return Idleness.BUSY if any(pod.has_any(gpu_resources) for pod in others) else Idleness.IDLE


def _pods_on(node: str, server: ApiServer) -> list[_Pod]:
    """The pods on the node that have not ended."""
    chosen = f"spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed"
    answer = server.get(LIST_PODS.path, {"fieldSelector": chosen})
    try:
        return _PodList.model_validate_json(answer).items
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the answer"
        raise Unanswered(f"not a list of pods: {where}: {first['msg']}") from None
