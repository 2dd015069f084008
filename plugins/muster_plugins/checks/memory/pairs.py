"""Copies from every device of the node to every other one; `peer_judgement` judges them."""

from functools import partial
from statistics import median_high

from muster_plugins.checks.memory.bandwidth import BandwidthJob, buffer, gbps, must_fit
from muster_plugins.shared.torch_device import Place


def row(place: Place, found: list[Place], job: BandwidthJob) -> list[float | None]:
    """GB/s from one device to each of `found`, one after the other; None for the device itself."""
    must_fit(place, job, buffers=2)
    source = buffer(place, job.size_bytes).zero_()
    speeds: list[float | None] = []
    for other in found:
        if other == place:
            speeds.append(None)
            continue
        target = buffer(other, job.size_bytes)
        speeds.append(gbps(place, job, 1, partial(target.copy_, source, non_blocking=True)))
    return speeds


def without_access(found: list[Place]) -> list[list[int | None]]:
    """The pairs of device indices in which the first device cannot read the second's memory."""
    import torch  # noqa: PLC0415  only child processes may load torch

    return [
        [one.index, other.index]
        for one in found
        for other in found
        if one != other
        and one.backend == "cuda"
        and not torch.cuda.can_device_access_peer(one.torch_name, other.torch_name)
    ]


def of_each(matrix: list[list[float | None]]) -> list[float | None]:
    """For each device the median of its pairs in both directions; one slow partner does not change it."""
    numbers = range(len(matrix))
    pairs = [[speed for other in numbers for speed in (matrix[one][other], matrix[other][one])] for one in numbers]
    measured = [[speed for speed in speeds if speed is not None] for speeds in pairs]
    return [median_high(speeds) if speeds else None for speeds in measured]
