"""Reads values of a device from NVML and keeps unsupported values apart from failures."""

from collections.abc import Callable, Mapping
from typing import Any

Library = Any
"""The module pynvml, which has no types."""

Handle = Any
"""NVML's handle of a device."""

Read = Callable[[Library, Handle], Any]

SESSION_IS_OVER = (
    "NVML_ERROR_UNINITIALIZED",
    "NVML_ERROR_DRIVER_NOT_LOADED",
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
)
"""After these errors the driver is gone or was replaced, and every handle is invalid."""

_NOT_FOR_THIS_DEVICE = (
    "NVML_ERROR_NOT_SUPPORTED",
    "NVML_ERROR_FUNCTION_NOT_FOUND",
    "NVML_ERROR_NO_PERMISSION",
    "NVML_ERROR_INVALID_ARGUMENT",
    "NVML_ERROR_ARGUMENT_VERSION_MISMATCH",
    "NVML_ERROR_DEPRECATED",
)
"""The last three mean that the driver is older or newer and does not support the query."""

_FIELD_TYPES = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""The member of a field's value, by NVML's number for its type."""


def is_one_of(nvml: Library, error: Any, names: tuple[str, ...]) -> bool:
    """Whether an NVMLError is one of those with these names."""
    return error.value in {getattr(nvml, name) for name in names}


class DeviceQueries:
    """Queries one device for one value after the other. `unsupported` and `failed` are as in `DeviceReading`.

    `reset_required` is set when the driver refuses until the device has been reset. It raises only errors after which
    no further query makes sense: the device is lost, or the session is over.
    """

    def __init__(self, nvml: Library, handle: Handle) -> None:
        self._nvml = nvml
        self._handle = handle
        self.unsupported: list[str] = []
        self.failed: dict[str, str] = {}
        self.reset_required = False

    def ask(self, name: str, read: Read) -> Any:
        """The result of `read`; None if the device does not report it."""
        try:
            return read(self._nvml, self._handle)
        except self._nvml.NVMLError as error:
            self._note(name, error)
            return None

    def numbers(self, reads: Mapping[str, Read]) -> dict[str, float]:
        """By name, the numbers that the device reports."""
        asked = {name: self.ask(name, read) for name, read in reads.items()}
        return {name: float(value) for name, value in asked.items() if value is not None}

    def fields(self, ids: Mapping[str, str]) -> dict[str, float]:
        """By name, the values of NVML's fields, in one call for all of them."""
        try:
            answers = self._nvml.nvmlDeviceGetFieldValues(
                self._handle, [getattr(self._nvml, field) for field in ids.values()]
            )
        except self._nvml.NVMLError as error:
            for name in ids:
                self._note(name, error)
            return {}
        return self.numbers({name: _value_of(field) for name, field in zip(ids, answers, strict=True)})

    def _note(self, name: str, error: Any) -> None:
        if is_one_of(self._nvml, error, (*SESSION_IS_OVER, "NVML_ERROR_GPU_IS_LOST")):
            raise error
        if is_one_of(self._nvml, error, ("NVML_ERROR_RESET_REQUIRED",)):
            self.reset_required = True
        elif is_one_of(self._nvml, error, _NOT_FOR_THIS_DEVICE):
            self.unsupported.append(name)
        else:
            self.failed[name] = str(error)


def _value_of(field: Any) -> Read:
    def read(nvml: Library, _: Handle) -> Any:
        if field.nvmlReturn != nvml.NVML_SUCCESS:
            raise nvml.NVMLError(field.nvmlReturn)
        return getattr(field.value, _FIELD_TYPES[field.valueType])

    return read
