"""The check `fabric`: the ports of InfiniBand, RoCE and gIB, and what a job needs to send GPU memory through them.

It looks several times a minute, because a flapping link may be down for seconds only, and it counts errors by the hour.
The settings say which ports must be active. Without settings, every port that was active since the agent's start must.
"""

import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from pydantic import Field

from muster import (
    Action,
    Check,
    Config,
    Context,
    Finding,
    Measurement,
    Reference,
    Scope,
    Severity,
    Skip,
    hookimpl,
    judge_value,
)
from muster.model import Json
from muster_plugins.checks.fabric import software, sysfs
from muster_plugins.checks.fabric.counters import COUNTERS, metric_of
from muster_plugins.checks.fabric.history import FabricHistory, PortReading
from muster_plugins.checks.fabric.reading import Expectation, FabricReading, required_ports
from muster_plugins.shared.listed_finding import MOST_LISTED, listed_finding
from muster_plugins.shared.no_params import NoParams
from muster_plugins.shared.real_node import must_be_real

NAME = "fabric"

FINDS = {
    "fabric.ports_missing": "ports that must be active are not",
    "fabric.port_down": "ports that were active are down",
    "fabric.port_drop": "ports stay down",
    "fabric.port_flap": "ports go down and come back repeatedly",
    "fabric.link_layer": "ports of another kind than the expected fabric",
    "fabric.rate_low": "ports slower than they must be",
    "fabric.gib_missing": "no file of gIB matches",
    "fabric.no_gpu_direct": "the network cannot access GPU memory: no peer memory module, no dma-buf",
    "fabric.gpu_direct_unknown": "no peer memory module, and support for dma-buf is unknown",
    "fabric.unreadable": "could not be read",
    "fabric.counter_stopped": "counters at their limit; they stop counting until they are reset",
    "fabric.unsupported": "not provided by a port here",
    "fabric.not_yet_counted": "errors are counted from the second reading on",
    "fabric.port_not_judged": "not active since the agent started, and no setting requires these ports",
    "fabric.port_elsewhere": "in another network namespace, such as a pod's, and not read",
    "fabric.excluded": "not read, because of the settings",
} | {f"{NAME}.{name}": counter.meaning for name, counter in COUNTERS.items()}


