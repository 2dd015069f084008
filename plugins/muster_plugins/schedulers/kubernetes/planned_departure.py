"""Whether a node leaves or restarts as planned, or another program repairs it, and why. Pure."""

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

_UPGRADING = (
    *("cordon-required", "wait-for-jobs-required", "pod-deletion-required", "drain-required", "pod-restart-required"),
    *("validation-required", "uncordon-required"),
)
"""The states in which the GPU Operator has the node. Before, an upgrade is due; afterwards, it is done or failed."""

# - the page of Google Cloud above
# - https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-driver-upgrades.html
# - commons/pkg/statemanager of NVIDIA/NVSentinel, which removes the label when the node is well again
_LABELS: dict[str, tuple[tuple[str, ...] | None, str]] = {
    "cloud.google.com/active-node-maintenance": (("ONGOING",), "Google Cloud maintains its host"),
    "nvidia.com/gpu-driver-upgrade-state": (_UPGRADING, "the GPU Operator upgrades its driver"),
    "dgxc.nvidia.com/nvsentinel-state": (None, "NVSentinel has quarantined it"),
}
"""By label, the values that say so, None for any, and what they say."""

_SHUTS_DOWN = "node is shutting down"
"""The kubelet's reason beside Ready while the host shuts down: pkg/kubelet/nodestatus/setters.go of Kubernetes."""


def leaving(node: KubernetesNode) -> str | None:
    """Why the node leaves; None if nothing says so."""
    if node.metadata.deleted_at is not None:
        return "it is being deleted from Kubernetes"
    for taint in node.spec.taints:
        if taint.key in LEAVING_TAINTS:
            return f"{LEAVING_TAINTS[taint.key]} (taint {taint})"
    for label, (values, text) in _LABELS.items():
        value = node.metadata.labels.get(label)
        if value is not None and (values is None or value in values):
            return f"{text} (label {label}={value})"
    ready = node.condition("Ready")
    return "its host is shutting down" if ready and _SHUTS_DOWN in ready.message else None
