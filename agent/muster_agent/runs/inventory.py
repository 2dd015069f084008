"""What the agent adds to what the plugins found out about a node."""

import platform
from collections.abc import Mapping

import muster
from muster.config import Settings
from muster.model import Inventory, Topology
from muster.topology_labels import topology_of


def completed(found: Inventory, settings: Settings, labels: Mapping[str, str]) -> Inventory:
    """The inventory with the node's labels, if there are any, and the host's software.

    Of where the node stands, what the operator set goes before what its labels say, and that before what was found.
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
