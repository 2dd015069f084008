"""The check `memory`: whether the memory of a device is intact, and the bandwidth of the memory and of copies.

`measure` and `parts` measure. The pattern test is in `pattern`, bandwidth and transfers are in `bandwidth`, and copies
between devices are in `pairs`; `peer_judgement` judges those.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pydantic import Field

from muster import (
    Action,
    Check,
    Config,
    Context,
    Finding,
    Measurement,
    Needs,
    Reference,
    Scope,
    Section,
    Severity,
    Worse,
    hookimpl,
)
from muster_plugins.checks.memory import peer_judgement
from muster_plugins.checks.memory.params import MemoryParams
from muster_plugins.shared import pci
from muster_plugins.shared.device_failures import device_finds, failures
from muster_plugins.shared.metric_judgement import (
    device_metric,
    hidden_devices,
    judge_each_device,
    judge_single,
    missing_devices,
)

NAME = "memory"

FINDS = {
    **device_finds(NAME),
    **peer_judgement.FINDS,
    "memory.corrupt": "memory of a device returns other bits than were written",
    "memory.slow": "the memory of a device is slower than its reference",
    "memory.transfer_slow": "copies between host and device are slow: the PCIe link, or the host's memory",
    "memory.host_slow": "the memory of the host is slower than the operator's reference",
}

BANDWIDTHS = ("copy_gbps", "triad_gbps", "to_device_gbps", "to_host_gbps", peer_judgement.METRIC)


class MemorySettings(Section):
    """The table `[plugins.memory]`."""

    pci_root: Path = Field(pci.SYSFS, description="Where the PCI bus is read, which shows the CPUs next to a device")


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
        *peer_judgement.judge(measurement, references),
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
            measure=partial(_measure, config.plugin(NAME, MemorySettings).pci_root),
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


def _measure(pci_root: Path, params: MemoryParams, context: Context) -> Measurement:
    from muster_plugins.checks.memory.measure import measure  # noqa: PLC0415 (memory that only a run should spend)

    return measure(pci_root, params, context)
