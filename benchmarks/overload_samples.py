"""What is seen of an overloaded coordinator from second to second, and its rates in short windows of time."""

import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.figures import python_speed
from benchmarks.scale_parts import MIB, Coordinator, sum_of

WINDOW_S = 10.0

ADDITIONS = 20_000
"""How often the speed of the machine is tried: 1 ms of a core, not the coordinator's."""


class Sample(NamedTuple):
    """A moment: the time, runs and repeats taken so far, memory, lost nodes, and what it says of its load.

    `speed` is the machine's own. A machine that others use as well may get slower by a third within a minute.
    """

    at: float
    runs: float
    repeats: float
    mib: float
    lost: float
    overloaded: float
    slowdown: float
    speed: float


def sample_of(coordinator: Coordinator) -> Sample:
    """How it is now. One request for all: each takes some of its time."""
    text = coordinator.metrics_text()
    return Sample(
        at=time.monotonic(),
        runs=sum_of("muster_runs", text),
        repeats=sum_of("muster_repeats", text),
        mib=coordinator.process.memory_info().rss / MIB,
        lost=sum_of("muster_nodes_lost", text),
        overloaded=sum_of("muster_overloaded", text),
        slowdown=sum_of("muster_slowdown", text),
        speed=python_speed(ADDITIONS),
    )


def rates(samples: list[Sample]) -> list[float]:
    """The runs taken in a second in each window."""
    return [(window[-1].runs - window[0].runs) / (window[-1].at - window[0].at) for window in _windows(samples)]


def speeds(samples: list[Sample]) -> list[float]:
    """The machine's own speed in each window."""
    return [statistics.mean(sample.speed for sample in window) for window in _windows(samples)]


def _windows(samples: list[Sample]) -> Iterator[list[Sample]]:
    """From each sample on those of WINDOW_S, if there are as many."""
    for start, first in enumerate(samples):
        for end in range(start + 1, len(samples)):
            if samples[end].at - first.at >= WINDOW_S:
                yield samples[start : end + 1]
                break
