"""Judges readings of devices for `nvml` and `simulated`. Each uses codes with its own name."""

from collections.abc import Mapping
from typing import NamedTuple

from muster import Action, Finding, Measurement, Reference, Severity, judge_value
from muster.model import Metric
from muster.nouns import count
from muster_plugins.shared.devices.reading import DeviceReading, NodeReading, StandingXid
from muster_plugins.shared.xids import meaning


class UnreadableCause(NamedTuple):
    """Why the devices of a node cannot be read, as text for people, and what to do."""

    summary: str
    action: Action


UNUSABLE = {
    "library_missing": UnreadableCause(
        "the NVML library libnvidia-ml.so.1 is not installed or not in the library path", Action.NONE
    ),
    "driver_not_loaded": UnreadableCause("the NVIDIA driver is not loaded", Action.REBOOT_NODE),
    "version_mismatch": UnreadableCause(
        "driver and NVML library differ in version: updated without a reboot", Action.REBOOT_NODE
    ),
    "no_permission": UnreadableCause("NVML denies access to this user", Action.NONE),
    "failed": UnreadableCause("NVML fails", Action.REBOOT_NODE),
}


class Rule(NamedTuple):
    """A number that is compared with its reference, and the finding if it is out of bounds."""

    metric: str
    code: str
    action: Action


_RULES = (
    Rule("ecc_uncorrected_volatile", "ecc_uncorrected", Action.RESET_GPU),
    Rule("ecc_correctable_per_hour", "ecc_correctable_rate", Action.INSPECT_HARDWARE),
    Rule("retired_pages", "pages_retired", Action.REPLACE),
    Rule("memory_temperature_headroom_c", "memory_too_hot", Action.INSPECT_HARDWARE),
    Rule("sm_clock_share", "clock_low", Action.INSPECT_HARDWARE),
    Rule("pcie_share", "pcie_slow", Action.INSPECT_HARDWARE),
    Rule("pcie_replays_per_lane_min", "pcie_replays", Action.INSPECT_HARDWARE),
    Rule("nvlink_crc_errors_per_s", "nvlink_crc_errors", Action.INSPECT_HARDWARE),
    Rule("nvlink_replays_per_min", "nvlink_replays", Action.INSPECT_HARDWARE),
    Rule("nvlink_recoveries_per_min", "nvlink_recoveries", Action.INSPECT_HARDWARE),
    Rule("memory_unowned_bytes", "memory_leaked", Action.RESET_GPU),
)

JUDGED = ("temperature_headroom_c", "slowed_down_s", *(rule.metric for rule in _RULES))
"""Metrics that should have a reference."""

FINDS = {
    **{word: cause.summary for word, cause in UNUSABLE.items()},
    "devices_missing": "fewer GPUs answer than there must be",
    "devices_unexpected": "more GPUs answer than there should be",
    "device_changed": "a GPU has another UUID than in the inventory",
    "device_lost": "the GPU no longer answers",
    "reset_required": "the driver refuses the GPU until it has been reset",
    "read_failed": "the driver returns an error for a value",
    "unsupported": "values that a device here does not report",
    "xid": "the driver has reported an XID error, which stands for a while",
    "ecc_uncorrected": "uncorrected memory errors since the driver was loaded",
    "ecc_uncorrected_before": "uncorrected memory errors from before the driver was loaded",
    "ecc_correctable_rate": "more corrected memory errors in the last hour than in healthy memory",
    "row_remap_pending": "a memory row waits for a reset to be remapped",
    "row_remap_failed": "a bad memory row could not be remapped",
    "pages_retired": "more bad memory pages than a GPU may retire",
    "page_retirement_pending": "a bad memory page waits for a reset to be retired",
    "throttled": "slowed down by hardware, heat or a power brake; judged by its share of the last ten minutes",
    "too_hot": "the GPU is near its slowdown temperature",
    "memory_too_hot": "the memory is near its highest temperature",
    "clock_low": "under load the clock stays low and the driver names no reason",
    "pcie_slow": "under load the PCIe link is slower or narrower than device and slot allow",
    "pcie_replays": "the PCIe link replays too many packets",
    "nvlink_inactive": "an NVLink is down that is up on other GPUs of the model, or beside others that are up",
    "nvlink_crc_errors": "NVLinks damage too many packets",
    "nvlink_replays": "NVLinks replay packets too often",
    "nvlink_recoveries": "NVLinks have to be retrained too often",
    "fabric_not_joined": "the GPU has not joined its NVSwitch fabric",
    "fabric_unhealthy": "the NVSwitch fabric fails this GPU",
    "persistence_off": "the driver unloads a GPU that no process uses (persistence mode is off)",
    "memory_leaked": "GPU memory stays in use while no process uses the GPU",
}
"""The meaning of each finding, by code without the name of the check."""


