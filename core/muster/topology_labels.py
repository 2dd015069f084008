"""The labels that hold the position of a node."""

from collections.abc import Mapping

from pydantic import Field

from muster.model import Topology
from muster.section import Section

# First our own and the generic ones, which sites set by hand. Then those of
# - GKE: https://cloud.google.com/ai-hypercomputer/docs/workloads/schedule-gke-workloads-tas. A sub-block, whose nodes
#   are nearer to each other than those of its block, is taken for a rack.
# - NVIDIA Topograph: https://docs.nvidia.com/topograph/reference/node-labels-and-annotations, of version 1 and of those
#   before. The switch next to a node is its leaf, and the one above that its block; the core has no level of ours. An
#   accelerator domain is what NVLink joins: where it leaves the host at all, a rack.
KNOWN = {
    "block": (
        "muster/block",
        "topology.kubernetes.io/block",
        "cloud.google.com/gce-topology-block",
        "fabric.topograph.run/tier-1",
        "network.topology.nvidia.com/spine",
    ),
    "rack": (
        "muster/rack",
        "topology.kubernetes.io/rack",
        "cloud.google.com/gce-topology-subblock",
        "accelerator.topograph.run/domain",
        "network.topology.nvidia.com/accelerator",
    ),
    "leaf": (
        "muster/leaf",
        "topology.kubernetes.io/leaf",
        "fabric.topograph.run/tier-0",
        "network.topology.nvidia.com/leaf",
    ),
    "host": (
        "muster/host",
        "topology.kubernetes.io/host",
        "cloud.google.com/gce-topology-host",
    ),
}
"""The keys of labels by level. The first key that a node has gives its position."""


class TopologyLabels(Section):
    """The operator's labels for the position of a node, in place of those that muster knows."""

    block: str | None = Field(None, description="Key of the label that holds the block, for example example.com/pod")
    rack: str | None = Field(None, description="Key of the label that holds the rack")
    leaf: str | None = Field(None, description="Key of the label that holds the leaf switch")
    host: str | None = Field(None, description="Key of the label that holds the physical host")


def topology_of(labels: Mapping[str, str], own: TopologyLabels) -> Topology:
    """The position of a node from its labels. If the operator names an `own` key for a level, only that key counts."""
    keys = {level: known if (key := getattr(own, level)) is None else (key,) for level, known in KNOWN.items()}
    said = {level: [labels[key] for key in keys[level] if labels.get(key)] for level in keys}
    return Topology(**{level: places[0] for level, places in said.items() if places})
