"""What a device reports about its NVLinks and the NVSwitch fabric behind them."""

import ctypes
from typing import NamedTuple

from muster_plugins.checks.nvml.queries import DeviceQueries, Handle, Library, Read

_FABRIC_STATES = {
    "NVML_GPU_FABRIC_STATE_NOT_STARTED": "not started",
    "NVML_GPU_FABRIC_STATE_IN_PROGRESS": "in progress",
    "NVML_GPU_FABRIC_STATE_COMPLETED": "completed",
}

_FABRIC_FAULTS = {
    "DEGRADED_BW": "degraded bandwidth",
    "ROUTE_RECOVERY": "recovery of a route under way",
    "ROUTE_UNHEALTHY": "unhealthy route",
    "ACCESS_TIMEOUT_RECOVERY": "recovery from an access timeout under way",
}
"""The names of the bits of the fabric's health, by their part of NVML's names."""


class Fabric(NamedTuple):
    """How far a device has joined its fabric, as text, and what is wrong."""

    state: str | None = None
    faults: tuple[str, ...] = ()


def link_indices(queries: DeviceQueries) -> tuple[int, ...]:
    """The NVLinks that the device has, up or down."""
    return queries.ask("nvlinks", _link_indices) or ()


def links_down(queries: DeviceQueries, links: tuple[int, ...]) -> tuple[int, ...]:
    """Those of `links` that are down."""
    return tuple(link for link in links if queries.ask(f"nvlink {link}", _state_of(link)) == 0)


def fabric(queries: DeviceQueries) -> Fabric:
    """The device's state in an NVSwitch fabric. A device outside any fabric reports it as unsupported."""
    return queries.ask("fabric", _fabric) or Fabric()


def _state_of(link: int) -> Read:
    return lambda nvml, device: nvml.nvmlDeviceGetNvLinkState(device, link)


def _link_indices(nvml: Library, device: Handle) -> tuple[int, ...]:
    found = []
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            nvml.nvmlDeviceGetNvLinkState(device, link)
        except nvml.NVMLError_InvalidArgument:  # beyond the last
            break
        except nvml.NVMLError_NotSupported:  # not wired on this board
            continue
        found.append(link)
    if not found:
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
    return tuple(found)


def _fabric(nvml: Library, device: Handle) -> Fabric:
    info = nvml.c_nvmlGpuFabricInfo_v2_t()
    nvml.nvmlDeviceGetGpuFabricInfoV(device, ctypes.byref(info))
    states = {getattr(nvml, name): word for name, word in _FABRIC_STATES.items()}
    if info.state not in states:
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
    faults = [
        word
        for name, word in _FABRIC_FAULTS.items()
        if _health(nvml, info.healthMask, name) == _value(nvml, name, "TRUE")
    ]
    configuration = _health(nvml, info.healthMask, "INCORRECT_CONFIGURATION")
    if configuration > _value(nvml, "INCORRECT_CONFIGURATION", "NONE"):
        faults.append(f"incorrect configuration ({configuration})")
    if states[info.state] == "completed" and info.status != nvml.NVML_SUCCESS:
        faults.append(f"joining it has failed: {nvml.NVMLError(info.status)}")
    return Fabric(states[info.state], tuple(faults))


def _health(nvml: Library, mask: int, name: str) -> int:
    """The part of the fabric's health that is called `name`."""
    shift, width = (getattr(nvml, f"NVML_GPU_FABRIC_HEALTH_MASK_{what}_{name}") for what in ("SHIFT", "WIDTH"))
    return (mask >> int(shift)) & int(width)


def _value(nvml: Library, name: str, value: str) -> int:
    return int(getattr(nvml, f"NVML_GPU_FABRIC_HEALTH_MASK_{name}_{value}"))
