"""Judgements that checks have in common: missing devices, and metrics with one number or one per device. Pure."""

from collections.abc import Mapping

from pydantic import JsonValue

from muster import Action, Finding, Measurement, Reference, Severity, judge_value

NOT_ASKED = "devices are expected, but none could be queried, so nothing was measured"
"""The meaning of the finding `not_asked` of `missing_devices`."""


def missing_devices(check: str, measurement: Measurement) -> list[Finding]:
    """The finding that devices are missing, or that none could be queried, if the facts of `measurement` say so.

    If CUDA finds no device at all, the node has lost its driver or its library far more often than all of its devices.
    Therefore this is no evidence against the devices. `nvml` names the cause.
    """
    missing = measurement.facts["missing"]
    if not isinstance(missing, list) or not missing:
        return []
    if not _found_devices(measurement):
        return [_not_asked(check, missing)]
    return [
        Finding(
            code=f"{check}.devices_missing",
            summary=f"no device with index {', '.join(str(index) for index in missing)}",
            severity=Severity.ERROR,
            action=Action.INSPECT_HARDWARE,
            evidence={"missing": missing},
        )
    ]


def _found_devices(measurement: Measurement) -> list[JsonValue]:
    """The indices of the devices that were found; the CPU that replaces them has no index."""
    devices = measurement.facts.get("devices")
    return [index for index in devices if index is not None] if isinstance(devices, list) else []


def _not_asked(check: str, expected: list[JsonValue]) -> Finding:
    return Finding(
        code=f"{check}.not_asked",
        summary=f"no GPU could be queried, {len(expected)} expected; the check nvml says why",
        severity=Severity.UNKNOWN,
        evidence={"expected": expected},
    )


def hidden_devices(check: str, measurement: Measurement) -> list[Finding]:
    """The finding that devices were not measured because CUDA_VISIBLE_DEVICES hides them, which is not their fault."""
    hidden = measurement.facts.get("hidden")
    if not isinstance(hidden, list) or not hidden:
        return []
    return [
        Finding(
            code=f"{check}.devices_hidden",
            summary=f"not measured: CUDA_VISIBLE_DEVICES hides device {', '.join(str(index) for index in hidden)}",
            severity=Severity.SKIPPED,
            evidence={"hidden": hidden},
        )
    ]


def device_metric(measurement: Measurement, name: str) -> list[tuple[int | None, float | None]]:
    """A metric with one number per device as pairs of device index (None: the CPU) and number."""
    values, indices = measurement.metrics.get(name), measurement.facts["devices"]
    if not isinstance(values, list) or not isinstance(indices, list):
        return []
    return [(device_index(index), value) for index, value in zip(indices, values, strict=True)]


def judge_each_device(
    measurement: Measurement,
    references: Mapping[str, Reference],
    metric: str,
    *,
    code: str,
    action: Action = Action.NONE,
) -> list[Finding]:
    """Judges a metric with one number per device against one reference; each finding names its device."""
    return [
        finding
        for device, value in device_metric(measurement, metric)
        for finding in judge_value(value, references.get(metric), code=code, device=device, action=action)
    ]


def device_index(fact: JsonValue) -> int | None:
    """A device index from facts, which are JSON."""
    return fact if isinstance(fact, int) else None


def single_metric(measurement: Measurement, name: str) -> float | None:
    """A metric with a single number; None if it was not measured."""
    value = measurement.metrics.get(name)
    assert not isinstance(value, list), f"{name} is one number, not one per device"
    return value


def judge_single(
    measurement: Measurement,
    references: Mapping[str, Reference],
    metric: str,
    *,
    code: str,
    device: int | None = None,
    action: Action = Action.NONE,
) -> list[Finding]:
    """Judges a metric with one number against its reference; the finding is about `device`, None for the node."""
    return judge_value(
        single_metric(measurement, metric), references.get(metric), code=code, device=device, action=action
    )
