"""Reads devices through NVML. Everything here runs in a child process, the resident one as a rule."""

from collections.abc import Callable
from typing import Any, TypeVar

from muster import Device
from muster_plugins.device_reading import DeviceReading, NodeReading

T = TypeVar("T")

Library = Any
"""The module pynvml, which has no types."""

Handle = Any
"""NVML's handle of a device."""

_NUMBERS: dict[str, Callable[[Library, Handle], float]] = {
    "temperature_c": lambda nvml, device: nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU),
    "slowdown_temperature_c": lambda nvml, device: nvml.nvmlDeviceGetTemperatureThreshold(
        device, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
    ),
    "ecc_uncorrected_volatile": lambda nvml, device: nvml.nvmlDeviceGetTotalEccErrors(
        device, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
    ),
    "ecc_uncorrected_aggregate": lambda nvml, device: nvml.nvmlDeviceGetTotalEccErrors(
        device, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_AGGREGATE_ECC
    ),
    "memory_used_bytes": lambda nvml, device: nvml.nvmlDeviceGetMemoryInfo(device).used,
    "utilisation_percent": lambda nvml, device: nvml.nvmlDeviceGetUtilizationRates(device).gpu,
    "power_w": lambda nvml, device: nvml.nvmlDeviceGetPowerUsage(device) / 1000,
    "sm_clock_mhz": lambda nvml, device: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
    "memory_clock_mhz": lambda nvml, device: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM),
}

_SLOWDOWNS = {
    "nvmlClocksThrottleReasonHwSlowdown": "hardware",
    "nvmlClocksThrottleReasonSwThermalSlowdown": "thermal (software)",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "thermal (hardware)",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "power brake",
}
"""A software power cap is how a GPU under load is meant to work, so it is not among these."""

_UNUSABLE_BY_ERROR = {
    "NVML_ERROR_LIBRARY_NOT_FOUND": "library_missing",
    "NVML_ERROR_DRIVER_NOT_LOADED": "driver_not_loaded",
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH": "version_mismatch",
    "NVML_ERROR_NO_PERMISSION": "no_permission",
}

_NOT_FOR_THIS_DEVICE = ("NVML_ERROR_NOT_SUPPORTED", "NVML_ERROR_FUNCTION_NOT_FOUND", "NVML_ERROR_NO_PERMISSION")

_SESSION_IS_OVER = (
    "NVML_ERROR_UNINITIALIZED",
    "NVML_ERROR_DRIVER_NOT_LOADED",
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
)
"""After these the driver is gone or was exchanged, and nothing that we hold of it is valid."""


class Unusable(Exception):
    """NVML does not work here; `word` is a key of `device_reading.UNUSABLE`."""

    def __init__(self, word: str, detail: str) -> None:
        super().__init__(f"{word}: {detail}")
        self.word = word
        self.detail = detail


class Session:
    """NVML in this process: opened when first used and kept, because XIDs are told only to those who listen."""

    def __init__(self) -> None:
        self._is_open = False
        self._events: Any = None
        self._deaf: frozenset[int] = frozenset()

    def read(self) -> NodeReading:
        """One look at every device, with the XIDs since the last one."""
        return self._use(self._read)

    def devices(self) -> tuple[tuple[Device, ...], dict[str, str]]:
        """The devices that answer, and the versions of the software; Unusable when NVML is."""
        return self._use(lambda nvml: (tuple(_devices(nvml)), _software(nvml)))

    def processes(self) -> frozenset[int]:
        """The ids of the processes that compute on any device; Unusable when NVML is."""
        return self._use(_processes)

    def _use(self, work: Callable[[Library], T]) -> T:
        import pynvml  # noqa: PLC0415  only child processes may load NVML

        try:
            if not self._is_open:
                self._open(pynvml)
            return work(pynvml)
        except pynvml.NVMLError as error:
            if _is(pynvml, error, _SESSION_IS_OVER):
                self._is_open = False
            raise Unusable(_word(pynvml, error), str(error)) from None

    def _open(self, nvml: Library) -> None:
        nvml.nvmlInit()
        self._events = _event_set(nvml)
        self._deaf = frozenset(
            index for index in range(nvml.nvmlDeviceGetCount()) if not _listen(nvml, index, self._events)
        )
        self._is_open = True

    def _read(self, nvml: Library) -> NodeReading:
        xids = _drain(nvml, self._events)
        devices = []
        for index in range(nvml.nvmlDeviceGetCount()):
            device = _read_device(nvml, index).model_copy(update={"xids": tuple(xids.pop(index, ()))})
            if index in self._deaf and not device.lost:
                device = device.model_copy(update={"unsupported": (*device.unsupported, "xids")})
            devices.append(device)
        nameless = tuple(code for codes in xids.values() for code in codes)
        return NodeReading(devices=tuple(devices), xids=nameless, software=_software(nvml))


def _word(nvml: Library, error: Any) -> str:
    return {getattr(nvml, name): word for name, word in _UNUSABLE_BY_ERROR.items()}.get(error.value, "failed")


