"""One reading of a node's devices, between the driver and the judgement.

Numbers become metrics, one per device in device order. Everything else becomes facts. `judgement` reads both.
"""

from typing import NamedTuple

from pydantic import Field

from muster import Measurement
from muster.model import Data, Metric

NUMBERS = (
    "temperature_c",
    "temperature_headroom_c",
    "memory_temperature_c",
    "memory_temperature_headroom_c",
    "power_w",
    "utilisation_percent",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "sm_clock_share",
    "memory_used_bytes",
    "memory_unowned_bytes",
    "ecc_uncorrected_volatile",
    "ecc_uncorrected_aggregate",
    "ecc_correctable_volatile",
    "ecc_correctable_per_hour",
    "retired_pages",
    "slowed_down_s",
    "pcie_generation",
    "pcie_width",
    "pcie_share",
    "pcie_replays",
    "pcie_replays_per_lane_min",
    "nvlink_crc_errors",
    "nvlink_crc_errors_per_s",
    "nvlink_replays",
    "nvlink_replays_per_min",
    "nvlink_recoveries",
    "nvlink_recoveries_per_min",
)
"""Metrics of a device. A headroom is the device's own limit minus its temperature. Shares are relative to the maximum
that the device reports, and known only under load. Rates and seconds are over a window, see `history`.
"""


class StandingXid(NamedTuple):
    """An XID that stands, and how often it was reported."""

    code: int
    times: int


class DeviceReading(Data):
    """One device. `unsupported` names values that it does not report, `failed` those that could not be read and why.

    `known_as` is the identity in the inventory at this index, if it was another one. `throttled` are the reasons for a
    slowdown that is a fault, `unhindered` means that the driver names no reason at all for low clocks. `links_inactive`
    are the indices of NVLinks that the device has and that are down. `fabric` is how far it has joined its NVSwitch
    fabric, `fabric_faults` what is wrong there. `limits` are the device's own maxima. None means that the device does
    not report the value.
    """

    index: int
    uuid: str = ""
    model: str = ""
    pci_address: str = ""
    known_as: str = ""
    lost: bool = False
    reset_required: bool = False
    remap_pending: bool = False
    remap_failed: bool = False
    retirement_pending: bool = False
    throttled: tuple[str, ...] = ()
    unhindered: bool | None = Field(None, exclude=True)
    persistence: bool | None = None
    mig: bool | None = None
    processes: int | None = None
    links_active: int = 0
    links_inactive: tuple[int, ...] = ()
    fabric: str | None = None
    fabric_faults: tuple[str, ...] = ()
    xids: tuple[StandingXid, ...] = ()
    unsupported: tuple[str, ...] = Field((), exclude=True)
    failed: dict[str, str] = {}
    numbers: dict[str, float] = Field({}, exclude=True)
    limits: dict[str, float] = Field({}, exclude=True)


class NodeReading(Data):
    """All devices of a node. `unusable` is the key in `judgement.UNUSABLE` of the reason why none could be read.

    `expected` is the number of devices that must be present, None if it is unknown; `on_bus` are the addresses that the
    PCI bus shows, read without the driver; `xids` came without a device that could still be named. `unsupported` names
    once the values that any device does not report: readings come several times a minute, and all devices of a model
    are alike.
    """

    devices: tuple[DeviceReading, ...] = ()
    expected: int | None = None
    on_bus: tuple[str, ...] = ()
    xids: tuple[StandingXid, ...] = ()
    unsupported: tuple[str, ...] = ()
    unusable: str | None = None
    detail: str = ""
    software: dict[str, str] = {}
    simulated: bool = False

    def measurement(self) -> Measurement:
        """The reading as metrics and facts; numbers that no device reports are left out."""
        metrics: dict[str, Metric] = {
            name: [device.numbers.get(name) for device in self.devices]
            for name in NUMBERS
            if any(name in device.numbers for device in self.devices)
        }
        facts = self.model_dump(mode="json") | {
            "devices": [device.model_dump(mode="json", exclude_defaults=True) for device in self.devices],
            "unsupported": sorted({name for device in self.devices for name in device.unsupported}),
            "gpu_model": ", ".join(sorted({device.model for device in self.devices if device.model})),
            "pcie_generation": self._pcie_generation(),
        }
        return Measurement(metrics=metrics, facts=facts)

    def _pcie_generation(self) -> float | None:
        """The PCIe generation that the links of all devices support, a fact for references; None if devices differ."""
        generations = {
            device.limits["pcie_generation_max"] for device in self.devices if "pcie_generation_max" in device.limits
        }
        return generations.pop() if len(generations) == 1 else None
