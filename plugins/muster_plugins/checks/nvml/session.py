"""NVML in this process, usually the resident child: opens it, listens to it, and reads all devices."""

import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from muster import Device
from muster_plugins.checks.nvml.device import DeviceReader, identity
from muster_plugins.checks.nvml.queries import SESSION_IS_OVER, DeviceQueries, Handle, Library, is_one_of
from muster_plugins.checks.nvml.standing_xids import StandingXids
from muster_plugins.shared.devices.reading import NodeReading, StandingXid

T = TypeVar("T")

RETRY_S = 60.0
"""Pause of a watch if the driver cannot be listened to."""

WAIT_S = 5.0
"""Length of one waiting call of a watch. Between calls it checks that the session is still the same."""

MOST_UNREAD = 4096
"""Maximum number of XIDs kept until the next reading. In a storm, the latest are kept."""

_UNUSABLE_BY_ERROR = {
    "NVML_ERROR_LIBRARY_NOT_FOUND": "library_missing",
    "NVML_ERROR_DRIVER_NOT_LOADED": "driver_not_loaded",
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH": "version_mismatch",
    "NVML_ERROR_NO_PERMISSION": "no_permission",
}


class Unusable(Exception):
    """NVML does not work here; `word` is a key of `devices.judgement.UNUSABLE`."""

    def __init__(self, word: str, detail: str) -> None:
        super().__init__(f"{word}: {detail}")
        self.word = word
        self.detail = detail


class _Opened(NamedTuple):
    """Values that are queried once, when NVML is opened. `events` is None if the driver does not support events.

    `listening` holds the indices of the devices that report their XIDs, by the address of their handle: a device that
    has fallen off the bus can no longer report its index.
    """

    events: Any
    listening: dict[int, int]
    readers: dict[int, DeviceReader]
    xids: StandingXids
    software: dict[str, str]


class NvmlSession:
    """NVML, opened at the first use and kept open, because it reports XIDs only to listeners.

    Two threads use it: one reads, another may `watch`. What the watch hears goes to the reader through a queue.
    """

    def __init__(self) -> None:
        self._opened: _Opened | None = None
        self._opening = threading.Lock()
        self._heard: deque[tuple[int | None, int]] = deque(maxlen=MOST_UNREAD)
        self._watched = False

    def read(self, xid_window_s: float) -> NodeReading:
        """One reading of every device, with the XIDs that stand; see `StandingXids` for the window."""
        return self._use(lambda nvml, opened: self._read(nvml, opened, xid_window_s))

    def devices(self) -> tuple[tuple[Device, ...], dict[str, str]]:
        """The devices that answer, and the versions of the software. Raises Unusable if NVML does not work."""
        return self._use(lambda nvml, opened: (tuple(_devices(nvml)), opened.software))

    def processes(self) -> frozenset[int]:
        """The ids of the processes that compute on any device. Raises Unusable if NVML does not work."""
        return self._use(lambda nvml, opened: _processes(nvml))

    def watch(self) -> None:
        """Blocks until the driver reports an XID, which the next `read` returns; waits for a driver that is absent."""
        while True:
            try:
                if self._use(self._await_xid):
                    return
            except Unusable:
                time.sleep(RETRY_S)

    def _use(self, work: Callable[[Library, _Opened], T]) -> T:
        import pynvml  # noqa: PLC0415  only child processes may load NVML

        opened = None
        try:
            opened = self._open(pynvml)
            return work(pynvml, opened)
        except pynvml.NVMLError as error:
            if is_one_of(pynvml, error, SESSION_IS_OVER) and self._opened is opened:  # and not reopened since
                self._opened = None
            raise Unusable(_word(pynvml, error), str(error)) from None

    def _open(self, nvml: Library) -> _Opened:
        with self._opening:
            if self._opened is None:
                nvml.nvmlInit()
                events = _event_set(nvml)
                self._opened = _Opened(events, _listen(nvml, events), {}, StandingXids(), _software(nvml))
            return self._opened

    def _read(self, nvml: Library, opened: _Opened, xid_window_s: float) -> NodeReading:
        deaf = {} if self._watched else self._hear(nvml, opened)
        xids = self._standing(opened, xid_window_s)
        devices = []
        for index in range(nvml.nvmlDeviceGetCount()):
            device = opened.readers.setdefault(index, DeviceReader(nvml, index)).read()
            mute = () if device.lost or index in opened.listening.values() else ("xids",)
            update = {
                "xids": xids.pop(index, ()),
                "unsupported": (*device.unsupported, *mute),
                "failed": device.failed | deaf,
            }
            devices.append(device.model_copy(update=update))
        nameless = tuple(xid for standing in xids.values() for xid in standing)
        return NodeReading(devices=tuple(devices), xids=nameless, software=opened.software)

    def _standing(self, opened: _Opened, window_s: float) -> dict[int | None, tuple[StandingXid, ...]]:
        now = time.monotonic()
        while self._heard:
            index, code = self._heard.popleft()
            opened.xids.note(index, code, now)
        opened.xids.forget(now, window_s)
        return opened.xids.by_device()

    def _await_xid(self, nvml: Library, opened: _Opened) -> bool:
        """Whether an XID arrived within `WAIT_S`. No other thread waits meanwhile, so no reading is delayed."""
        if opened.events is None:
            time.sleep(RETRY_S)
            return False
        self._watched = True
        try:
            event = nvml.nvmlEventSetWait_v2(opened.events, int(WAIT_S * 1000))
            self._take(opened, event)
            self._hear(nvml, opened)
        except nvml.NVMLError_Timeout:
            return False
        finally:
            self._watched = False
        return True

    def _hear(self, nvml: Library, opened: _Opened) -> dict[str, str]:
        """Takes the XIDs that are already waiting; errors as in `DeviceReading.failed`."""
        for _ in range(MOST_UNREAD if opened.events is not None else 0):
            try:
                self._take(opened, nvml.nvmlEventSetWait_v2(opened.events, 0))
            except (nvml.NVMLError_Timeout, nvml.NVMLError_GpuIsLost):  # the reading of that device reports the loss
                break
            except nvml.NVMLError as error:
                return {"xids": str(error)}
        return {}

    def _take(self, opened: _Opened, event: Any) -> None:
        self._heard.append((opened.listening.get(_address(event.device)), event.eventData))


