"""The check `memory`: whether the memory of a device is intact, and the bandwidth of the memory and of copies.

`parts` measures. The pattern test is in `pattern`, bandwidth and transfers are in `bandwidth`, and copies between
devices are in `pairs`.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, get_args

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
    Scope,
    Section,
    Severity,
    Worse,
    hookimpl,
)
from muster.nouns import count
from muster_plugins.checks.memory import pairs
from muster_plugins.checks.memory.bandwidth import BandwidthJob, cpus_next_to
from muster_plugins.checks.memory.parts import PARTS, MeasuredNode, MemoryPart
from muster_plugins.checks.memory.pattern import Pattern, PatternJob
from muster_plugins.shared import pci
from muster_plugins.shared.metric_judgement import (
    device_metric,
    hidden_devices,
    judge_each_device,
    judge_single,
    missing_devices,
)
from muster_plugins.shared.torch_device import Choice, facts, places
from muster_plugins.shared.torch_failures import device_finds, failures

NAME = "memory"

FINDS = {
    **device_finds(NAME),
    **pairs.FINDS,
    "memory.corrupt": "memory of a device returns other bits than were written",
    "memory.slow": "the memory of a device is slower than its reference",
    "memory.transfer_slow": "copies between host and device are slow: the PCIe link, or the host's memory",
    "memory.host_slow": "the memory of the host is slower than the operator's reference",
}

BANDWIDTHS = ("copy_gbps", "triad_gbps", "to_device_gbps", "to_host_gbps", pairs.METRIC)


class MemorySettings(Section):
    """The table `[plugins.memory]`."""

    pci_root: Path = Field(pci.SYSFS, description="Where the PCI bus is read, which shows the CPUs next to a device")


class MemoryParams(Params):
    """Parameters that are not set get a default that suits the backend."""

    parts: tuple[MemoryPart, ...] = Field(
        ("bandwidth", "pattern", "transfers", "pairs"),
        min_length=1,
        description="Parts to measure; host, the bandwidth of the host's own memory, only on request",
    )
    size_bytes: int | None = Field(
        None,
        ge=1 << 16,
        le=1 << 40,
        description="Size of the buffers in bytes; default 1 GiB on GPUs, 1 MiB on the CPU",
    )
    iterations: int | None = Field(
        None, ge=1, le=10_000, description="Copies of each buffer; default 20 on GPUs, 3 on the CPU"
    )
    share: float = Field(0.8, gt=0, le=0.95, description="Share of the free memory that the pattern test covers")
    limit_bytes: int | None = Field(
        None, ge=1, description="Limit of the pattern test for each device; default none on GPUs, 2 MiB on the CPU"
    )
    patterns: tuple[Pattern, ...] = Field(
        get_args(Pattern), min_length=1, description="Patterns to write and read back"
    )
    rounds: int | None = Field(
        None, ge=1, le=10_000, description="Repetitions of all patterns; default 4 on GPUs, 1 on the CPU"
    )
    seed: int = Field(1, ge=0, lt=1 << 32, description="Seed of the random pattern")
    device: Choice = Field("auto", description="cpu: use the CPU even on a node with GPUs")


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Mismatches convict a device; speeds are judged against references."""
    each = partial(judge_each_device, measurement, references, action=Action.INSPECT_HARDWARE)
    return [
        *missing_devices(NAME, measurement),
        *hidden_devices(NAME, measurement),
        *failures(NAME, measurement),
        *_corrupt(measurement),
        *each("copy_gbps", code="memory.slow"),
        *each("triad_gbps", code="memory.slow"),
        *each("to_device_gbps", code="memory.transfer_slow"),
        *each("to_host_gbps", code="memory.transfer_slow"),
        *pairs.judge(measurement, references),
        *judge_single(measurement, references, "host_copy_gbps", code="memory.host_slow"),
        *judge_single(measurement, references, "host_triad_gbps", code="memory.host_slow"),
    ]


def _corrupt(measurement: Measurement) -> list[Finding]:
    details = measurement.facts.get("mismatches")
    return [
        Finding(
            code="memory.corrupt",
            summary=f"{words:.0f} words came back with other bits than were written",
            severity=Severity.ERROR,
            device=device,
            action=Action.REPLACE,
            evidence={
                "wrong_words": words,
                "mismatches": details.get(str(device)) if isinstance(details, dict) else None,
            },
        )
        for device, words in device_metric(measurement, "wrong_words")
        if words
    ]


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, MemorySettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[MemoryParams]]:
    return [
        Check(
            name=NAME,
            summary="Device memory: pattern test, bandwidth, and copies to and from the host and between devices",
            scope=Scope.NODE,
            params=MemoryParams,
            measure=partial(measure, config.plugin(NAME, MemorySettings).pci_root),
            judge=judge,
            timeout_s=900.0,
            cadence_s=24 * 3600.0,
            needs=Needs.IDLE_DEVICE,
            quick={"share": 0.1, "iterations": 5, "rounds": 1},
            judged=BANDWIDTHS,
            compared=dict.fromkeys((*BANDWIDTHS, "host_copy_gbps", "host_triad_gbps"), Worse.LOWER),
            finds=FINDS,
            cost_s=30.0,
            precedent="DCGM diag memory and memtest, nvbandwidth, Azure node health checks",
        )
    ]


class _MemoryDefaults(NamedTuple):
    """Defaults for a backend."""

    size_bytes: int
    iterations: int
    limit_bytes: int | None
    rounds: int


_DEFAULTS = {"cuda": _MemoryDefaults(1 << 30, 20, None, 4), "cpu": _MemoryDefaults(1 << 20, 3, 2 << 20, 1)}


def measure(pci_root: Path, params: MemoryParams, context: Context) -> Measurement:
    """GB/s of each device in all requested parts, and the number of wrong words in the tested memory."""
    found = places(context, params.device)
    common = facts(context, found, params.device)
    if not found:
        return Measurement(facts=common)
    chosen = _DEFAULTS[found[0].backend]
    node = MeasuredNode(
        found=found,
        moving=BandwidthJob(params.size_bytes or chosen.size_bytes, params.iterations or chosen.iterations),
        testing=PatternJob(
            share=params.share,
            limit_bytes=params.limit_bytes or chosen.limit_bytes,
            patterns=params.patterns,
            rounds=params.rounds or chosen.rounds,
            seed=params.seed,
        ),
        cpus={device.index: cpus_next_to(device.pci_address, pci_root) for device in context.devices},
    )
    parts = []
    for part in dict.fromkeys(params.parts):
        context.progress(f"{part} on {count(len(found), 'device')}")
        parts.append(PARTS[part](node))
    return Measurement(
        metrics={name: value for part in parts for name, value in part.metrics.items()},
        facts=common
        | {name: value for part in parts for name, value in part.facts.items()}
        | {"failed": [failure for part in parts for failure in part.failed], "size_bytes": node.moving.size_bytes},
    )
