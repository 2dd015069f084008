"""Completes the inventory that the plugins found with labels, software, the place, and what the settings say."""

import platform
from collections.abc import Mapping

import muster
from muster.config import Settings
from muster.machine_type import by_precedence, labelled_machine_type
from muster.model import Inventory, MachineType, MachineTypeSource, Topology
from muster.topology_labels import topology_of


def completed(
    found: Inventory, settings: Settings, labels: Mapping[str, str], known: tuple[MachineType, ...] = ()
) -> Inventory:
    """Adds the node's labels and the host's software to an inventory.

    For topology and machine type, the operator's settings win over the labels, and these over what the plugins found.
    `known` are machine types from sources that may not answer any more.
    """
    labels = {**found.labels, **labels}
    said = Topology(**{level: getattr(settings.agent, level) for level in Topology.model_fields})
    software = {"muster": muster.__version__, "python": platform.python_version(), "kernel": platform.release()}
    types = by_precedence([*_from_settings(settings), *_from_labels(labels), *found.machine_types, *known])
    return found.model_copy(
        update={
            "machine_type": types[0].name if types else found.machine_type,
            "machine_types": types,
            "topology": said.or_else(topology_of(labels, settings.topology_labels)).or_else(found.topology),
            "labels": labels,
            "software": {**software, **found.software},
        }
    )


def _from_settings(settings: Settings) -> list[MachineType]:
    name = settings.agent.machine_type
    if not name:
        return []
    return [MachineType(name=name, source=MachineTypeSource.SETTING, said_by="agent.machine_type")]


def _from_labels(labels: Mapping[str, str]) -> list[MachineType]:
    labelled = labelled_machine_type(labels)
    return [] if labelled is None else [labelled]