def _word(nvml: Library, error: Any) -> str:
    return {getattr(nvml, name): word for name, word in _UNUSABLE_BY_ERROR.items()}.get(error.value, "failed")


def _address(handle: Handle) -> int:
    return ctypes.addressof(handle.contents)


def _software(nvml: Library) -> dict[str, str]:
    return {"nvidia_driver": nvml.nvmlSystemGetDriverVersion(), "nvml": nvml.nvmlSystemGetNVMLVersion()}


def _event_set(nvml: Library) -> Any:
    try:
        return nvml.nvmlEventSetCreate()
    except nvml.NVMLError as error:  # a sandbox or a virtual machine may refuse; the rest can still be read
        if is_one_of(nvml, error, SESSION_IS_OVER):
            raise
        return None


def _listen(nvml: Library, events: Any) -> dict[int, int]:
    """The index of each device that will report its XIDs, by the address of its handle."""
    listening = {}
    for index in range(nvml.nvmlDeviceGetCount() if events is not None else 0):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
        except nvml.NVMLError as error:
            if is_one_of(nvml, error, SESSION_IS_OVER):
                raise
        else:
            listening[_address(handle)] = index
    return listening


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
    found = []
    for index, handle in _answering(nvml):
        uuid, model, pci_address = identity(nvml, handle)
        found.append(
            Device(
                index=index,
                uuid=uuid,
                model=model,
                serial=DeviceQueries(nvml, handle).ask("serial", _serial),
                pci_address=pci_address,
                memory_bytes=nvml.nvmlDeviceGetMemoryInfo(handle).total,
            )
        )
    return found


def _serial(nvml: Library, handle: Handle) -> str | None:
    return nvml.nvmlDeviceGetSerial(handle) or None


def _processes(nvml: Library) -> frozenset[int]:
    return frozenset(
        process.pid for _, handle in _answering(nvml) for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    )
