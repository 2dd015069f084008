"""Failures of a device during its work: too little free memory, or an error of the device.

Neither ends the run: the other devices are measured, and the failure becomes a finding that names the device. Neither
is an ERROR: another program may hold the memory, and a program may cause an error of CUDA.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import JsonValue

from muster.model import Json
from muster_plugins.shared.torch_device import Place, on_each

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a device did not do its work. `detail` is for people."""

    reason: Literal["out_of_memory", "device_failed"]
    detail: str
    evidence: Json


class NotEnoughMemoryError(Exception):
    """`needed_bytes` do not fit into the `free_bytes` of a device; `hint` says what would fit."""

    def __init__(self, needed_bytes: int, free_bytes: int, hint: str) -> None:
        super().__init__(f"needs {needed_bytes / 1e9:.3g} GB, free are {free_bytes / 1e9:.3g} GB: {hint}")
        self.evidence: Json = {"needed_bytes": needed_bytes, "free_bytes": free_bytes}


def attempt_each(found: list[Place], work: Callable[[Place], T]) -> list[T | Failure]:
    """The result of `work` for every place, as in `on_each`; a Failure for a device that could not do it."""
    return on_each(found, lambda place: attempt(place, work))


def attempt(place: Place, work: Callable[[Place], T]) -> T | Failure:
    """The result of `work`, or the Failure of its device. An error in our own code is raised."""
    try:
        return work(place)
    except NotEnoughMemoryError as error:
        return Failure("out_of_memory", str(error), error.evidence)
    except RuntimeError as error:
        if ran_out_of_memory(error):
            return Failure("out_of_memory", _first_line(error), {})
        if reason := of_the_device(error):
            return Failure("device_failed", reason, {})
        raise


def ran_out_of_memory(error: Exception) -> bool:
    """Whether a device refused memory or, according to torch or Python, the host did."""
    import torch  # noqa: PLC0415  only child processes may load torch

    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(text in str(error) for text in _NO_MEMORY)


def of_the_device(error: Exception) -> str | None:
    """The text of the error of the driver of a device or of NVIDIA's libraries; None for an error of another kind."""
    reason = _first_line(error)
    return reason if reason.startswith(_OF_THE_DEVICE) and not ran_out_of_memory(error) else None


_NO_MEMORY = ("can't allocate memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")

_OF_THE_DEVICE = ("CUDA error", "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED")
"""All errors of the driver and of cuBLAS begin like this; cuDNN has others, which are about the software."""


def _first_line(error: Exception) -> str:
    """The first line of the error; the rest is advice."""
    return str(error).partition("\n")[0]


def each_number(results: list[T | Failure], number: Callable[[T], float]) -> list[float | None]:
    """A metric with one number for each device, None for one that failed."""
    return [None if isinstance(result, Failure) else number(result) for result in results]


def failure_facts(found: list[Place], results: list[T | Failure]) -> list[JsonValue]:
    """The failures among the results of `found`, as facts for `failures`."""
    return [
        {"device": place.index, "reason": result.reason, "detail": result.detail, "evidence": result.evidence}
        for place, result in zip(found, results, strict=True)
        if isinstance(result, Failure)
    ]
