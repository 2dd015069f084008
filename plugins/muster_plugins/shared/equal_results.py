"""Judges the bits of devices that computed the same: each device against its like, and against itself. Pure.

A check measures `changed_results` for each device, and its facts have `repeats` and, for one computation, the
`fingerprints` of the devices.
"""

from collections import Counter
from collections.abc import Sequence

from muster import Action, Finding, Measurement, Severity
from muster.model import Json
from muster_plugins.shared.metric_judgement import device_index, device_metric


def result_finds(check: str, work: str) -> dict[str, str]:
    """The meaning of the findings of `judge_results`, by their code for `check`; `work` is what a device did."""
    return {
        f"{check}.results_differ": f"a device ended the same {work} with other bits than most devices of its model",
        f"{check}.results_change": f"a device ended the same {work} with other bits than the first time",
        f"{check}.disagreement": f"devices of one model ended the same {work} with different bits, without a majority",
    }


def judge_results(check: str, work: str, measurement: Measurement) -> list[Finding]:
    """Convicts a device whose bits differ from most of its like, or from its own first ones."""
    return _changed(check, work, measurement) + _differing(check, work, measurement)


def judge_finite(measurement: Measurement, metric: str, *, code: str, meaning: str, action: Action) -> list[Finding]:
    """Convicts a device that has a result but no number for `metric`: it became infinite or NaN."""
    ended = {device for device, _, _ in device_results(measurement)}
    return [
        Finding(code=code, summary=meaning, severity=Severity.ERROR, device=device, action=action)
        for device, value in device_metric(measurement, metric)
        if value is None and device in ended
    ]


def outliers(values: Sequence[object]) -> list[int]:
    """The positions of the values that differ from the most frequent one; all positions if there is no such value.

    If two values differ, both positions are returned, because either may be wrong.
    """
    counted = Counter(values).most_common(2)
    if len(counted) < 2:
        return []
    (most, times), (_, next_times) = counted
    return [position for position, value in enumerate(values) if times == next_times or value != most]


def _changed(check: str, work: str, measurement: Measurement) -> list[Finding]:
    return [
        Finding(
            code=f"{check}.results_change",
            summary=f"{changed:.0f} of {measurement.facts['repeats']} runs of the same {work} ended with other bits "
            "than the first",
            severity=Severity.ERROR,
            device=device,
            action=Action.REPLACE,
            evidence={"changed": changed},
        )
        for device, changed in device_metric(measurement, "changed_results")
        if changed
    ]


def _differing(check: str, work: str, measurement: Measurement) -> list[Finding]:
    results = device_results(measurement)
    found = []
    for model in sorted({model for _, model, _ in results}):
        alike = [(device, fingerprint) for device, of, fingerprint in results if of == model]
        odd = [alike[position] for position in outliers([fingerprint for _, fingerprint in alike])]
        evidence: Json = {"fingerprints": {str(device): fingerprint for device, fingerprint in alike}}
        if len(odd) == len(alike):
            found.append(_disagreement(check, work, model, evidence))
        else:
            found += [_deviates(check, work, device, model, evidence) for device, _ in odd]
    return found


def _deviates(check: str, work: str, device: int | None, model: str, evidence: Json) -> Finding:
    return Finding(
        code=f"{check}.results_differ",
        summary=f"the same {work} ended with other bits than on the node's other {model}",
        severity=Severity.ERROR,
        device=device,
        action=Action.REPLACE,
        evidence=evidence,
    )


def _disagreement(check: str, work: str, model: str, evidence: Json) -> Finding:
    return Finding(
        code=f"{check}.disagreement",
        summary=f"the same {work} ended with different bits on the {model} of this node: one of them is wrong",
        severity=Severity.UNKNOWN,
        action=Action.INSPECT_HARDWARE,
        evidence=evidence,
    )


def device_results(measurement: Measurement) -> list[tuple[int | None, str, str]]:
    """The device, its model and its fingerprint, for each device that has one."""
    devices, models, fingerprints = (measurement.facts.get(name) for name in ("devices", "models", "fingerprints"))
    if not (isinstance(devices, list) and isinstance(models, list) and isinstance(fingerprints, dict)):
        return []
    ((_computation, results),) = fingerprints.items()
    assert isinstance(results, list)
    rows = zip(devices, models, results, strict=True)
    return [(device_index(device), str(model), str(result)) for device, model, result in rows if result is not None]
