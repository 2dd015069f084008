"""The labels of a machine from what its metadata server says about its place. Pure.

They have the keys that schedulers use for the same facts, so selections and `muster.topology_labels` know them. A value
that is no value of a label is left out: labels of a wrong place are worse than none.
"""

from muster.labels import is_label_value
from muster_plugins.machines.cloud.answers import Answers

ZONE = "topology.kubernetes.io/zone"
HOST = "topology.kubernetes.io/host"

GOOGLE_LEVELS = (
    "cloud.google.com/gce-topology-block",
    "cloud.google.com/gce-topology-subblock",
    "cloud.google.com/gce-topology-host",
)
"""The keys of GKE for the three parts of `physical_host`, from the largest to the host."""


def google_labels(answers: Answers) -> dict[str, str]:
    """From `projects/NUMBER/zones/ZONE`, and from `/BLOCK/SUBBLOCK/HOST`, which only some machine types have."""
    zone, physical_host = answers
    parts = (physical_host or "").strip("/").split("/")
    levels = dict(zip(GOOGLE_LEVELS, parts, strict=True)) if len(parts) == len(GOOGLE_LEVELS) else {}
    return _valid({ZONE: (zone or "").rpartition("/")[2], **levels})


def aws_labels(answers: Answers) -> dict[str, str]:
    """From the availability zone, and the host if it is a dedicated one.

    The network nodes above a machine are not in the metadata, only in the API `DescribeInstanceTopology`.
    """
    zone, host = answers
    return _valid({ZONE: zone or "", HOST: host or ""})


def azure_labels(answers: Answers) -> dict[str, str]:
    """From region and zone, as Azure's Kubernetes writes them: `eastus-1`. Machines without a zone have no label."""
    region, zone = answers
    return _valid({ZONE: f"{region}-{zone}" if region and zone else ""})


def _valid(labels: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if value and is_label_value(value)}
