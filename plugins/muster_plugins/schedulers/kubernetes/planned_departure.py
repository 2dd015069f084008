"""Whether a node leaves or restarts as planned, and why. Pure."""

from muster_plugins.schedulers.kubernetes.node import KubernetesNode

# - cluster-autoscaler/utils/taints/taints.go of kubernetes/autoscaler. A node that it merely thinks of removing
#   (DeletionCandidateOfClusterAutoscaler) may well stay, and get work.
# - pkg/apis/v1/taints.go of kubernetes-sigs/karpenter; karpenter.sh/disruption is that of its versions before 1.0
# - api/well_known_taints.go of k8s.io/cloud-provider
# - https://cloud.google.com/kubernetes-engine/docs/concepts/handle-disruption-gpu-tpu
# - TAINT_NODE in the README of aws/aws-node-termination-handler
LEAVING_TAINTS = {
    "ToBeDeletedByClusterAutoscaler": "the cluster autoscaler removes it",
    "karpenter.sh/disrupted": "Karpenter removes it",
    "karpenter.sh/disruption": "Karpenter removes it",
    "node.cloudprovider.kubernetes.io/shutdown": "its machine is being shut down",
    "cloud.google.com/impending-node-termination": "Google Cloud ends or restarts its machine",
    "aws-node-termination-handler/spot-itn": "AWS reclaims its spot machine",
    "aws-node-termination-handler/scheduled-maintenance": "AWS plans maintenance of its machine",
    "aws-node-termination-handler/asg-lifecycle-termination": "its auto scaling group removes it",
}
"""Why a node with this taint leaves, by the key of the taint."""

# The page of Google Cloud above.
_LABELS = {("cloud.google.com/active-node-maintenance", "ONGOING"): "Google Cloud maintains its host"}

_SHUTS_DOWN = "node is shutting down"
"""The kubelet's reason beside Ready while the host shuts down: pkg/kubelet/nodestatus/setters.go of Kubernetes."""


def leaving(node: KubernetesNode) -> str | None:
    """Why the node leaves; None if nothing says so."""
    if node.metadata.deleted_at is not None:
        return "it is being deleted from Kubernetes"
    for taint in node.spec.taints:
        if taint.key in LEAVING_TAINTS:
            return f"{LEAVING_TAINTS[taint.key]} (taint {taint})"
    for label, text in _LABELS.items():
        if label in node.metadata.labels.items():
            return f"{text} (label {'='.join(label)})"
    ready = node.condition("Ready")
    return "its host is shutting down" if ready and _SHUTS_DOWN in ready.message else None
