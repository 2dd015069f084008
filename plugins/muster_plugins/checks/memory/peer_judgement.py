"""Judges the copies between devices: whether a device or a pair is slow. Pure."""

from collections.abc import Mapping

from pydantic import JsonValue

from muster import Action, Finding, Measurement, Reference, Severity, judge_value
from muster.nouns import count
from muster_plugins.shared.metric_judgement import device_metric

METRIC = "peer_gbps"

MATRIX = "peer_matrix_gbps"

FINDS = {
    "memory.peer_slow": "copies between a device and most of the others are slow",
    "memory.pair_slow": "copies between two devices are slow, but their copies with other devices are not",
    "memory.no_peer_access": "devices that cannot read each other's memory, so copies go through the host",
}


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Names a device that is slow with most others, or else the pair, because either device may be the cause."""
    reference = references.get(METRIC)
    devices = device_metric(measurement, METRIC)
    found: list[Finding] = []
    if len(devices) > 2:  # with only two devices, either may be the slow one
        for device, value in devices:
            found += judge_value(
                value, reference, code="memory.peer_slow", device=device, action=Action.INSPECT_HARDWARE
            )
    named = {finding.device for finding in found}
    return found + _slow_pairs(measurement, reference, named) + _no_access(measurement)


def _slow_pairs(measurement: Measurement, reference: Reference | None, named: set[int | None]) -> list[Finding]:
    """One finding for all slow pairs without a device that is already named."""
    matrix, devices = measurement.facts.get(MATRIX), measurement.facts["devices"]
    if not isinstance(matrix, list) or not isinstance(devices, list):
        return []
    slow: list[tuple[JsonValue, Finding]] = []
    for source, speeds in zip(devices, matrix, strict=True):
        assert isinstance(speeds, list)
        for target, speed in zip(devices, speeds, strict=True):
            if source not in named and target not in named and isinstance(speed, float):
                findings = judge_value(speed, reference, code="memory.pair_slow", action=Action.INSPECT_HARDWARE)
                slow += [([source, target], finding) for finding in findings]
    if not slow:
        return []
    worst = max((finding for _, finding in slow), key=lambda finding: finding.severity is Severity.ERROR)
    pairs = [pair for pair, _ in slow]
    summary = f"{count(len(pairs), 'pair')} of devices, for example {pairs[0]}: {worst.summary}"
    return [worst.model_copy(update={"summary": summary, "evidence": worst.evidence | {"pairs": pairs}})]


def _no_access(measurement: Measurement) -> list[Finding]:
    pairs = measurement.facts.get("without_peer_access")
    if not pairs or not isinstance(pairs, list):
        return []
    return [
        Finding(
            code="memory.no_peer_access",
            summary=f"{count(len(pairs), 'pair')} of devices cannot read each other's memory; "
            "copies go through the host",
            severity=Severity.INFO,
            evidence={"pairs": pairs},
        )
    ]
