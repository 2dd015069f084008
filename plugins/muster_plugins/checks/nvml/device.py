"""Reads everything that NVML offers about one device."""

from collections.abc import Mapping
from typing import NamedTuple

from muster_plugins.checks.nvml.links import fabric, link_indices, links_down
from muster_plugins.checks.nvml.queries import SESSION_IS_OVER, DeviceQueries, Handle, Library, Read, is_one_of
from muster_plugins.shared.devices.reading import DeviceReading

POWER_DIGITS = 1
"""Decimals of a power in watts. The driver gives milliwatts and calls them accurate to 5 %."""

_NUMBERS: dict[str, Read] = {
    "temperature_c": lambda nvml, device: nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU),
    "ecc_uncorrected_volatile": lambda nvml, device: nvml.nvmlDeviceGetTotalEccErrors(
        device, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
    ),
    "ecc_uncorrected_aggregate": lambda nvml, device: nvml.nvmlDeviceGetTotalEccErrors(
        device, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_AGGREGATE_ECC
    ),
    "ecc_correctable_volatile": lambda nvml, device: nvml.nvmlDeviceGetTotalEccErrors(
        device, nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_VOLATILE_ECC
    ),
    "memory_used_bytes": lambda nvml, device: nvml.nvmlDeviceGetMemoryInfo(device, nvml.nvmlMemory_v2).used,
    "utilisation_percent": lambda nvml, device: nvml.nvmlDeviceGetUtilizationRates(device).gpu,
    "power_w": lambda nvml, device: round(nvml.nvmlDeviceGetPowerUsage(device) / 1000, POWER_DIGITS),
    "sm_clock_mhz": lambda nvml, device: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
    "memory_clock_mhz": lambda nvml, device: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM),
    "pcie_generation": lambda nvml, device: nvml.nvmlDeviceGetCurrPcieLinkGeneration(device),
    "pcie_width": lambda nvml, device: nvml.nvmlDeviceGetCurrPcieLinkWidth(device),
}

_FIELDS = {
    "memory_temperature_c": "NVML_FI_DEV_MEMORY_TEMP",
    "retired_pages_single": "NVML_FI_DEV_RETIRED_SBE",
    "retired_pages_double": "NVML_FI_DEV_RETIRED_DBE",
    "retirement_pending": "NVML_FI_DEV_RETIRED_PENDING",
    "pcie_replays": "NVML_FI_DEV_PCIE_REPLAY_COUNTER",
    "nvlink_crc_errors": "NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
    "nvlink_replays": "NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    "nvlink_recoveries": "NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
}
"""The counters of NVLinks are sums over all links of the device."""

_LIMITS: dict[str, Read] = {
    "slowdown_temperature_c": lambda nvml, device: nvml.nvmlDeviceGetTemperatureThreshold(
        device, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
    ),
    "memory_max_temperature_c": lambda nvml, device: nvml.nvmlDeviceGetTemperatureThreshold(
        device, nvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX
    ),
    "sm_clock_max_mhz": lambda nvml, device: nvml.nvmlDeviceGetMaxClockInfo(device, nvml.NVML_CLOCK_SM),
    "pcie_generation_max": lambda nvml, device: nvml.nvmlDeviceGetMaxPcieLinkGeneration(device),
    "pcie_width_max": lambda nvml, device: nvml.nvmlDeviceGetMaxPcieLinkWidth(device),
}

_SLOWDOWNS = {
    "nvmlClocksThrottleReasonHwSlowdown": "hardware",
    "nvmlClocksThrottleReasonSwThermalSlowdown": "thermal (software)",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "thermal (hardware)",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "power brake",
}
"""A software power cap is normal for a GPU under load, so it is not among these."""


class _Fixed(NamedTuple):
    """What does not change while NVML is open. `links` are the indices of the device's NVLinks."""

    uuid: str
    model: str
    pci_address: str
    limits: Mapping[str, float]
    links: tuple[int, ...]
    asked: DeviceQueries


