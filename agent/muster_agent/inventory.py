"""What the agent adds to what the plugins found out about a node."""

import platform

import muster
from muster.config import AgentSettings
from muster.model import Inventory, Topology


def completed(found: Inventory, settings: AgentSettings) -> Inventory:
    """The inventory with what the operator set, which goes before what was found, and with the host's software."""
    said = {level: getattr(settings, level) for level in Topology.model_fields}
    topology = found.topology.model_copy(update={level: name for level, name in said.items() if name is not None})
    software = {"muster": muster.__version__, "python": platform.python_version(), "kernel": platform.release()}
    return found.model_copy(
        update={
            "machine_type": settings.machine_type or found.machine_type,
            "topology": topology,
            "software": {**software, **found.software},
        }
    )