def _is(nvml: Library, error: Any, names: tuple[str, ...]) -> bool:
    return error.value in {getattr(nvml, name) for name in names}


def _software(nvml: Library) -> dict[str, str]:
    return {"nvidia_driver": nvml.nvmlSystemGetDriverVersion(), "nvml": nvml.nvmlSystemGetNVMLVersion()}


def _event_set(nvml: Library) -> Any:
    """None where the driver knows no events."""
    try:
        return nvml.nvmlEventSetCreate()
    except nvml.NVMLError_NotSupported:
        return None


def _listen(nvml: Library, index: int, events: Any) -> bool:
    """Whether the device will tell its XIDs. A lost one is told by every reading, so it is no error here."""
    if events is None:
        return False
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
    except nvml.NVMLError as error:
        if not _is(nvml, error, (*_NOT_FOR_THIS_DEVICE, "NVML_ERROR_GPU_IS_LOST")):
            raise
        return False
    return True


def _drain(nvml: Library, events: Any) -> dict[int | None, list[int]]:
    """By device index, the XIDs that wait; None stands for a device that cannot say its index any more."""
    xids: dict[int | None, list[int]] = {}
    while events is not None:
        try:
            event = nvml.nvmlEventSetWait_v2(events, 0)
        except nvml.NVMLError_Timeout:
            break
        xids.setdefault(_index(nvml, event.device), []).append(event.eventData)
    return xids


def _index(nvml: Library, handle: Handle) -> int | None:
    try:
        return int(nvml.nvmlDeviceGetIndex(handle))
    except nvml.NVMLError:
        return None


def _read_device(nvml: Library, index: int) -> DeviceReading:
    try:
        return _Reader(nvml, nvml.nvmlDeviceGetHandleByIndex(index)).read(index)
    except nvml.NVMLError_GpuIsLost:
        return DeviceReading(index=index, lost=True)


class _Reader:
    """Asks one device for one value after the other and notes which it does not have."""

    def __init__(self, nvml: Library, handle: Handle) -> None:
        self._nvml = nvml
        self._handle = handle
        self._unsupported: list[str] = []
        self._failed: dict[str, str] = {}

    def read(self, index: int) -> DeviceReading:
        nvml, handle = self._nvml, self._handle
        asked = {name: self._ask(name, read) for name, read in _NUMBERS.items()}
        numbers = {name: float(value) for name, value in asked.items() if value is not None}
        slowdown = numbers.pop("slowdown_temperature_c", None)
        if slowdown is not None and "temperature_c" in numbers:
            numbers["temperature_headroom_c"] = slowdown - numbers["temperature_c"]
        _, _, pending, failed = self._ask("row_remapping", lambda n, d: n.nvmlDeviceGetRemappedRows(d)) or (0, 0, 0, 0)
        slowdowns = self._ask("throttle_reasons", lambda n, d: n.nvmlDeviceGetCurrentClocksThrottleReasons(d)) or 0
        return DeviceReading(
            index=index,
            uuid=nvml.nvmlDeviceGetUUID(handle),
            model=nvml.nvmlDeviceGetName(handle),
            pci_address=_pci_address(nvml, handle),
            remap_pending=bool(pending),
            remap_failed=bool(failed),
            throttled=tuple(word for name, word in _SLOWDOWNS.items() if slowdowns & getattr(nvml, name)),
            unsupported=tuple(self._unsupported),
            failed=self._failed,
            numbers=numbers,
        )

    def _ask(self, name: str, read: Callable[[Library, Handle], Any]) -> Any:
        try:
            return read(self._nvml, self._handle)
        except self._nvml.NVMLError as error:
            if _is(self._nvml, error, (*_SESSION_IS_OVER, "NVML_ERROR_GPU_IS_LOST")):
                raise
            if _is(self._nvml, error, _NOT_FOR_THIS_DEVICE):
                self._unsupported.append(name)
            else:
                self._failed[name] = str(error)
            return None


def _pci_address(nvml: Library, handle: Handle) -> str:
    """As sysfs writes it: NVML gives the domain eight digits."""
    pci = nvml.nvmlDeviceGetPciInfo(handle)
    return f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0"


def _answering(nvml: Library) -> list[tuple[int, Handle]]:
    """Index and handle of every device that is not lost."""
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            found.append((index, nvml.nvmlDeviceGetHandleByIndex(index)))
        except nvml.NVMLError_GpuIsLost:
            continue
    return found


def _devices(nvml: Library) -> list[Device]:
    return [
        Device(
            index=index,
            uuid=nvml.nvmlDeviceGetUUID(handle),
            model=nvml.nvmlDeviceGetName(handle),
            pci_address=_pci_address(nvml, handle),
            memory_bytes=nvml.nvmlDeviceGetMemoryInfo(handle).total,
        )
        for index, handle in _answering(nvml)
    ]


def _processes(nvml: Library) -> frozenset[int]:
    return frozenset(
        process.pid for _, handle in _answering(nvml) for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    )
