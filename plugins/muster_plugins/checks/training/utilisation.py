"""How busy the driver says that devices were during a training. Import this only in child processes: it loads NVML.

NVML's utilisation is the share of time in which at least one kernel ran, over up to the last second. A device that
waits for the host between two steps shows it here, however fast each single step is.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any, NamedTuple

from muster import Device
from muster_plugins.shared.torch_device import Place

INTERVAL_S = 0.1
"""Pause between two samples."""

PERIOD_S = 1.0
"""The longest period that one value of NVML is about: 1/6 s to 1 s by device (NVML API, nvmlUtilization_t)."""


class BusySample(NamedTuple):
    """The utilisation of a device in per cent, `at` seconds on the clock of time.perf_counter."""

    at: float
    percent: float


class Stretch(NamedTuple):
    """A stretch of measured steps, on the clock of time.perf_counter."""

    start: float
    end: float


def busy_percent(samples: Sequence[BusySample], stretches: Sequence[Stretch]) -> float | None:
    """The mean utilisation over the stretches; None if all were too short for a value that is about nothing else."""
    within = [
        sample.percent
        for sample in samples
        if any(stretch.start + PERIOD_S <= sample.at <= stretch.end for stretch in stretches)
    ]
    return fmean(within) if within else None


@contextmanager
def sampled(found: Sequence[Place], devices: Iterable[Device]) -> Iterator[list[list[BusySample]]]:
    """Samples of each place while the block runs; none of a place that NVML does not know, such as the CPU."""
    samples: list[list[BusySample]] = [[] for _ in found]
    if found[0].backend == "cpu":
        yield samples
        return
    uuid_of = {device.index: device.uuid for device in devices}
    uuids = [uuid_of.get(place.index, "") for place in found if place.index is not None]
    ended = threading.Event()
    # A daemon: a driver that hangs must not keep this process from ending.
    sampler = threading.Thread(target=_sample, args=(uuids, samples, ended), name="utilisation", daemon=True)
    sampler.start()
    try:
        yield samples
    finally:
        ended.set()
        sampler.join(PERIOD_S)


def _sample(uuids: Sequence[str], samples: list[list[BusySample]], ended: threading.Event) -> None:
    import pynvml  # noqa: PLC0415  only child processes may load NVML

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return
    handles = [_handle(pynvml, uuid) for uuid in uuids]
    while not ended.wait(INTERVAL_S):
        for handle, taken in zip(handles, samples, strict=True):
            percent = None if handle is None else _percent(pynvml, handle)
            if percent is not None:
                taken.append(BusySample(time.perf_counter(), percent))


def _handle(nvml: Any, uuid: str) -> Any:
    try:
        return nvml.nvmlDeviceGetHandleByUUID(uuid)
    except nvml.NVMLError:
        return None


def _percent(nvml: Any, handle: Any) -> float | None:
    try:
        return float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    except nvml.NVMLError:
        return None
