"""The devices on which torch works in a check of this node.

On real GPUs this is CUDA, with one place for each GPU. On simulated devices it is the CPU, again with one place for
each, so that a check runs the same code on both. torch is imported inside the functions: they run in a child process.
"""

import ctypes
import os
import platform
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from muster import Context, Skip
from muster.model import Json
from muster_plugins.shared.device_choice import Choice

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """A device as torch names it. `index` is the device index of the inventory, None for the CPU itself."""

    index: int | None
    torch_name: str
    model: str
    simulated: bool = False

    @property
    def backend(self) -> str:
        return "cpu" if self.torch_name == "cpu" else "cuda"


_SHOWN = "CUDA_VISIBLE_DEVICES"
"""Slurm, Kubernetes or a person uses this variable to show a process only some of the devices."""

_DECIDE_ABOUT_BITS = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "NVIDIA_TF32_OVERRIDE",
    "PYTORCH_TUNABLEOP_ENABLED",
    "TORCH_BLAS_PREFER_CUBLASLT",
)
"""Variables that make cuBLAS or torch choose other algorithms, according to the documentation of both."""

CPU = Place(index=None, torch_name="cpu", model="CPU")
"""The CPU itself, chosen by parameter and not in place of a device."""

_working: ContextVar[int | None] = ContextVar("working_device", default=None)


def working_device() -> int | None:
    """The index of the device that the caller works on, also if torch cannot say because the device is simulated."""
    return _working.get()


@contextmanager
def working_on(place: Place) -> Iterator[None]:
    """Makes `place` the current device of this thread."""
    import torch  # noqa: PLC0415  only child processes may load torch

    token = _working.set(place.index)
    try:
        with torch.cuda.device(place.torch_name if place.backend == "cuda" else -1):
            yield
    finally:
        _working.reset(token)


def places(context: Context, choice: Choice) -> list[Place]:
    """Every place of this node, in device order. Raises Skip if the node has none and none is expected."""
    found = [CPU] if choice == "cpu" else _devices(context)
    if not found and not context.expected_gpus:
        raise Skip("no GPU here, none expected")
    return found


def places_in_group(context: Context, choice: Choice) -> list[Place]:
    """A place for each rank of this node; a node without devices provides one rank, which works on the CPU."""
    found = [] if choice == "cpu" else _devices(context)
    return found or [CPU] * max(1, len(context.devices))


def place_of_rank(found: list[Place], local_rank: int) -> Place:
    """The place of a rank of this node, also if a job shows each rank only its own device."""
    if len(found) == 1:
        return found[0]
    if local_rank >= len(found):
        raise RuntimeError(f"local rank {local_rank} has no device: CUDA shows {len(found)} here")
    return found[local_rank]


def _devices(context: Context) -> list[Place]:
    simulated = [device for device in context.devices if device.simulated]
    if simulated:
        return [Place(device.index, "cpu", device.model, simulated=True) for device in simulated]
    import torch  # noqa: PLC0415  only child processes may load torch

    if torch.version.cuda is None and context.devices:
        raise RuntimeError("this torch is built without CUDA: install one that can use the GPUs of this node")
    if torch.cuda.device_count():  # The numbers of NVML, until CUDA itself has counted.
        torch.cuda.init()  # type: ignore[no-untyped-call]  # torch leaves it without types
    elif context.devices and _SHOWN in os.environ:
        raise RuntimeError(f"{_SHOWN}={os.environ[_SHOWN]!r} hides every GPU of this node")
    indices = {device.uuid: device.index for device in context.devices}
    found = (_cuda_place(number, indices) for number in range(torch.cuda.device_count()))
    return whole_devices(sorted(found, key=_by_index))


def whole_devices(found: list[Place]) -> list[Place]:
    """The same places. Raises Skip if one is a part of a device, because CUDA shows a process only one such part."""
    partitioned = next((place.model for place in found if " MIG " in place.model), None)
    if partitioned is not None:
        raise Skip(f"the GPUs of this node are partitioned ({partitioned}), and CUDA cannot show them as a whole")
    return found


def _cuda_place(number: int, indices: Mapping[str, int]) -> Place:
    """CUDA may number devices in another order, so the inventory's index is found by uuid."""
    import torch  # noqa: PLC0415  only child processes may load torch

    device = torch.cuda.get_device_properties(number)
    return Place(indices.get(f"GPU-{device.uuid}", number), f"cuda:{number}", device.name)