class FabricSettings(Expectation):
    """The table `[plugins.fabric]`."""

    exclude: tuple[str, ...] = Field((), description="Devices to ignore, such as mlx5_2 or mlx5_bond_*")
    sysfs_root: Path = Field(sysfs.SYSFS, description="Where sysfs is mounted")
    proc_root: Path = Field(software.PROCFS, description="Where procfs is mounted")
    gib_files: tuple[str, ...] = Field(
        ("/usr/local/gib/lib64/libnccl-net*.so", "/usr/local/gib/configs/*.txtpb"),
        description="Patterns; each must match a file of gIB",
    )


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Findings about missing, down, slow or wrong ports, about errors by reference, and about software."""
    reading = FabricReading.model_validate(measurement.facts)
    return [
        *_missing(reading),
        *_down(reading),
        *_wrong_layer(reading),
        *_slow(reading),
        *_over_time(reading, references),
        *_counted(reading, references),
        *_software(reading),
        *_not_reported(reading),
    ]


def _finding(code: str, severity: Severity, parts: Iterable[str], action: Action = Action.NONE) -> list[Finding]:
    """One finding that names all its ports; none without ports."""
    return listed_finding(FINDS, f"{NAME}.{code}", severity, parts, action)


def _missing(reading: FabricReading) -> list[Finding]:
    demand = required_ports(reading)
    down = [f"{port.name} is {_state(port)}" for port in demand.ports if port.state and not port.active]
    absent = [f"{name} not there" for name in demand.absent]
    return _finding("ports_missing", Severity.ERROR, [*down, *absent], Action.INSPECT_HARDWARE)


def _down(reading: FabricReading) -> list[Finding]:
    """Ports that are down. A port that no setting requires may be down for a while before it counts as dropped."""
    demand = required_ports(reading)
    others = [port for port in reading.ports if port.state and not port.active and port not in demand.ports]
    down = [f"{port.name} is {_state(port)}" for port in others if port.remembered]
    away = [f"{name} is not there" for name in reading.gone if name not in demand.absent]
    return [
        *_finding("port_down", Severity.WARNING, [*down, *away]),
        *_finding("port_not_judged", Severity.SKIPPED, (port.name for port in others if not port.remembered)),
    ]


def _state(port: PortReading) -> str:
    return f"{port.state} ({port.phys_state})" if port.phys_state else port.state


def _wrong_layer(reading: FabricReading) -> list[Finding]:
    layer = reading.expectation.link_layer
    wrong = [port for port in reading.ports if layer and port.link_layer and port.link_layer != layer]
    wanted = reading.expectation.devices
    parts = (f"{port.name} is {port.link_layer}" for port in wrong if reading.has_too_few or port.device in wanted)
    return _finding("link_layer", Severity.ERROR, parts)


def _slow(reading: FabricReading) -> list[Finding]:
    parts = []
    for port in reading.ports:
        wanted = reading.expectation.devices.get(port.device) or reading.expectation.rate_gbitps
        wanted = wanted or port.best_rate_gbitps
        if port.active and port.rate_gbitps and wanted and port.rate_gbitps < wanted:
            parts.append(f"{port.name} runs at {port.rate_gbitps:g} of {wanted:g} Gbit/s")
    return _finding("rate_low", Severity.ERROR, parts, Action.INSPECT_HARDWARE)


def _over_time(reading: FabricReading, references: Mapping[str, Reference]) -> list[Finding]:
    came_back = {port.name: float(port.reactivations) for port in reading.ports}
    return [
        *_worst(reading.down_s, references.get("port_down_s"), "port_drop", Action.INSPECT_HARDWARE),
        *_worst(came_back, references.get("port_reactivations"), "port_flap", Action.INSPECT_HARDWARE),
    ]


def _counted(reading: FabricReading, references: Mapping[str, Reference]) -> list[Finding]:
    return [
        finding
        for name, counter in COUNTERS.items()
        for finding in _worst(reading.counts(name), references.get(metric_of(name)), name, counter.action)
    ]


def _worst(values: Mapping[str, float], reference: Reference | None, code: str, action: Action) -> list[Finding]:
    """One finding for the port that is furthest beyond the reference. It also names the other ports beyond it."""
    findings = {
        port: found
        for port, value in values.items()
        for found in judge_value(value, reference, code=f"{NAME}.{code}", action=action)
    }
    if not findings:
        return []
    worst_first = sorted(findings, key=lambda port: -values[port])[:MOST_LISTED]
    worst = findings[worst_first[0]]
    summary = f"{FINDS[worst.code]} on {', '.join(worst_first)}: {worst.summary}"
    beyond: Json = {port: values[port] for port in worst_first}
    return [worst.model_copy(update={"summary": summary, "evidence": worst.evidence | {"ports": beyond}})]


def _software(reading: FabricReading) -> list[Finding]:
    """Findings about missing software. Plain Ethernet, as in a virtual machine, needs none."""
    findings = _finding("gib_missing", Severity.ERROR, reading.gib_missing)
    way = reading.gpu_direct
    if way is None or way.peer_memory or way.dma_buf:
        return findings
    is_fabric = reading.expectation.is_any or reading.fabric == "ib"
    if way.dma_buf is None:
        severity = Severity.UNKNOWN if is_fabric else Severity.SKIPPED
        return findings + _finding("gpu_direct_unknown", severity, [way.detail])
    severity = Severity.WARNING if is_fabric else Severity.SKIPPED
    return findings + _finding("no_gpu_direct", severity, [way.detail])


def _not_reported(reading: FabricReading) -> list[Finding]:
    """Findings about what was not read, and why. Unknown is never healthy."""
    unreadable = [f"{port.name} {name} ({why})" for port in reading.ports for name, why in port.unreadable.items()]
    stopped = [f"{port.name} {name}" for port in reading.ports for name in port.saturated]
    unsupported = sorted({name for port in reading.ports for name in port.unsupported})
    first = [port.name for port in reading.ports if port.counted is None]
    return [
        *_finding("unreadable", Severity.UNKNOWN, unreadable),
        *_finding("counter_stopped", Severity.SKIPPED, stopped),
        *_finding("unsupported", Severity.SKIPPED, unsupported),
        *_finding("not_yet_counted", Severity.SKIPPED, first),
        *_finding("port_elsewhere", Severity.SKIPPED, reading.elsewhere),
        *_finding("excluded", Severity.SKIPPED, reading.excluded),
    ]


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, FabricSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[NoParams]]:
    return [
        Check(
            name=NAME,
            summary="Ports of InfiniBand, RoCE and gIB: there, active, at full rate, without errors, drops and flaps",
            scope=Scope.NODE,
            params=NoParams,
            measure=partial(measure, config.plugin(NAME, FabricSettings), FabricHistory()),
            judge=judge,
            timeout_s=10.0,
            cadence_s=30.0,
            resident=True,
            judged=("port_down_s", "port_reactivations", *(metric_of(name) for name in COUNTERS)),
            finds=FINDS,
            cost_s=0.1,
            precedent="gpud (drops and flaps), NVSentinel NIC health monitor (counters), Azure node health checks",
        )
    ]


def measure(settings: FabricSettings, history: FabricHistory, params: NoParams, context: Context) -> Measurement:
    """Reads every port once. Raises Skip on a simulated node, and if there is no port and none is expected."""
    must_be_real(context)
    names = sysfs.devices(settings.sysfs_root)
    excluded = sysfs.excluded(names, settings.exclude)
    ports = sysfs.read_ports(settings.sysfs_root, [name for name in names if name not in excluded])
    out_of_sight = sysfs.out_of_sight(settings.sysfs_root)
    readings, gone = history.observe(ports, time.monotonic(), out_of_sight)
    elsewhere = tuple(history.device_at(pci) or pci for pci in out_of_sight)
    if not ports and not gone and not elsewhere and not settings.is_any:
        raise Skip("every InfiniBand or RoCE device here is excluded" if excluded else "no InfiniBand or RoCE here")
    is_gib, sends_from_gpus = settings.expect == "gib", bool(context.devices and ports)
    return FabricReading(
        expectation=settings,
        ports=readings,
        gone=gone,
        elsewhere=elsewhere,
        excluded=excluded,
        gib_missing=software.missing(settings.gib_files) if is_gib else (),
        gpu_direct=software.gpu_direct(settings.sysfs_root, settings.proc_root) if sends_from_gpus else None,
    ).measurement()
