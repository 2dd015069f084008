"""What failures of a device mean: findings from the facts that `torch_failures` gives. Pure."""

from muster import Action, Finding, Measurement, Severity
from muster.model import Json
from muster_plugins.shared.metric_judgement import NOT_ASKED, device_index


def device_finds(check: str) -> dict[str, str]:
    """The meaning of the findings of `failures`, `missing_devices` and `hidden_devices`, by their code for `check`."""
    return {
        f"{check}.devices_missing": "the node has fewer devices than expected",
        f"{check}.not_asked": NOT_ASKED,
        f"{check}.devices_hidden": "devices that CUDA_VISIBLE_DEVICES hides were not measured",
        f"{check}.out_of_memory": "a device has too little free memory for what was asked, so it was not measured",
        f"{check}.device_failed": "a device returned an error during its work, or vanished",
    }


def failures(check: str, measurement: Measurement) -> list[Finding]:
    """A finding for each device and each reason in the fact `failed`, with how often it happened."""
    found: dict[tuple[int | None, str], list[Json]] = {}
    facts = measurement.facts.get("failed")
    for fact in facts if isinstance(facts, list) else []:
        assert isinstance(fact, dict)
        found.setdefault((device_index(fact["device"]), str(fact["reason"])), []).append(fact)
    return [_finding(check, device, reason, times) for (device, reason), times in found.items()]


def _finding(check: str, device: int | None, reason: str, times: list[Json]) -> Finding:
    evidence = times[0]["evidence"]
    assert isinstance(evidence, dict)
    return Finding(
        code=f"{check}.{reason}",
        summary=str(times[0]["detail"]),
        severity=Severity.UNKNOWN,
        device=device,
        action=Action.INSPECT_HARDWARE if reason == "device_failed" else Action.NONE,
        evidence=evidence | {"times": len(times)},
    )