def judge(check: str, measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """The findings of `check`. Their codes begin with its name."""
    node = NodeReading.model_validate(measurement.facts)
    findings = [*_of_node(node), *_xids(node.xids, None)]
    with_links = {device.model for device in node.devices if device.links_active}
    for position, device in enumerate(node.devices):
        numbers = {name: _at(metric, position) for name, metric in measurement.metrics.items()}
        findings += _states(device, with_links)
        findings += _xids(device.xids, device.index)
        findings += _judged_numbers(device, numbers, references)
    return [finding.model_copy(update={"code": f"{check}.{finding.code}"}) for finding in findings]


def _of_node(node: NodeReading) -> list[Finding]:
    return [*_usable(node), *_missing(node), *_unexpected(node), *_unsupported(node), *_not_persistent(node)]


def _usable(node: NodeReading) -> list[Finding]:
    if node.unusable is None:
        return []
    cause = UNUSABLE[node.unusable]
    summary = f"{cause.summary} ({node.detail})" if node.detail else cause.summary
    return [Finding(code=node.unusable, summary=summary, severity=Severity.UNKNOWN, action=cause.action)]


def _missing(node: NodeReading) -> list[Finding]:
    """Missing devices if NVML does not work. In that case the PCI bus is the only evidence.

    If the bus shows no GPU either, nothing was counted. If an image or container lacks the library on a node whose bus
    shows nothing, this does not mean that 8 GPUs are gone.
    """
    if node.unusable is not None and not node.on_bus:
        return []
    seen = [device.pci_address for device in node.devices] if node.unusable is None else list(node.on_bus)
    if node.expected is None or len(seen) >= node.expected:
        return []
    unseen = [address for address in node.on_bus if address not in seen]
    nowhere = [f"index {index}" for index in range(len(seen) + len(unseen), node.expected)]
    return [
        Finding(
            code="devices_missing",
            summary=f"{len(seen)} of {count(node.expected, 'GPU')}: {', '.join([*unseen, *nowhere])} missing",
            severity=Severity.ERROR,
            action=Action.INSPECT_HARDWARE,
            evidence={"expected": node.expected, "found": len(seen), "missing": [*unseen, *nowhere]},
        )
    ]


def _unexpected(node: NodeReading) -> list[Finding]:
    if node.expected is None or len(node.devices) <= node.expected:
        return []
    summary = f"{count(len(node.devices), 'GPU')} where {node.expected} are expected"
    return [Finding(code="devices_unexpected", summary=summary, severity=Severity.WARNING)]


def _unsupported(node: NodeReading) -> list[Finding]:
    if not node.unsupported:
        return []
    return [
        Finding(
            code="unsupported",
            summary=f"not read, because a device here does not support it: {', '.join(node.unsupported)}",
            severity=Severity.SKIPPED,
            evidence={"names": list(node.unsupported)},
        )
    ]


def _not_persistent(node: NodeReading) -> list[Finding]:
    """No fault: NVIDIA's driver-persistence guide says that it costs the first user of a device a few seconds."""
    indices = [device.index for device in node.devices if device.persistence is False]
    if not indices:
        return []
    summary = f"persistence mode is off on GPU {', '.join(map(str, indices))}: the first to use one waits for it"
    return [Finding(code="persistence_off", summary=summary, severity=Severity.INFO, evidence={"devices": [*indices]})]


def _states(device: DeviceReading, with_links: set[str]) -> list[Finding]:
    """States that a device reports, and states that it no longer reports.

    Links that are down are a fault only if devices of the model have links that are up: a card without a bridge has
    none. An A100 that is partitioned switches them off (Fabric Manager user guide, "Interoperability With MIG").
    """
    links_down = device.links_inactive if device.model in with_links and not device.mig else ()
    not_joined = device.fabric not in (None, "completed")
    rows = (
        (device.lost, "device_lost", "the GPU is lost: it no longer answers", Action.REBOOT_NODE),
        (device.reset_required, "reset_required", FINDS["reset_required"], Action.RESET_GPU),
        (device.remap_pending, "row_remap_pending", FINDS["row_remap_pending"], Action.RESET_GPU),
        (device.remap_failed, "row_remap_failed", FINDS["row_remap_failed"], Action.INSPECT_HARDWARE),
        (device.retirement_pending, "page_retirement_pending", FINDS["page_retirement_pending"], Action.RESET_GPU),
        (
            bool(links_down),
            "nvlink_inactive",
            f"{len(links_down)} of {len(device.links_inactive) + device.links_active} NVLinks are down: "
            f"{', '.join(map(str, links_down))}",
            Action.INSPECT_HARDWARE,
        ),
        (
            not_joined,
            "fabric_not_joined",
            f"joining the NVSwitch fabric is {device.fabric}: does Fabric Manager run?",
            Action.REBOOT_NODE,
        ),
        (
            bool(device.fabric_faults),
            "fabric_unhealthy",
            f"NVSwitch fabric: {', '.join(device.fabric_faults)}",
            Action.INSPECT_HARDWARE,
        ),
    )
    errors = [
        Finding(code=code, summary=summary, severity=Severity.ERROR, device=device.index, action=action)
        for holds, code, summary, action in rows
        if holds
    ]
    return [*errors, *_changed(device), *_failed(device)]


def _changed(device: DeviceReading) -> list[Finding]:
    if not device.known_as:
        return []
    summary = f"the GPU is {device.uuid}; the inventory has {device.known_as} at this index"
    return [Finding(code="device_changed", summary=summary, severity=Severity.WARNING, device=device.index)]


def _failed(device: DeviceReading) -> list[Finding]:
    if not device.failed:
        return []
    summary = "; ".join(f"{name}: {error}" for name, error in device.failed.items())
    return [Finding(code="read_failed", summary=summary, severity=Severity.UNKNOWN, device=device.index)]


def _xids(standing: tuple[StandingXid, ...], device: int | None) -> list[Finding]:
    findings = []
    for code, times in standing:
        xid = meaning(code)
        findings.append(
            Finding(
                code="xid",
                summary=f"XID {code}, {xid.name}" + (f", {times} times" if times > 1 else ""),
                severity=xid.severity,
                device=device,
                action=xid.action,
                evidence={"xid": code, "count": times, "source": xid.source},
            )
        )
    return findings


def _judged_numbers(
    device: DeviceReading, numbers: Mapping[str, float | None], references: Mapping[str, Reference]
) -> list[Finding]:
    """The device's own temperature threshold, if it has one, overrides a reference for its model."""
    temperature = "temperature_c" if numbers.get("temperature_headroom_c") is None else "temperature_headroom_c"
    rules = (Rule(temperature, "too_hot", Action.INSPECT_HARDWARE), *_RULES)
    findings = [finding for rule in rules for finding in _judged(rule, device, numbers, references)]
    return [*findings, *_throttled(device, numbers, references), *_errors_before(device, numbers)]


def _judged(
    rule: Rule, device: DeviceReading, numbers: Mapping[str, float | None], references: Mapping[str, Reference]
) -> list[Finding]:
    number, reference = numbers.get(rule.metric), references.get(rule.metric)
    return judge_value(number, reference, code=rule.code, device=device.index, action=rule.action)


def _throttled(
    device: DeviceReading, numbers: Mapping[str, float | None], references: Mapping[str, Reference]
) -> list[Finding]:
    """A slowdown counts by its duration in the window. A slowdown that is seen only now is INFO."""
    rule = Rule("slowed_down_s", "throttled", Action.INSPECT_HARDWARE)
    lasting = _judged(rule, device, numbers, references)
    if lasting or not device.throttled:
        return lasting
    summary = f"slowed down now: {', '.join(device.throttled)}"
    return [
        Finding(
            code="throttled",
            summary=summary,
            severity=Severity.INFO,
            device=device.index,
        )
    ]


def _errors_before(device: DeviceReading, numbers: Mapping[str, float | None]) -> list[Finding]:
    """Errors that a reset or row remapping has repaired convict no device, but operators should know them."""
    ever, now = numbers.get("ecc_uncorrected_aggregate") or 0, numbers.get("ecc_uncorrected_volatile") or 0
    if ever <= now:
        return []
    summary = f"{ever - now:.0f} uncorrected memory errors from before the driver was loaded"
    return [Finding(code="ecc_uncorrected_before", summary=summary, severity=Severity.INFO, device=device.index)]


def _at(metric: Metric, position: int) -> float | None:
    return metric[position] if isinstance(metric, list) else None
