"""Judges the results of collectives, whoever measured them: pure, with codes that begin with the check's name."""

from collections.abc import Mapping

from muster import Action, Finding, Measurement, Reference, Severity
from muster_plugins.shared.metric_judgement import NOT_ASKED, device_index, judge_single, missing_devices, single_metric
from muster_plugins.shared.nccl import transport
from muster_plugins.shared.unmeasured import unmeasured_finding

FINDS = {
    "devices_missing": "fewer devices than there should be; nothing was measured",
    "not_asked": NOT_ASKED,
    "wrong_elements": "elements of a result are not what the collective must give: a device or link corrupts data",
    "slow": "bus bandwidth of large messages is below its reference",
    "latency": "a small message takes longer than its reference",
} | transport.FINDS
"""What the findings mean, by the part of their code behind the check's name."""

JUDGED = ("busbw_gbps", "latency_us")
"""The metrics that references are meant to judge."""


def judge_results(check: str, measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Why nothing was measured; or wrong elements, the wrong transport, and bandwidth and latency by reference."""
    if missing := missing_devices(check, measurement):
        return missing
    if unmeasured := unmeasured_finding(check, measurement):
        return [unmeasured]
    return [
        *_wrong(check, measurement),
        *judge_single(measurement, references, "busbw_gbps", code=f"{check}.slow"),
        *judge_single(measurement, references, "latency_us", code=f"{check}.latency"),
        *transport.judge_transport(check, measurement.facts),
    ]


def _wrong(check: str, measurement: Measurement) -> list[Finding]:
    wrong = single_metric(measurement, "wrong_elements")
    if not wrong:
        return []
    rank, peers = measurement.facts.get("rank"), measurement.facts.get("peers")
    where = "" if rank is None else f" on rank {rank}"
    return [
        Finding(
            code=f"{check}.wrong_elements",
            summary=f"{wrong:.0f} elements of {measurement.facts['collective']} are wrong{where}",
            severity=Severity.ERROR,
            device=device_index(measurement.facts.get("device")),
            action=Action.INSPECT_HARDWARE,
            evidence={"wrong_elements": wrong, "rank": rank} | ({"peers": peers} if peers else {}),
        )
    ]
