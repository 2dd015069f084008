"""The resources that the stand-in serves, and which of their lists are merged by a key."""

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""A Kubernetes object, as JSON has it."""


@dataclass(frozen=True)
class Resource:
    """What a path of the API names.

    `sections` are never missing in an object. `fields` are those that field selectors know, besides name and namespace.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    sections: tuple[str, ...] = ()
    fields: frozenset[str] = frozenset()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The resource as errors name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


NODES = Resource(
    "", "v1", "nodes", "Node", namespaced=False, sections=("spec", "status"), fields=frozenset({"spec.unschedulable"})
)
PODS = Resource(
    "",
    "v1",
    "pods",
    "Pod",
    namespaced=True,
    sections=("spec", "status"),
    fields=frozenset({"spec.nodeName", "spec.schedulerName", "spec.serviceAccountName", "status.phase"}),
)
EVENTS = Resource(
    "",
    "v1",
    "events",
    "Event",
    namespaced=True,
    fields=frozenset({f"involvedObject.{name}" for name in ("kind", "name", "namespace", "uid")} | {"reason", "type"}),
)
NEW_EVENTS = Resource(
    "events.k8s.io",
    "v1",
    "events",
    "Event",
    namespaced=True,
    fields=frozenset({f"regarding.{name}" for name in ("kind", "name", "namespace", "uid")} | {"reason", "type"}),
)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True, sections=("spec",))
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)

RESOURCES = {
    (resource.group, resource.version, resource.plural): resource
    for resource in (NODES, PODS, EVENTS, NEW_EVENTS, LEASES, ACCESS_REVIEWS, TOKEN_REVIEWS)
}

MERGE_KEYS: dict[tuple[str, ...], str] = {
    ("metadata", "ownerReferences"): "uid",
    ("status", "addresses"): "type",
    ("status", "conditions"): "type",
}
"""Lists whose items are merged by a field of theirs; any other is one value, as `spec.taints` is.

That is `x-kubernetes-list-type: map` with one `x-kubernetes-list-map-keys` in the OpenAPI schema of Kubernetes. Lists
of type `set`, such as finalizers, are one value here.
"""
