"""The check `collective`: all ranks of a group add up a buffer, every element is checked, bandwidth is measured.

busbw = algbw x 2(n-1)/n and algbw = size / time, as nccl-tests define them, with GB = 1e9 bytes.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from muster import (
    Action,
    Check,
    Config,
    Context,
    Finding,
    Measurement,
    Needs,
    Params,
    Reference,
    Rendezvous,
    Scope,
    Severity,
    hookimpl,
    judge_value,
)
from muster.model import Json, Metric
from muster_plugins.torch_device import (
    Choice,
    Place,
    device_index,
    facts,
    median,
    missing_devices,
    places_in_group,
    settle,
    working_on,
)
from muster_plugins.torch_group import Group, joined

if TYPE_CHECKING:
    import torch

NAME = "collective"

LARGE_BYTES = 1 << 30
"""From here on bandwidth is what is measured, not latency; references for links hold from this size."""

MOST_BYTES = 1 << 40
"""More than any device has."""

_DEFAULT_BYTES = {"nccl": 1 << 30, "gloo": 16 << 20}

_PERIOD = 97
"""Of the pattern in the buffers: a prime, so that no chunk of a power of two looks like its neighbour."""


class CollectiveParams(Params):
    """What is left out is chosen to suit the backend."""

    collective: Literal["all_reduce"] = "all_reduce"
    size_bytes: int | None = Field(
        None, ge=4, le=MOST_BYTES, multiple_of=4, description="Buffer; 1 GiB with NCCL, 16 MiB with gloo"
    )
    iterations: int = Field(10, ge=1, le=100_000, description="Measured rounds; their median counts")
    warmup: int = Field(2, ge=0, description="Rounds before that")
    timeout_s: float = Field(30.0, gt=0, description="How long a rank waits for the others in one operation")
    device: Choice = Field("auto", description="cpu: gloo on the CPU on purpose")


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Missing devices and wrong elements are errors; bandwidth is judged against references."""
    findings = missing_devices(NAME, measurement)
    wrong, busbw = (measurement.metrics.get(name) for name in ("wrong_elements", "busbw_gbps"))
    if isinstance(wrong, float) and wrong:
        findings.append(
            Finding(
                code="collective.wrong_elements",
                summary=f"{wrong:.0f} elements of the sums are wrong on rank {measurement.facts['rank']}",
                severity=Severity.ERROR,
                device=device_index(measurement.facts["device"]),
                action=Action.INSPECT_HARDWARE,
                evidence={"wrong_elements": wrong, "rank": measurement.facts["rank"]},
            )
        )
    if isinstance(busbw, float):
        findings += judge_value(busbw, references.get("busbw_gbps"), code="collective.slow")
    return findings


@hookimpl
def muster_checks(config: Config) -> list[Check[CollectiveParams]]:
    machine_type = config.settings.agent.machine_type
    return [
        Check(
            name=NAME,
            summary="All-reduce over all devices of a group: bus bandwidth, and that every element is right",
            scope=Scope.GROUP,
            params=CollectiveParams,
            measure=lambda params, context: measure(params, context, machine_type),
            judge=judge,
            timeout_s=120.0,
            needs=Needs.IDLE_NODE,
            objective="busbw_gbps",
            quick={"iterations": 3, "warmup": 1},
        )
    ]


class _Rounds(NamedTuple):
    """What this rank measured: seconds of each round, seconds it waited for the others before it, wrong elements."""

    seconds: list[float]
    waited: list[float]
    wrong: int


def measure(params: CollectiveParams, context: Context, machine_type: str | None) -> Measurement:
    """Median bandwidth as this rank saw it."""
    import torch  # noqa: F401, PLC0415  slow, and so before the others start to wait for us

    found = places_in_group(context, params.device)
    devices = facts(context, found, params.device)
    if devices["missing"]:  # the group would be measured on the wrong hardware
        return Measurement(facts=devices)
    meeting = context.rendezvous()
    place = found[meeting.local_rank]
    with working_on(place), joined(context, meeting, place, params.timeout_s) as group:
        if group.backend == "gloo":
            place = replace(place, torch_name="cpu")
        size = params.size_bytes or _DEFAULT_BYTES[group.backend]
        context.progress(f"{params.collective} of {size} bytes over {meeting.world_size} ranks with {group.backend}")
        rounds = _all_reduce(params, meeting, place, size)
    return Measurement(
        metrics=_metrics(rounds, size, meeting.world_size),
        facts=devices | _facts(params, group, meeting, place, size) | {"machine_type": machine_type},
    )


def _metrics(rounds: _Rounds, size: int, world_size: int) -> dict[str, Metric]:
    """A single rank sends nothing over any bus, so it has no busbw."""
    seconds = median(rounds.seconds)
    algbw = size / seconds / 1e9
    metrics: dict[str, Metric] = {
        "algbw_gbps": algbw,
        "time_s": seconds,
        "waited_s": median(rounds.waited),
        "wrong_elements": float(rounds.wrong),
    }
    if world_size > 1:
        metrics["busbw_gbps"] = algbw * 2 * (world_size - 1) / world_size
    return metrics


def _facts(params: CollectiveParams, group: Group, meeting: Rendezvous, place: Place, size: int) -> Json:
    return {
        "collective": params.collective,
        "backend": group.backend,
        "nodes": len(set(group.nodes)),
        "world_size": meeting.world_size,
        "rank": meeting.rank,
        "device": place.index,
        "size_bytes": size,
        "large": size >= LARGE_BYTES,
        "gpu_model": place.model,
        "simulated": place.simulated,
    }


def _all_reduce(params: CollectiveParams, meeting: Rendezvous, place: Place, size: int) -> _Rounds:
    """Refills the buffer before every round, because the sum is left in it; checks every element after it."""
    import torch  # noqa: PLC0415  only child processes may load torch
    import torch.distributed as dist  # noqa: PLC0415

    mine, known = _patterns(meeting.rank, meeting.world_size, size // 4, place)
    buffer = torch.empty_like(mine)
    rounds = _Rounds(seconds=[], waited=[], wrong=0)
    for _ in range(params.warmup + params.iterations):
        buffer.copy_(mine)
        settle(place)
        arrived = time.perf_counter()
        dist.barrier()
        settle(place)
        start = time.perf_counter()
        dist.all_reduce(buffer)
        settle(place)
        rounds.seconds.append(time.perf_counter() - start)
        rounds.waited.append(start - arrived)
        rounds = rounds._replace(wrong=rounds.wrong + int(torch.count_nonzero(buffer != known)))
    return rounds._replace(seconds=rounds.seconds[params.warmup :], waited=rounds.waited[params.warmup :])


def _patterns(rank: int, world_size: int, count: int, place: Place) -> tuple["torch.Tensor", "torch.Tensor"]:
    """What this rank puts in and what the sum must be: whole numbers, exact in any order of addition."""
    import torch  # noqa: PLC0415  only child processes may load torch

    def of_rank(rank: int) -> list[int]:
        return [(position + rank) % _PERIOD for position in range(_PERIOD)]

    total = [sum((position + other) % _PERIOD for other in range(world_size)) for position in range(_PERIOD)]
    mine, known = (
        torch.tensor(pattern, dtype=torch.float32, device=place.torch_name).repeat(count // _PERIOD + 1)[:count]
        for pattern in (of_rank(rank), total)
    )
    return mine, known
