"""The check `nvml`: what NVIDIA's driver says about every device of the node, several times a minute.

It also tells the agent which devices there are and whether somebody computes on them.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pydantic import Field

from muster import (
    Check,
    Config,
    Context,
    Device,
    Finding,
    Idleness,
    IdleProbe,
    Inventory,
    Measurement,
    Params,
    Reference,
    Scope,
    Section,
    Skip,
    hookimpl,
)
from muster_plugins import device_reading, pci
from muster_plugins.device_reading import DeviceReading, NodeReading
from muster_plugins.nvml_session import Session, Unusable

NAME = "nvml"


class NvmlSettings(Section):
    """The table `[plugins.nvml]`."""

    pci_root: Path = Field(pci.SYSFS, description="Where the PCI bus is read from")


class NvmlParams(Params):
    """Nothing can be chosen."""


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """See `device_reading.judge`: lost or missing devices, ECC, row remapping, XIDs, heat and slowdowns."""
    return device_reading.judge(NAME, measurement, references)


_session = Session()
"""NVML is one library per process, and so is this; nothing is loaded before its first use, in a child process."""


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, NvmlSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[NvmlParams]]:
    return [
        Check(
            name=NAME,
            summary="What the driver says about every GPU: errors, heat, slowdowns, lost and missing devices",
            scope=Scope.NODE,
            params=NvmlParams,
            measure=partial(measure, config.plugin(NAME, NvmlSettings).pci_root),
            judge=judge,
            timeout_s=10.0,
            cadence_s=15.0,
            resident=True,
        )
    ]


@hookimpl
def muster_inventory(config: Config) -> Inventory | None:
    try:
        devices, software = _session.devices()
    except Unusable:
        return None
    return Inventory(devices=devices, software=software)


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


def measure(pci_root: Path, params: NvmlParams, context: Context) -> Measurement:
    """Reads every device once; Skip where there is none and none is expected."""
    if any(device.simulated for device in context.devices):
        raise Skip("the devices of this node are simulated")
    try:
        reading = _session.read()
    except Unusable as error:
        reading = NodeReading(unusable=error.word, detail=error.detail)
    on_bus = pci.nvidia_gpus(pci_root)
    expected = context.expected_gpus
    if expected is None:  # whatever was there once, but never less than that
        expected = max(len(context.devices), len(reading.devices))
    if not expected and not on_bus and _nothing_here(reading):
        raise Skip("no GPU here, none expected")
    devices = tuple(_identified(device, context.devices) for device in reading.devices)
    return reading.model_copy(update={"devices": devices, "expected": expected, "on_bus": on_bus}).measurement()


def _nothing_here(reading: NodeReading) -> bool:
    """A driver that answers, if only with an error, is a sign of a device."""
    return not reading.devices and reading.unusable in (None, "library_missing", "driver_not_loaded")


def _identified(reading: DeviceReading, known: tuple[Device, ...]) -> DeviceReading:
    """A lost device cannot say who it is, but the inventory from better times can."""
    before = next((device for device in known if device.index == reading.index), None)
    if not reading.lost or before is None:
        return reading
    identity = {"uuid": before.uuid, "model": before.model, "pci_address": before.pci_address or ""}
    return reading.model_copy(update=identity)
