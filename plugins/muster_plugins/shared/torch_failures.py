"""Failures of a device during its work: too little free memory, or an error of the device.

Neither ends the run: the other devices are measured, and the failure becomes a finding that names the device. Neither
is an ERROR: another program may hold the memory, and a program may cause an error of CUDA.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import JsonValue

from muster import Action, Finding, Measurement, Severity
from muster.model import Json
from muster_plugins.shared.metric_judgement import NOT_ASKED, device_index
from muster_plugins.shared.torch_device import Place, on_each

T = TypeVar("T")


def device_finds(check: str) -> dict[str, str]:
    """The meaning of the findings of `failures`, `missing_devices` and `hidden_devices`, by their code for `check`."""
    return {
        f"{check}.devices_missing": "the node has fewer devices than expected",
        f"{check}.not_asked": NOT_ASKED,
        f"{check}.devices_hidden": "devices that CUDA_VISIBLE_DEVICES hides were not measured",
        f"{check}.out_of_memory": "a device has too little free memory for what was asked, so it was not measured",
        f"{check}.device_failed": "a device returned an error during its work, or vanished",
    }


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


def failures(check: str, measurement: Measurement) -> list[Finding]:
    """A finding for each device and each reason in the fact `failed`, with how often it happened."""
    found: dict[tuple[int | None, str], list[Json]] = {}
    facts = measurement.facts.get("failed")
    for fact in facts if isinstance(facts, list) else []:
        assert isinstance(fact, dict)
        found.setdefault((device_index(fact["device"]), str(fact["reason"])), []).append(fact)
    return [_finding(check, device, reason, times) for (device, reason), times in found.items()]


def _finding(check: str, device: int | None, reason: str, times: list[Json]) -> Finding:
    evidence = times[0]["evidence"]
    assert isinstance(evidence, dict)
    return Finding(
        code=f"{check}.{reason}",
        summary=str(times[0]["detail"]),
        severity=Severity.UNKNOWN,
        device=device,
        action=Action.INSPECT_HARDWARE if reason == "device_failed" else Action.NONE,
        evidence=evidence | {"times": len(times)},
    )
