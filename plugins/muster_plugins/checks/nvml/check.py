"""The check `nvml`: what NVIDIA's driver reports about every device of the node, several times a minute.

It also reports to the agent which devices exist and whether a process computes on them.
"""

import time
from functools import partial
from pathlib import Path

from pydantic import Field

from muster import (
    Check,
    Config,
    Context,
    Device,
    Idleness,
    IdleProbe,
    Inventory,
    Measurement,
    Section,
    Skip,
    hookimpl,
)
from muster_plugins.checks.nvml.session import NvmlSession, Unusable
from muster_plugins.shared import pci
from muster_plugins.shared.devices.frame import device_check
from muster_plugins.shared.devices.history import History
from muster_plugins.shared.devices.reading import DeviceReading, NodeReading
from muster_plugins.shared.no_params import NoParams
from muster_plugins.shared.real_node import must_be_real

NAME = "nvml"


class NvmlSettings(Section):
    """The table `[plugins.nvml]`."""

    pci_root: Path = Field(pci.SYSFS, description="Where the PCI bus is read from")
    xid_window_s: float = Field(
        3600.0, gt=0, le=7 * 86400, description="Seconds that an XID stands if it needs neither reset nor reboot"
    )


_session = NvmlSession()
"""NVML is one library per process, and so is this object. Its first use, in a child process, loads the library."""

_history = History()
"""The devices' history in this process. A new process starts without it."""


_seen: dict[int, Device] = {}
"""By index, the devices that have ever answered this process: one that disappears is missing, not forgotten."""


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, NvmlSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[NoParams]]:
    return [
        device_check(
            NAME,
            partial(measure, config.plugin(NAME, NvmlSettings)),
            summary="What the driver reports about every GPU: errors, heat, slowdowns, links, lost and missing devices",
            watch=_session.watch,
            cost_s=0.1,
            precedent="gpud, DCGM health watches, Azure node health checks",
        )
    ]


@hookimpl
def muster_inventory(config: Config) -> Inventory | None:
    try:
        devices, software = _session.devices()
    except Unusable:
        if not _seen:
            return None
        devices, software = (), {}
    _seen.update({device.index: device for device in devices})
    return Inventory(devices=tuple(_seen[index] for index in sorted(_seen)), software=software)


@hookimpl
def muster_idle_probes(config: Config) -> list[IdleProbe]:
    return [IdleProbe(name=NAME, probe=partial(probe, config.plugin(NAME, NvmlSettings).pci_root))]


def probe(pci_root: Path, own: frozenset[int]) -> Idleness:
    """BUSY when a process other than our `own` computes on a device.

    Without a working NVML a node is IDLE only if its bus shows no device either.
    """
    try:
        strangers = _session.processes() - own
    except Unusable:
        return Idleness.UNKNOWN if pci.nvidia_gpus(pci_root) else Idleness.IDLE
    return Idleness.BUSY if strangers else Idleness.IDLE


def measure(settings: NvmlSettings, params: NoParams, context: Context) -> Measurement:
    """Reads every device once. Raises Skip if there is no device and none is expected."""
    must_be_real(context)
    try:
        reading = _session.read(settings.xid_window_s)
    except Unusable as error:
        reading = NodeReading(unusable=error.word, detail=error.detail)
    on_bus = pci.nvidia_gpus(settings.pci_root)
    expected = context.expected_gpus
    if expected is None:  # as many as were ever present, but at least that number
        expected = max(len(context.devices), len(reading.devices))
    if not expected and not on_bus and _nothing_here(reading):
        raise Skip("no GPU here, none expected")
    remembered = _history.remember(reading.devices, time.monotonic())
    devices = tuple(_identified(device, context.devices) for device in remembered)
    return reading.model_copy(update={"devices": devices, "expected": expected, "on_bus": on_bus}).measurement()


def _nothing_here(reading: NodeReading) -> bool:
    """Whether there is no device. A driver that answers, even with an error, shows that there is one."""
    return not reading.devices and reading.unusable in (None, "library_missing", "driver_not_loaded")


def _identified(reading: DeviceReading, known: tuple[Device, ...]) -> DeviceReading:
    """The identity from the inventory, for a device that cannot give its identity now or gives another one."""
    before = next((device for device in known if device.index == reading.index), None)
    if before is None or before.uuid == reading.uuid:
        return reading
    if reading.uuid:
        return reading.model_copy(update={"known_as": f"{before.uuid} ({before.model})"})
    identity = {"uuid": before.uuid, "model": before.model, "pci_address": before.pci_address or ""}
    return reading.model_copy(update=identity)