class DeviceReader:
    """Reads the device at one index; what never changes only once."""

    def __init__(self, nvml: Library, index: int) -> None:
        self._nvml = nvml
        self._index = index
        self._fixed: _Fixed | None = None

    def read(self) -> DeviceReading:
        """One reading, with the names of values that cannot be read. A device that does not answer counts as lost."""
        nvml = self._nvml
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(self._index)
            fixed = self._fixed or _ask_fixed(nvml, handle)
            self._fixed = None if fixed.asked.failed or fixed.asked.reset_required else fixed
            return _read(nvml, handle, self._index, fixed)
        except nvml.NVMLError_GpuIsLost:
            return DeviceReading(index=self._index, lost=True)
        except nvml.NVMLError as error:
            if is_one_of(nvml, error, SESSION_IS_OVER):
                raise
            if is_one_of(nvml, error, ("NVML_ERROR_RESET_REQUIRED",)):
                return DeviceReading(index=self._index, reset_required=True)
            return DeviceReading(index=self._index, failed={"device": str(error)})


def identity(nvml: Library, handle: Handle) -> tuple[str, str, str]:
    """UUID, model and PCI address as sysfs writes it. NVML gives the domain eight digits."""
    pci = nvml.nvmlDeviceGetPciInfo(handle)
    address = f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0"
    return nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetName(handle), address


def process_ids(nvml: Library, handle: Handle) -> frozenset[int]:
    """The processes that use the device, to compute or to draw."""
    compute = nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
    graphics = nvml.nvmlDeviceGetGraphicsRunningProcesses_v3(handle)
    return frozenset(process.pid for process in (*compute, *graphics))


def _ask_fixed(nvml: Library, handle: Handle) -> _Fixed:
    queries = DeviceQueries(nvml, handle)
    uuid, model, pci_address = identity(nvml, handle)
    return _Fixed(uuid, model, pci_address, queries.numbers(_LIMITS), link_indices(queries), queries)


def _read(nvml: Library, handle: Handle, index: int, fixed: _Fixed) -> DeviceReading:
    queries = DeviceQueries(nvml, handle)
    numbers = queries.numbers(_NUMBERS) | queries.fields(_FIELDS)
    _, _, remap_pending, remap_failed = queries.ask("row_remapping", _row_remapping) or (0, 0, 0, 0)
    reasons = queries.ask(
        "throttle_reasons", lambda nvml, device: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device)
    )
    processes = queries.ask("processes", process_ids)
    down = links_down(queries, fixed.links)
    joined = fabric(queries)
    return DeviceReading(
        index=index,
        uuid=fixed.uuid,
        model=fixed.model,
        pci_address=fixed.pci_address,
        reset_required=fixed.asked.reset_required or queries.reset_required,
        remap_pending=bool(remap_pending),
        remap_failed=bool(remap_failed),
        retirement_pending=bool(numbers.pop("retirement_pending", 0)),
        throttled=tuple(word for name, word in _SLOWDOWNS.items() if (reasons or 0) & getattr(nvml, name)),
        unhindered=None if reasons is None else reasons == 0,
        persistence=_as_bool(
            queries.ask("persistence", lambda nvml, device: nvml.nvmlDeviceGetPersistenceMode(device))
        ),
        mig=_as_bool(queries.ask("mig", lambda nvml, device: nvml.nvmlDeviceGetMigMode(device)[0])),
        processes=None if processes is None else len(processes),
        links_active=len(fixed.links) - len(down),
        links_inactive=down,
        fabric=joined.state,
        fabric_faults=joined.faults,
        unsupported=(*fixed.asked.unsupported, *queries.unsupported),
        failed=fixed.asked.failed | queries.failed,
        numbers=_combined(numbers, fixed.limits),
        limits=dict(fixed.limits),
    )


def _row_remapping(nvml: Library, device: Handle) -> tuple[int, int, int, int]:
    correctable, uncorrectable, pending, failed = nvml.nvmlDeviceGetRemappedRows(device)
    return correctable, uncorrectable, pending, failed


def _combined(numbers: dict[str, float], limits: Mapping[str, float]) -> dict[str, float]:
    """Adds numbers that follow from others. A page is retired after single-bit errors or after a double-bit error."""
    made = dict(numbers)
    retired = [made.pop(name) for name in ("retired_pages_single", "retired_pages_double") if name in made]
    if retired:
        made["retired_pages"] = sum(retired)
    for temperature, limit, headroom in (
        ("temperature_c", "slowdown_temperature_c", "temperature_headroom_c"),
        ("memory_temperature_c", "memory_max_temperature_c", "memory_temperature_headroom_c"),
    ):
        if temperature in made and limit in limits:
            made[headroom] = limits[limit] - made[temperature]
    return made


def _as_bool(value: int | None) -> bool | None:
    return None if value is None else bool(value)
