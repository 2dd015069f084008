"""The check `collective`: all ranks of a group exchange messages; it checks every element and measures bandwidth.

busbw is algbw times a factor of the collective, and algbw is size / time, as nccl-tests define them, with GB = 1e9
bytes. The ranks exchange their hosts and their NCCL logs, so that a result says which hardware and transport it
measured.
"""

from collections.abc import Mapping
from functools import partial

from pydantic import Field

from muster import Check, Config, Context, Finding, Measurement, Needs, Reference, Scope, Severity, hookimpl
from muster.model import Json
from muster_plugins.checks.collective import retransmits
from muster_plugins.shared.collectives.judgement import FINDS, JUDGED, judge_results
from muster_plugins.shared.collectives.params import CollectiveParams
from muster_plugins.shared.device_choice import Choice
from muster_plugins.shared.nccl.environment import NcclSettings

NAME = "collective"

_FINDS = {
    "too_large": "a message does not fit into the memory of a device; nothing was measured",
    "no_rails": "not measured by rail: the group has one node, or its nodes have different numbers of ranks",
    "same_host": "nodes of the group share a host: the network between hosts was not measured",
}


class CollectiveSettings(NcclSettings):
    """The table `[plugins.collective]`."""

    peak_gbps: float | None = Field(
        None, gt=0, description="Reference bus bandwidth for the efficiency; unset: the published value"
    )


class GroupParams(CollectiveParams):
    """Parameters of a run over a group."""

    timeout_s: float = Field(30.0, gt=0, le=3600, description="How long a rank waits for the others in one operation")
    device: Choice = Field("auto", description="cpu: use gloo on the CPU even on a node with GPUs")
    by_rail: bool = Field(
        False, description="true: afterwards also measure each rail (the ranks with the same local rank) by itself"
    )


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Wrong elements and the wrong transport are errors; speed and retransmissions are judged against references."""
    return [
        *judge_results(NAME, measurement, references),
        *retransmits.judge_resent(NAME, measurement, references),
        *_judge_hosts(measurement.facts),
    ]


def _judge_hosts(facts: Json) -> list[Finding]:
    """Nodes that share a host say nothing about the network between hosts.

    With simulated devices this is intended. With gloo it is only a note, because no reference judges gloo's bandwidth.
    """
    shared = facts.get("same_host")
    if not isinstance(shared, list) or not shared or facts["simulated"]:
        return []
    return [
        Finding(
            code="collective.same_host",
            summary=f"{', '.join(map(str, shared))} are on the same host: the network between hosts was not measured",
            severity=Severity.UNKNOWN if facts["backend"] == "nccl" else Severity.INFO,
            evidence={"nodes": shared},
        )
    ]


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, CollectiveSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[GroupParams]]:
    return [
        Check(
            name=NAME,
            summary="A collective over all devices of a group: bandwidth, latency, and whether every element is right",
            scope=Scope.GROUP,
            params=GroupParams,
            measure=partial(_measure, config.plugin(NAME, CollectiveSettings)),
            judge=judge,
            timeout_s=120.0,
            needs=Needs.IDLE_NODE,
            objective="busbw_gbps",
            by_rail="rail_busbw_gbps",
            quick={"iterations": 3, "warmup": 1},
            judged=(*JUDGED, retransmits.METRIC),
            finds={f"{NAME}.{word}": meaning for word, meaning in (FINDS | retransmits.FINDS | _FINDS).items()},
            cost_s=15.0,
            precedent="nccl-tests, Google cluster-health-scanner, Azure node health checks",
        )
    ]


def _measure(settings: CollectiveSettings, params: GroupParams, context: Context) -> Measurement:
    from muster_plugins.checks.collective.measure import measure  # noqa: PLC0415 (memory that only a run should spend)

    return measure(settings, params, context)