def _by_index(place: Place) -> int:
    assert place.index is not None, "only the CPU has no index"
    return place.index


def facts(context: Context, found: list[Place], choice: Choice) -> Json:
    """Facts that select references, and devices that are expected but missing or hidden from this process."""
    expected = len(context.devices) if context.expected_gpus is None else context.expected_gpus
    present = {place.index for place in found}
    absent = [] if choice == "cpu" else [index for index in range(expected) if index not in present]
    on_gpus = any(place.backend == "cuda" for place in found)
    hidden, missing = (absent, []) if on_gpus and _SHOWN in os.environ else ([], absent)
    return {
        "backend": found[0].backend if found else None,
        "gpu_model": ", ".join(sorted({place.model for place in found})),
        "models": [place.model for place in found],
        "simulated": any(place.simulated for place in found),
        "devices": [place.index for place in found],
        "missing": list(missing),
        "hidden": list(hidden),
    }


def software() -> Json:
    """Versions and settings of the software that multiplies here: bits are comparable only if these are equal."""
    import torch  # noqa: PLC0415  only child processes may load torch

    return {
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "cublas": _cublas_version(torch.version.cuda),
        "environment": {name: os.environ[name] for name in _DECIDE_ABOUT_BITS if name in os.environ},
    }


def processor() -> str:
    """The model of the CPU, if the kernel reports it. On the CPU, it determines bits as well."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _cublas_version(cuda: str | None) -> str | None:
    """The version of the cuBLAS that torch has loaded, which is not always the version that it was built with."""
    if cuda is None:
        return None
    try:
        library = ctypes.CDLL(f"libcublas.so.{cuda.split('.')[0]}")
    except OSError:  # linked into torch
        return None
    numbers = []
    for part in range(3):  # libraryPropertyType: MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL
        number = ctypes.c_int()
        library.cublasGetProperty(part, ctypes.byref(number))
        numbers.append(str(number.value))
    return ".".join(numbers)


def free_bytes(place: Place) -> int:
    """Free memory of the place in bytes; on the CPU, the memory that the kernel can give without swapping."""
    import torch  # noqa: PLC0415  only child processes may load torch

    if place.backend == "cuda":
        kept = torch.cuda.memory_reserved(place.torch_name) - torch.cuda.memory_allocated(place.torch_name)
        return torch.cuda.mem_get_info(place.torch_name)[0] + kept  # torch gives up its cache when it must
    available = re.search(
        r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE
    )
    assert available, "Linux reports MemAvailable since 3.14"
    return int(available[1]) * 1024


def on_each(found: list[Place], work: Callable[[Place], T]) -> list[T]:
    """The result of `work` for every place: GPUs at the same time, simulated devices in turn, as they share one CPU."""

    def work_there(place: Place) -> T:
        with working_on(place):
            try:
                return work(place)
            except Exception as error:
                error.add_note(f"on device {place.index} ({place.model})")
                raise

    together = len(found) if found and found[0].backend == "cuda" else 1
    with ThreadPoolExecutor(max_workers=together) as pool:
        return list(pool.map(work_there, found))


def _nothing() -> None:
    pass


def time_each(
    place: Place, work: Callable[[], object], times: int, between: Callable[[], object] = _nothing
) -> list[float]:
    """Seconds that each of `times` calls of `work` takes on the device; `between` runs before each, untimed."""
    if place.backend == "cuda":
        return _time_each_on_cuda(work, times, between)
    seconds = []
    for _ in range(times):
        between()
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds


def _time_each_on_cuda(work: Callable[[], object], times: int, between: Callable[[], object]) -> list[float]:
    """Measured by the device's own clock, without waiting in between, so that launching does not count."""
    import torch  # noqa: PLC0415  only child processes may load torch

    def clock() -> "torch.cuda.Event":
        return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch leaves it without types

    pairs = [(clock(), clock()) for _ in range(times)]
    for start, end in pairs:
        between()
        start.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1000 for start, end in pairs]


def settle(place: Place) -> None:
    """Waits until the device has done its queued work; the CPU already has."""
    import torch  # noqa: PLC0415  only child processes may load torch

    if place.backend == "cuda":
        torch.cuda.synchronize()


def warm_up(place: Place, work: Callable[[], object], seconds: float) -> None:
    """Repeats `work` for at least `seconds`, and at least once, so that clocks rise and kernels are loaded."""
    until = time.perf_counter() + seconds
    while True:
        work()
        settle(place)
        if time.perf_counter() >= until:
            return
