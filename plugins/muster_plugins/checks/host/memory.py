"""Memory of the host: what is available, shared memory for NCCL, and how much may be locked for RDMA."""

import os
import resource
from collections.abc import Mapping
from pathlib import Path

from muster import Context, Finding, Measurement, Reference, Severity
from muster.model import Metric
from muster_plugins.checks.host.look import SHARE_DIGITS, CannotDetermine, NotApplicable, has_gpus, read
from muster_plugins.shared.listed_finding import listed_finding
from muster_plugins.shared.metric_judgement import judge_single

FINDS = {
    "host.memory_low": "little memory is available",
    "host.shm_small": "the shared memory is smaller than NCCL needs",
    "host.memlock": "RDMA locks memory, so the limit must be unlimited; it holds for what the agent starts",
}


def available(proc: Path, context: Context) -> Measurement:
    """The share of memory that programs can get without swapping, by the kernel's estimate."""
    lines = (line.split() for line in read(proc / "meminfo").splitlines())
    kib = {row[0]: int(row[1]) for row in lines if len(row) >= 2 and row[1].isdecimal()}
    try:
        total, free = kib["MemTotal:"], kib["MemAvailable:"]
        share = round(free / total, SHARE_DIGITS)
        metrics: dict[str, Metric] = {"memory_available_share": share, "memory_available_bytes": free * 1024.0}
    except (KeyError, ArithmeticError):
        raise CannotDetermine(f"{proc / 'meminfo'} does not say MemTotal and MemAvailable") from None
    return Measurement(metrics=metrics)


def shared(shm: Path, sysfs: Path, context: Context) -> Measurement:
    """The size of the file system in which NCCL's processes share memory, on hosts with GPUs."""
    if not has_gpus(context, sysfs):
        raise NotApplicable("no GPU here")
    try:
        found = os.statvfs(shm)
    except OSError as error:
        raise CannotDetermine(f"{shm}: {error.strerror}") from None
    return Measurement(metrics={"shm_bytes": float(found.f_blocks * found.f_frsize)})


def lockable(sysfs: Path, context: Context) -> Measurement:
    """How much memory this process may lock, -1 for no limit, on hosts with RDMA devices and GPUs."""
    if not has_gpus(context, sysfs):
        raise NotApplicable("no GPU here")
    rdma = sysfs / "class/infiniband"
    if not rdma.is_dir() or not any(rdma.iterdir()):
        raise NotApplicable("no RDMA device here")
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return Measurement(facts={"memlock_bytes": -1 if limit == resource.RLIM_INFINITY else limit})


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Judges available and shared memory by reference, and finds any limit on locked memory."""
    limit = measurement.facts.get("memlock_bytes", -1)
    parts = [] if limit == -1 else [f"{limit} bytes"]
    return [
        *judge_single(measurement, references, "memory_available_share", code="host.memory_low"),
        *judge_single(measurement, references, "memory_available_bytes", code="host.memory_low"),
        *judge_single(measurement, references, "shm_bytes", code="host.shm_small"),
        *listed_finding(FINDS, "host.memlock", Severity.WARNING, parts),
    ]
