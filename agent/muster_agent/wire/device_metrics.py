"""The figures of devices for Prometheus, under the names that NVIDIA's DCGM exporter gives them.

The idea: dashboards and alerts for the DCGM exporter work with muster's agent alone. Only what a check has measured is
exported: the last run of the check counts, and a value that a device did not report has no sample. A run without
measurements, for example because the driver hangs, leaves nothing.

The settings choose the groups. By default there are none, because many hosts run the DCGM exporter already, and sums
over series of both would count each device twice.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.registry import Collector

from muster.agent_settings import DeviceFigures
from muster.model import Json, Run

CHECKS = ("nvml", "simulated")
"""The checks that read devices. A node has one of them; devices of the other are called simulated in their model."""

LABELS = ("gpu", "UUID", "modelName", "Hostname")

COUNTER = "unknown"
"""The type of a counter whose name does not end in _total: the client library can only write it without a type."""

MIB = 1 << 20


class _Figure(NamedTuple):
    """A metric: the name in the measurements of a check, the name for Prometheus, and what one of it is worth."""

    measured: str
    name: str
    text: str
    type: str = "gauge"
    unit: int = 1


FIGURES: dict[DeviceFigures, tuple[_Figure, ...]] = {
    "temperature": (
        _Figure("temperature_c", "DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C)."),
        _Figure("memory_temperature_c", "DCGM_FI_DEV_MEMORY_TEMP", "Memory temperature (in C)."),
    ),
    "power": (_Figure("power_w", "DCGM_FI_DEV_POWER_USAGE", "Power draw (in W)."),),
    "clocks": (
        _Figure("sm_clock_mhz", "DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz)."),
        _Figure("memory_clock_mhz", "DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz)."),
    ),
    "utilisation": (
        _Figure("utilisation_percent", "DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %)."),
        _Figure("memory_used_bytes", "DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", unit=MIB),
    ),
    "ecc": (
        _Figure(
            "ecc_correctable_volatile",
            "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
            "Total number of single-bit volatile ECC errors.",
            COUNTER,
        ),
        _Figure(
            "ecc_uncorrected_volatile",
            "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
            "Total number of double-bit volatile ECC errors.",
            COUNTER,
        ),
        _Figure(
            "ecc_uncorrected_aggregate",
            "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
            "Total number of double-bit persistent ECC errors.",
            COUNTER,
        ),
    ),
    "pcie": (
        _Figure("pcie_replays", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "Total number of PCIe retries.", COUNTER),
        _Figure("pcie_generation", "DCGM_FI_DEV_PCIE_LINK_GEN", "PCIe generation of the link now."),
        _Figure("pcie_width", "DCGM_FI_DEV_PCIE_LINK_WIDTH", "Lanes of the PCIe link now."),
    ),
    "nvlink": (
        _Figure(
            "nvlink_crc_errors",
            "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
            "Total number of NVLink flow-control CRC errors.",
            COUNTER,
        ),
        _Figure(
            "nvlink_replays",
            "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
            "Total number of NVLink retries.",
            COUNTER,
        ),
        _Figure(
            "nvlink_recoveries",
            "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
            "Total number of NVLink recovery errors.",
            COUNTER,
        ),
    ),
}
"""By the group in `agent.device_metrics`, with the texts of the DCGM exporter where it has them."""


class DeviceMetrics(Collector):
    """The figures of the devices of `node`, in these groups. Without groups it keeps nothing."""

    def __init__(self, node: str, groups: Collection[DeviceFigures]) -> None:
        self._node = node
        chosen = [group for group in FIGURES if group in groups or "all" in groups]
        self._figures = [figure for group in chosen for figure in FIGURES[group]]
        self._last: dict[str, Run] = {}

    def run_ended(self, run: Run) -> None:
        """Takes the figures of a run, if it is one that reads devices."""
        if run.check in CHECKS and self._figures:
            self._last[run.check] = run

    def collect(self) -> Iterator[Metric]:
        for figure in self._figures:
            metric = Metric(figure.name, figure.text, figure.type)
            for run in self._last.values():
                values = run.metrics.get(figure.measured)
                if isinstance(values, list):
                    for device, value in zip(_devices(run), values, strict=False):
                        if value is not None:
                            metric.add_sample(figure.name, self._labels(device), value / figure.unit)
            yield metric

    def _labels(self, device: Json) -> dict[str, str]:
        said = (device.get("index"), device.get("uuid", ""), device.get("model", ""), self._node)
        return dict(zip(LABELS, map(str, said), strict=True))


def _devices(run: Run) -> list[Json]:
    """The devices of a run in the order of its measurements."""
    devices = run.facts.get("devices")
    return [device for device in devices if isinstance(device, dict)] if isinstance(devices, list) else []
