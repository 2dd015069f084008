"""The plugin `dmi`: the machine type of a node that belongs to no cloud is the product name in its firmware."""

import re
from collections.abc import Iterator
from pathlib import Path

from muster import Config, MachineType, MachineTypeSource, hookimpl
from muster_plugins.shared import dmi

_FIELD = "product_name"

_NAME = re.compile(r"[ -~]{2,64}")
"""Printable ASCII. Makers use spaces, brackets and slashes, too: `-[7D9RCTOLWW]-`."""

_NO_NAMES = frozenset(
    name.lower()
    for name in (
        # A cloud or a hypervisor, which has machines of many types under this name.
        "Alibaba Cloud ECS",
        "BHYVE",
        "Compute Instance",
        "Droplet",
        "Google Compute Engine",
        "HVM domU",
        "KVM",
        "OpenStack Compute",
        "OpenStack Nova",
        "RHEL",
        "Virtual Machine",
        "VirtualBox",
        # What a maker left as it was.
        "Default string",
        "Empty",
        "N/A",
        "None",
        "Not Applicable",
        "Not Available",
        "Not Specified",
        "O.E.M.",
        "OEM",
        "Super Server",
        "System Name",
        "System Product Name",
        "To be filled by O.E.M.",
        "Type1ProductConfigId",
        "Unknown",
    )
)

_NO_NAME_BEGINS = ("standard pc (", "vmware", "virtual ")


@hookimpl
def muster_machine_types(config: Config) -> Iterator[MachineType]:
    yield from machine_types(dmi.SYSFS)


def machine_types(root: Path) -> Iterator[MachineType]:
    """The product name, unless machines of many types have the same."""
    name = " ".join(dmi.read_field(root, _FIELD).split())
    if _NAME.fullmatch(name) and name.lower() not in _NO_NAMES and not name.lower().startswith(_NO_NAME_BEGINS):
        yield MachineType(name=name, source=MachineTypeSource.DMI, said_by=_FIELD)
