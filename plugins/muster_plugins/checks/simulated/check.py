"""Simulated devices, for the demo and for tests. Never active unless `[plugins.simulated] enabled` is set.

All simulated data is marked as simulated: the devices, their model and the facts of each measurement. The check
`simulated` reads simulated devices as `nvml` reads real ones, and judges in the same way under codes of its own name.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from pydantic import Field

from muster import (
    Config,
    Context,
    Device,
    Idleness,
    IdleProbe,
    Inventory,
    Measurement,
    Section,
    hookimpl,
)
from muster.check import AnyCheck
from muster_plugins.checks.simulated.faults import Fault, inject
from muster_plugins.shared.devices.frame import device_check
from muster_plugins.shared.devices.reading import DeviceReading, NodeReading
from muster_plugins.shared.no_params import NoParams

NAME = "simulated"

MEMORY_BYTES = 80 << 30


class SimulatedSettings(Section):
    """The table `[plugins.simulated]`."""

    enabled: bool = Field(False, description="true: this node has simulated devices instead of real ones")
    devices: int = Field(8, ge=0, le=64, description="Number of devices")
    model: str = Field(
        "NVIDIA H100 80GB HBM3 (simulated)", pattern=r"\(simulated\)$", description="Must end in (simulated)"
    )
    faults: list[Fault] = Field([], description='For example [{"kind": "ecc", "device": 0}]')
    busy_file: Path | None = Field(None, description="While this file exists, the node counts as busy")


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, SimulatedSettings)


@hookimpl
def muster_checks(config: Config) -> list[AnyCheck]:
    settings = config.plugin(NAME, SimulatedSettings)
    if not settings.enabled:
        return []
    return [
        device_check(
            NAME,
            partial(measure, settings),
            summary="What the simulated devices of this node report",
            cost_s=0.001,
            precedent="muster",
        )
    ]


@hookimpl(tryfirst=True)
def muster_inventory(config: Config) -> Inventory | None:
    settings = config.plugin(NAME, SimulatedSettings)
    if not settings.enabled:
        return None
    devices = tuple(
        Device(
            index=index,
            uuid=f"SIM-{config.settings.node}-{index}",
            model=settings.model,
            pci_address=_pci_address(index),
            memory_bytes=MEMORY_BYTES,
            simulated=True,
        )
        for index in _present(settings)
    )
    return Inventory(devices=devices, software={"nvidia_driver": "simulated"})


@hookimpl
def muster_idle_probes(config: Config) -> Iterable[IdleProbe]:
    settings = config.plugin(NAME, SimulatedSettings)
    if not settings.enabled or settings.busy_file is None:
        return []
    return [IdleProbe(name=NAME, probe=partial(probe, settings.busy_file))]


@hookimpl
def muster_prepare_run(config: Config, check: AnyCheck, context: Context) -> None:
    settings = config.plugin(NAME, SimulatedSettings)
    for fault in settings.faults if settings.enabled else ():
        inject(fault, check.name)


def probe(busy_file: Path, own: frozenset[int]) -> Idleness:
    """BUSY while the file exists."""
    return Idleness.BUSY if busy_file.exists() else Idleness.IDLE


def measure(settings: SimulatedSettings, params: NoParams, context: Context) -> Measurement:
    """A reading of every simulated device. A missing device is still on the simulated PCI bus."""
    expected = settings.devices if context.expected_gpus is None else context.expected_gpus
    return NodeReading(
        devices=tuple(_read(settings, index) for index in _present(settings)),
        expected=expected,
        on_bus=tuple(_pci_address(index) for index in range(settings.devices)),
        software={"nvidia_driver": "simulated"},
        simulated=True,
    ).measurement()


def _present(settings: SimulatedSettings) -> list[int]:
    missing = {fault.device for fault in settings.faults if fault.kind == "missing"}
    return [index for index in range(settings.devices) if index not in missing]


def _read(settings: SimulatedSettings, index: int) -> DeviceReading:
    faults = {fault.kind for fault in settings.faults if fault.device == index}
    temperature = 93.0 if "hot" in faults else 41.0
    return DeviceReading(
        index=index,
        model=settings.model,
        pci_address=_pci_address(index),
        numbers={
            "temperature_c": temperature,
            "temperature_headroom_c": 89.0 - temperature,
            "ecc_uncorrected_volatile": 2.0 if "ecc" in faults else 0.0,
            "ecc_uncorrected_aggregate": 2.0 if "ecc" in faults else 0.0,
            "memory_used_bytes": 0.0,
            "utilisation_percent": 0.0,
            "power_w": 70.0,
            "sm_clock_mhz": 345.0,
            "memory_clock_mhz": 2619.0,
        },
    )


def _pci_address(index: int) -> str:
    return f"0000:{0x10 + index:02x}:00.0"
