"""What one look at a node's devices gives, and what it means.

The checks `nvml` and `simulated` read devices in their own ways and share everything else: the reading, and `judge`.
Numbers go to the metrics, one per device in device order; what is not a number goes to the facts.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import Field

from muster import Action, Finding, Measurement, Reference, Severity, judge_value
from muster.model import Data, Metric
from muster_plugins.xids import meaning

NUMBERS = (
    "temperature_c",
    "temperature_headroom_c",
    "ecc_uncorrected_volatile",
    "ecc_uncorrected_aggregate",
    "memory_used_bytes",
    "utilisation_percent",
    "power_w",
    "sm_clock_mhz",
    "memory_clock_mhz",
)
"""Metrics of a device. The headroom is what the device itself allows above its temperature before it slows down."""


class DeviceReading(Data):
    """One device. `unsupported` names what it cannot say, `failed` what could not be read, with the error."""

    index: int
    uuid: str = ""
    model: str = ""
    pci_address: str = ""
    lost: bool = False
    remap_pending: bool = False
    remap_failed: bool = False
    throttled: tuple[str, ...] = ()
    xids: tuple[int, ...] = ()
    unsupported: tuple[str, ...] = ()
    failed: dict[str, str] = {}
    numbers: dict[str, float] = Field({}, exclude=True)


class NodeReading(Data):
    """All devices of a node. `unusable` says in a word of `UNUSABLE` why none could be read.

    `expected` is the number of devices that must be there, None when nobody knows; `on_bus` are the addresses that
    the PCI bus shows, read without the driver; `xids` came without a device that could still be named.
    """

    devices: tuple[DeviceReading, ...] = ()
    expected: int | None = None
    on_bus: tuple[str, ...] = ()
    xids: tuple[int, ...] = ()
    unusable: str | None = None
    detail: str = ""
    software: dict[str, str] = {}
    simulated: bool = False

    def measurement(self) -> Measurement:
        """The reading as metrics and facts, from which `judge` reads it again."""
        metrics: dict[str, Metric] = {
            name: [device.numbers.get(name) for device in self.devices] for name in NUMBERS if self.devices
        }
        facts = self.model_dump(mode="json") | {
            "devices": [device.model_dump(mode="json", exclude_defaults=True) for device in self.devices],
            "gpu_model": ", ".join(sorted({device.model for device in self.devices if device.model})),
        }
        return Measurement(metrics=metrics, facts=facts)


class Cause(NamedTuple):
    """Why the devices of a node cannot be read, for people, and what to do."""

    summary: str
    action: Action


UNUSABLE = {
    "library_missing": Cause("the NVML library libnvidia-ml.so.1 is not installed or not on the path", Action.NONE),
    "driver_not_loaded": Cause("the NVIDIA driver is not loaded", Action.REBOOT_NODE),
    "version_mismatch": Cause(
        "driver and NVML library differ in version: updated without a reboot", Action.REBOOT_NODE
    ),
    "no_permission": Cause("NVML refuses to talk to this user", Action.NONE),
    "failed": Cause("NVML fails", Action.REBOOT_NODE),
}


def judge(check: str, measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """The findings of `check`, whose name their codes begin with."""
    node = NodeReading.model_validate(measurement.facts)
    findings = [*_usable(node), *_missing(node), *_unexpected(node), *_unsupported(node), *_xids(node.xids, None)]
    for position, device in enumerate(node.devices):
        numbers = {name: _at(measurement.metrics.get(name), position) for name in NUMBERS}
        findings += _states(device)
        findings += _xids(device.xids, device.index)
        findings += _judged_numbers(device.index, numbers, references)
    return [finding.model_copy(update={"code": f"{check}.{finding.code}"}) for finding in findings]


def _usable(node: NodeReading) -> list[Finding]:
    if node.unusable is None:
        return []
    cause = UNUSABLE[node.unusable]
    summary = f"{cause.summary} ({node.detail})" if node.detail else cause.summary
    return [Finding(code=node.unusable, summary=summary, severity=Severity.UNKNOWN, action=cause.action)]


def _missing(node: NodeReading) -> list[Finding]:
    """Without NVML the bus is all the evidence there is."""
    seen = [device.pci_address for device in node.devices] if node.unusable is None else list(node.on_bus)
    if node.expected is None or len(seen) >= node.expected:
        return []
    unseen = [address for address in node.on_bus if address not in seen]
    nowhere = [f"index {index}" for index in range(len(seen) + len(unseen), node.expected)]
    return [
        Finding(
            code="devices_missing",
            summary=f"{len(seen)} of {node.expected} GPUs: {', '.join([*unseen, *nowhere])} missing",
            severity=Severity.ERROR,
            action=Action.INSPECT_HARDWARE,
            evidence={"expected": node.expected, "found": len(seen), "missing": [*unseen, *nowhere]},
        )
    ]


def _unexpected(node: NodeReading) -> list[Finding]:
    if node.expected is None or len(node.devices) <= node.expected:
        return []
    summary = f"{len(node.devices)} GPUs where {node.expected} are expected"
    return [Finding(code="devices_unexpected", summary=summary, severity=Severity.WARNING)]


def _unsupported(node: NodeReading) -> list[Finding]:
    names = sorted({name for device in node.devices for name in device.unsupported})
    if not names:
        return []
    return [
        Finding(
            code="unsupported",
            summary=f"not read, because a device here does not support it: {', '.join(names)}",
            severity=Severity.SKIPPED,
            evidence={"names": list(names)},
        )
    ]


def _states(device: DeviceReading) -> list[Finding]:
    """What a device says of itself in words, and what it no longer says."""
    rows = (
        (device.lost, "device_lost", "the GPU is lost: it no longer answers", Severity.ERROR, Action.REBOOT_NODE),
        (
            device.remap_pending,
            "row_remap_pending",
            "a memory row waits for a reset to be remapped",
            Severity.ERROR,
            Action.RESET_GPU,
        ),
        (
            device.remap_failed,
            "row_remap_failed",
            "a bad memory row could not be remapped",
            Severity.ERROR,
            Action.INSPECT_HARDWARE,
        ),
        (
            bool(device.throttled),
            "throttled",
            f"slowed down now: {', '.join(device.throttled)}",
            Severity.WARNING,
            Action.INSPECT_HARDWARE,
        ),
        (
            bool(device.failed),
            "read_failed",
            "; ".join(f"{name}: {error}" for name, error in device.failed.items()),
            Severity.UNKNOWN,
            Action.NONE,
        ),
    )
    return [
        Finding(code=code, summary=summary, severity=severity, device=device.index, action=action)
        for holds, code, summary, severity, action in rows
        if holds
    ]


def _xids(codes: tuple[int, ...], device: int | None) -> list[Finding]:
    findings = []
    for code, count in Counter(codes).items():
        xid = meaning(code)
        findings.append(
            Finding(
                code="xid",
                summary=f"XID {code}, {xid.name}" + (f", {count} times" if count > 1 else ""),
                severity=xid.severity,
                device=device,
                action=xid.action,
                evidence={"xid": code, "count": count, "source": xid.source},
            )
        )
    return findings


def _judged_numbers(
    index: int, numbers: Mapping[str, float | None], references: Mapping[str, Reference]
) -> list[Finding]:
    """The device's own threshold goes before a reference for its model, if it tells."""
    metric = "temperature_c" if numbers["temperature_headroom_c"] is None else "temperature_headroom_c"
    findings = judge_value(
        numbers[metric], references.get(metric), code="too_hot", device=index, action=Action.INSPECT_HARDWARE
    )
    errors = numbers["ecc_uncorrected_volatile"]
    if errors:
        findings.append(
            Finding(
                code="ecc_uncorrected",
                summary=f"{errors:.0f} uncorrected memory errors since the driver was loaded",
                severity=Severity.ERROR,
                device=index,
                action=Action.RESET_GPU,
                evidence={"count": errors},
            )
        )
    return findings


def _at(metric: Metric, position: int) -> float | None:
    return metric[position] if isinstance(metric, list) else None
