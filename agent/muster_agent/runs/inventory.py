"""Completes the inventory that the plugins found with labels, software and the place from the settings."""

import platform
from collections.abc import Mapping

import muster
from muster.config import Settings
from muster.model import Inventory, Topology
from muster.topology_labels import topology_of


def completed(found: Inventory, settings: Settings, labels: Mapping[str, str]) -> Inventory:
    """Adds the node's labels and the host's software to an inventory.

    For the topology, the operator's settings win over the labels, and the labels over what the plugins found.
    """
    labels = labels or found.labels
    said = Topology(**{level: getattr(settings.agent, level) for level in Topology.model_fields})
    software = {"muster": muster.__version__, "python": platform.python_version(), "kernel": platform.release()}
    return found.model_copy(
        update={
            "machine_type": settings.agent.machine_type or found.machine_type,
            "topology": said.or_else(topology_of(labels, settings.topology_labels)).or_else(found.topology),
            "labels": dict(labels),
            "software": {**software, **found.software},
        }
    )
