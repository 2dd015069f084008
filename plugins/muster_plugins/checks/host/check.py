"""The check `host`: disks, memory, clock, kernel and services of the host around the GPUs.

It consists of independent looks. If a look cannot find out what it should, a finding names it and the others go on.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pydantic import Field

from muster import (
    Check,
    Config,
    Context,
    Finding,
    Measurement,
    Reference,
    Scope,
    Section,
    Severity,
    hookimpl,
)
from muster.model import Json, Metric
from muster_plugins.checks.host import clock, file_systems, kernel, memory, processes
from muster_plugins.checks.host import services as host_services
from muster_plugins.checks.host.look import CannotDetermine, HostLook, NotApplicable
from muster_plugins.shared.listed_finding import listed_finding
from muster_plugins.shared.no_params import NoParams
from muster_plugins.shared.real_node import must_be_real

NAME = "host"

_PARTS = (file_systems, memory, processes, clock, kernel, host_services)

FINDS = {
    "host.unknown": "could not be determined",
    "host.not_here": "not examined",
} | {code: meaning for part in _PARTS for code, meaning in part.FINDS.items()}

JUDGED = (
    "disk_available_share",
    "inodes_free_share",
    "memory_available_share",
    "memory_available_bytes",
    "shm_bytes",
    "zombies",
    "clock_offset_s",
    "file_handles_used_share",
)


class HostSettings(Section):
    """The table `[plugins.host]`."""

    mounts: tuple[Path, ...] = Field((Path("/"),), description="Paths whose file systems must have space left")
    governor: str | None = Field(None, description="Governor of every CPU on a node with GPUs; unset: any")
    modules: tuple[str, ...] | None = Field(
        None, description="Kernel modules that must be loaded; unset: nvidia, on nodes with GPUs that no driver shows"
    )
    services: tuple[str, ...] = Field(
        (), description="Units of systemd that must be active, with their suffix: nvidia-fabricmanager.service"
    )
    container_runtimes: tuple[Path, ...] = Field(
        (), description="Sockets of container runtimes that must accept connections"
    )
    known_runtimes: tuple[Path, ...] = Field(
        host_services.KNOWN_RUNTIMES, description="Sockets of container runtimes to try if they exist"
    )
    driver_processes: tuple[str, ...] = Field(
        processes.DRIVER_NAMES, description="Patterns of names of the driver's processes"
    )
    systemctl: Path = Field(Path("systemctl"), description="The systemctl executable")
    proc: Path = Field(Path("/proc"), description="Where procfs is mounted")
    sys: Path = Field(Path("/sys"), description="Where sysfs is mounted")
    fstab: Path = Field(Path("/etc/fstab"), description="Path of fstab")
    shm: Path = Field(Path("/dev/shm"), description="Path of the file system for shared memory")  # noqa: S108  named, never written


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """The findings of each part, and of what could not be examined."""
    return [
        *(found for part in _PARTS for found in part.judge(measurement, references)),
        *_reasons(measurement, "unknown", Severity.UNKNOWN),
        *_reasons(measurement, "not_here", Severity.SKIPPED),
    ]


def _reasons(measurement: Measurement, kind: str, severity: Severity) -> list[Finding]:
    reasons = measurement.facts.get(kind)
    assert isinstance(reasons, dict)
    return listed_finding(FINDS, f"{NAME}.{kind}", severity, (f"{name} ({why})" for name, why in reasons.items()))


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, HostSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[NoParams]]:
    return [
        Check(
            name=NAME,
            summary="The host around the GPUs: disks, memory, stuck processes, clock, kernel modules, services",
            scope=Scope.NODE,
            params=NoParams,
            measure=partial(measure, looks(config.plugin(NAME, HostSettings))),
            judge=judge,
            timeout_s=20.0,
            cadence_s=60.0,
            resident=True,
            judged=JUDGED,
            finds=FINDS,
            cost_s=0.1,
            precedent="kubelet eviction, node-problem-detector, Prometheus node mixin, gpud, LBNL Node Health Check",
        )
    ]


def looks(settings: HostSettings) -> dict[str, HostLook]:
    """All looks by name."""
    proc, sysfs = settings.proc, settings.sys
    return {
        "file systems": file_systems.FileSystems(settings.mounts, proc, settings.fstab),
        "memory": partial(memory.available, proc),
        "shared memory": partial(memory.shared, settings.shm, sysfs),
        "locked memory": partial(memory.lockable, sysfs),
        "processes": processes.Processes(proc, settings.driver_processes),
        "clock": clock.look,
        "file handles": partial(kernel.file_handles, proc),
        "CPU governor": partial(kernel.governors, sysfs, settings.governor),
        "kernel modules": partial(kernel.modules, sysfs, settings.modules),
        "services": partial(host_services.units, settings.systemctl, settings.services, sysfs),
        "container runtime": partial(host_services.runtimes, settings.container_runtimes, settings.known_runtimes),
    }


def measure(looks: Mapping[str, HostLook], params: NoParams, context: Context) -> Measurement:
    """The results of all looks together. If a look finds nothing to examine, the facts say why."""
    must_be_real(context)
    metrics: dict[str, Metric] = {}
    facts: Json = {}
    not_here: Json = {}
    unknown: Json = {}
    for name, look in looks.items():
        try:
            seen = look(context)
        except NotApplicable as reason:
            not_here[name] = str(reason)
        except (CannotDetermine, OSError) as reason:
            unknown[name] = str(reason)
        else:
            metrics |= seen.metrics
            facts |= seen.facts
    return Measurement(metrics=metrics, facts=facts | {"not_here": not_here, "unknown": unknown})
