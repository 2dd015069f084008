"""Which labels say where a node stands."""

from pathlib import Path

import pytest
from tests.cases import cases

from muster.model import Topology
from muster.topology_labels import KNOWN, TopologyLabels, topology_of

GKE = {
    "kubernetes.io/hostname": "gke-a3-1",
    "cloud.google.com/gce-topology-block": "b7",
    "cloud.google.com/gce-topology-subblock": "s3",
    "cloud.google.com/gce-topology-host": "h9",
}


@cases(
    ("labels", "topology"),
    [
        ({}, Topology()),
        (GKE, Topology(block="b7", rack="s3", host="h9")),
        ({**GKE, "muster/rack": "mine"}, Topology(block="b7", rack="mine", host="h9")),
        (
            {f"topology.kubernetes.io/{level}": level for level in KNOWN},
            Topology(block="block", rack="rack", leaf="leaf", host="host"),
        ),
        (
            {
                "fabric.topograph.run/tier-0": "s1",
                "fabric.topograph.run/tier-1": "s2",
                "fabric.topograph.run/tier-2": "s3",
            },
            Topology(leaf="s1", block="s2"),
        ),
        (
            {f"network.topology.nvidia.com/{tier}": tier for tier in ("accelerator", "leaf", "spine", "core")},
            Topology(block="spine", rack="accelerator", leaf="leaf"),
        ),
        ({"topology.kubernetes.io/zone": "z", "muster/rack": ""}, Topology()),
    ],
    ids=["none", "GKE", "ours go first", "generic", "Topograph", "Topograph before version 1", "nothing said"],
)
def test_known_labels_place_a_node(labels, topology):
    """The labels count, whoever has set them."""
    assert topology_of(labels, TopologyLabels()) == topology


def test_an_operators_own_label_stands_for_its_level():
    """The known labels of that level no longer count, even if a node lacks the operator's; other levels keep theirs."""
    own = TopologyLabels(rack="example.com/rack")
    assert topology_of({**GKE, "example.com/rack": "r1"}, own) == Topology(block="b7", rack="r1", host="h9")
    assert topology_of(GKE, own) == Topology(block="b7", host="h9")


@pytest.mark.parametrize("level", KNOWN)
def test_the_guide_names_the_labels(level):
    """In the order in which they count."""
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "topology.md"
    assert f"| {level} | {', '.join(f'`{key}`' for key in KNOWN[level])} |\n" in guide.read_text(encoding="utf-8")
