"""Judges the results of collectives for every check that measures them. Pure; the codes begin with the check's name."""

from collections.abc import Mapping

from muster import Action, Finding, Measurement, Reference, Severity
from muster_plugins.shared.metric_judgement import NOT_ASKED, device_index, judge_single, missing_devices, single_metric
from muster_plugins.shared.nccl import transport
from muster_plugins.shared.unmeasured import unmeasured_finding

FINDS = {
    "devices_missing": "fewer devices than expected; nothing was measured",
    "not_asked": NOT_ASKED,
    "wrong_elements": "wrong elements in the result of a collective: a device or link corrupts data",
    "slow": "bus bandwidth of large messages is below its reference",
    "latency": "a small message takes longer than its reference",
} | transport.FINDS
"""What each finding means, by the part of its code after the check's name."""

JUDGED = ("busbw_gbps", "latency_us")
"""The metrics that references may judge."""


def judge_results(check: str, measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """The reason why nothing was measured; or findings about wrong elements, the transport, bandwidth and latency."""
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
