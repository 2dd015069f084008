"""Every call to the API with the one permission that it needs. The manifests grant exactly this list."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A method on a path, and the verb on a resource of a group that RBAC must allow for it.

    `namespace` is the only namespace that needs the permission; without one the whole cluster needs it.
    """

    method: str
    path: str
    verb: str
    resource: str
    group: str = ""
    namespace: str | None = None

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f" in the namespace {self.namespace}" if self.namespace else "")


LIST_PODS = Call(method="GET", path="/api/v1/pods", verb="list", resource="pods")
LIST_NODES = Call(method="GET", path="/api/v1/nodes", verb="list", resource="nodes")
READ_NODE = Call(method="GET", path="/api/v1/nodes/{name}", verb="get", resource="nodes")
PATCH_NODE = Call(method="PATCH", path="/api/v1/nodes/{name}", verb="patch", resource="nodes")
PATCH_STATUS = Call(method="PATCH", path="/api/v1/nodes/{name}/status", verb="patch", resource="nodes/status")

CREATE_EVENT = Call(
    method="POST",
    path="/api/v1/namespaces/default/events",
    verb="create",
    resource="events",
    namespace="default",
)
"""The namespace of events about objects without a namespace, such as nodes."""

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
_OF_LEASES = {"resource": "leases", "group": "coordination.k8s.io", "namespace": "muster"}

READ_LEASE = Call(method="GET", path=f"{_LEASES}/{{name}}", verb="get", **_OF_LEASES)
CREATE_LEASE = Call(method="POST", path=_LEASES, verb="create", **_OF_LEASES)
PATCH_LEASE = Call(method="PATCH", path=f"{_LEASES}/{{name}}", verb="patch", **_OF_LEASES)

ASK_RIGHTS = Call(
    method="POST",
    path="/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    verb="create",
    resource="selfsubjectaccessreviews",
    group="authorization.k8s.io",
)
"""Every user may call this: Kubernetes grants it with system:basic-user."""

REVIEW_TOKEN = Call(
    method="POST",
    path="/apis/authentication.k8s.io/v1/tokenreviews",
    verb="create",
    resource="tokenreviews",
    group="authentication.k8s.io",
)

OF_THE_COORDINATOR = (READ_NODE, LIST_NODES, PATCH_NODE, PATCH_STATUS, CREATE_EVENT)
OF_ONE_OF_SEVERAL_COORDINATORS = (READ_LEASE, CREATE_LEASE, PATCH_LEASE)
OF_AN_AGENT = (LIST_PODS, READ_NODE)
OF_AN_AGENT_THAT_RESERVES = (READ_NODE, PATCH_NODE)
OF_THE_SIGNER = (REVIEW_TOKEN,)
