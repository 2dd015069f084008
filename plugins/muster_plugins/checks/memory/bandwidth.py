"""Measures how fast memory is read and written: a device's own memory, and transfers between host and device.

GB = 1e9 bytes. A copy reads and writes every byte, a triad (a = b + factor x c, as in STREAM) reads two and writes one;
both count the bytes read and written together. A transfer counts once.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from muster_plugins.shared.torch_device import Place, free_bytes, time_each, warm_up
from muster_plugins.shared.torch_failures import NotEnoughMemoryError

if TYPE_CHECKING:
    import torch

TRIAD_FACTOR = 3.0


class BandwidthJob(NamedTuple):
    """Moves buffers of `size_bytes` for `iterations` iterations."""

    size_bytes: int
    iterations: int


class Bandwidth(NamedTuple):
    """GB/s, the median of all iterations."""

    copy: float
    triad: float


class Transfers(NamedTuple):
    """GB/s, the median of all iterations; `near` means that the host's buffer was in the memory next to the device."""

    to_device: float
    to_host: float
    near: bool


def bandwidth(place: Place, job: BandwidthJob) -> Bandwidth:
    """Reads and writes the memory of one device; for the CPU, that of the host."""
    import torch  # noqa: PLC0415  only child processes may load torch

    must_fit(place, job, buffers=3)
    target, left, right = (buffer(place, job.size_bytes).zero_() for _ in range(3))
    return Bandwidth(
        copy=gbps(place, job, 2, lambda: target.copy_(left)),
        triad=gbps(place, job, 3, lambda: torch.add(left, right, alpha=TRIAD_FACTOR, out=target)),
    )


def transfers(
    place: Place, job: BandwidthJob, cpus: frozenset[int], hosts: "dict[frozenset[int], torch.Tensor]"
) -> Transfers:
    """Moves a buffer from pinned host memory to one device and back.

    `cpus` are those next to the device; a thread on them gets the memory next to them. `hosts` keeps the host buffers
    by CPUs. Otherwise torch would reuse a freed buffer for a device on another socket.
    """
    must_fit(place, job, buffers=1)
    on_device = buffer(place, job.size_bytes).zero_()
    with running_on(cpus) as near:
        if cpus not in hosts:
            hosts[cpus] = _pinned(place, job.size_bytes)
        host = hosts[cpus]
        return Transfers(
            to_device=gbps(place, job, 1, lambda: on_device.copy_(host, non_blocking=True)),
            to_host=gbps(place, job, 1, lambda: host.copy_(on_device, non_blocking=True)),
            near=near,
        )


def must_fit(place: Place, job: BandwidthJob, buffers: int) -> None:
    """Raises NotEnoughMemoryError if the device has less free memory than the buffers need."""
    needed, free = buffers * job.size_bytes, free_bytes(place)
    if needed > free:
        raise NotEnoughMemoryError(needed, free, f"size_bytes={free // buffers} fits now")


def buffer(place: Place, size_bytes: int) -> "torch.Tensor":
    """An uninitialised buffer on the device."""
    import torch  # noqa: PLC0415  only child processes may load torch

    return torch.empty(size_bytes // torch.float32.itemsize, dtype=torch.float32, device=place.torch_name)


def _pinned(place: Place, size_bytes: int) -> "torch.Tensor":
    """A host buffer that a GPU reads without the help of the CPU; it is written once, so that its pages exist."""
    import torch  # noqa: PLC0415  only child processes may load torch

    pinned = place.backend == "cuda"
    return torch.empty(size_bytes // torch.float32.itemsize, dtype=torch.float32, pin_memory=pinned).zero_()


def gbps(place: Place, job: BandwidthJob, times_moved: int, work: Callable[[], object]) -> float:
    """GB/s of `work`, which moves a buffer `times_moved` times; the first call does not count."""
    warm_up(place, work, 0)
    return times_moved * job.size_bytes / median(time_each(place, work, job.iterations)) / 1e9


def cpus_next_to(pci_address: str | None, pci_root: Path) -> frozenset[int]:
    """The CPUs on the device's socket, from sysfs; empty if sysfs does not say."""
    try:
        text = (pci_root / (pci_address or "unknown") / "local_cpulist").read_text(encoding="ascii")
        ranges = [[int(end) for end in part.split("-")] for part in text.strip().split(",")]
    except (OSError, ValueError):
        return frozenset()
    return frozenset(cpu for ends in ranges for cpu in range(ends[0], ends[-1] + 1))


@contextmanager
def running_on(cpus: frozenset[int]) -> Iterator[bool]:
    """Keeps this thread on those of the CPUs that it may use. Returns False and changes nothing if there are none."""
    allowed = os.sched_getaffinity(0)
    wanted = allowed & cpus
    os.sched_setaffinity(0, wanted or allowed)
    try:
        yield bool(wanted)
    finally:
        os.sched_setaffinity(0, allowed)
