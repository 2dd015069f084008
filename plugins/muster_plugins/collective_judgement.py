"""Judges the results of collectives, whoever measured them: pure, with codes that begin with the check's name."""

from collections.abc import Mapping

from muster import Action, Finding, Measurement, Reference, Severity, judge_value
from muster_plugins.torch_device import device_index

FINDS = {
    "devices_missing": "fewer devices than there should be; nothing was measured",
    "wrong_elements": "elements of a result are not what the collective must give: a device or link corrupts data",
    "slow": "bus bandwidth of large messages is below its reference",
    "latency": "a small message takes longer than its reference",
}
"""What the findings mean, by the part of their code behind the check's name."""

JUDGED = ("busbw_gbps", "latency_us")
"""The metrics that references are meant to judge."""


def judge_results(check: str, measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Wrong elements are an error; bandwidth and latency are judged against references."""
    values = {name: value for name, value in measurement.metrics.items() if isinstance(value, float)}
    findings = _wrong(check, measurement, values.get("wrong_elements", 0.0))
    for metric, code in (("busbw_gbps", "slow"), ("latency_us", "latency")):
        findings += judge_value(values.get(metric), references.get(metric), code=f"{check}.{code}")
    return findings


def _wrong(check: str, measurement: Measurement, wrong: float) -> list[Finding]:
    if not wrong:
        return []
    rank = measurement.facts.get("rank")
    where = "" if rank is None else f" on rank {rank}"
    return [
        Finding(
            code=f"{check}.wrong_elements",
            summary=f"{wrong:.0f} elements of {measurement.facts['collective']} are wrong{where}",
            severity=Severity.ERROR,
            device=device_index(measurement.facts.get("device")),
            action=Action.INSPECT_HARDWARE,
            evidence={"wrong_elements": wrong, "rank": rank},
        )
    ]
