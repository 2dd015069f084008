"""The check `storage`: measures with fio how fast a directory can be written and read."""

import errno
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from muster import (
    Action,
    Check,
    Config,
    Context,
    Finding,
    Measurement,
    Needs,
    Params,
    Reference,
    Scope,
    Section,
    Severity,
    Worse,
    hookimpl,
)
from muster.model import Json
from muster_plugins.shared.metric_judgement import judge_single
from muster_plugins.shared.unmeasured import unmeasured_finding

NAME = "storage"

FINDS = {
    "storage.io_error": "a read or write failed on the device",
    "storage.slow": "bandwidth or operations per second are below the reference",
    "storage.latency": "the 99th percentile of the latency is above the reference",
    "storage.not_direct": "the file system does not support O_DIRECT, so the page cache was measured, too",
    "storage.no_space": "not enough free space for the scratch file, so nothing was measured",
    "storage.directory_unusable": "the directory is missing or not writable",
    "storage.fio_missing": "a directory is configured, but fio is not installed",
    "storage.fio_failed": "fio ended without a report",
    "storage.job_failed": "a job of fio failed for a reason that says nothing about the device",
    "storage.garbage": "fio's report cannot be read",
    "storage.not_started": "fio could not be started",
    "storage.timed_out": "fio did not finish before its deadline",
}

JUDGED = (
    "seq_write_gbps",
    "seq_read_gbps",
    "rand_read_iops",
    "rand_read_p99_s",
    "rand_write_iops",
    "rand_write_p99_s",
)

_OF_THE_DEVICE = {errno.EIO, errno.ENODATA, errno.EREMOTEIO, errno.EILSEQ, errno.ETIMEDOUT, errno.ENOLINK}
"""Errors of Linux for a failing device, medium or path: `blk_errors` in block/blk-core.c."""


class StorageSettings(Section):
    """The table `[plugins.storage]`."""

    directory: Path | None = Field(None, description="Directory on the file system to measure; unset: none")
    fio: str = Field("fio", description="The fio executable: a path, or a name to find in PATH")

    @field_validator("directory")
    @classmethod
    def _is_absolute(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_absolute():
            raise ValueError("must be an absolute path, for example /mnt/local")
        return value


class StorageParams(Params):
    """The parameters of the jobs. The first job writes the whole file; each of the others runs for `runtime_s`."""

    size_mib: int = Field(4096, ge=1, le=1 << 20, description="Size of the scratch file in MiB")
    runtime_s: float = Field(10.0, ge=0.1, le=3600, description="Seconds of each timed job")
    sequential_kib: int = Field(
        1024, ge=4, le=65536, multiple_of=4, description="Block size of the sequential jobs in KiB"
    )
    random_kib: int = Field(4, ge=4, le=1024, multiple_of=4, description="Block size of the random jobs in KiB")
    depth: int = Field(32, ge=1, le=1024, description="Number of concurrent requests")
    engine: Literal["libaio", "io_uring", "psync"] = Field("libaio", description="fio's ioengine; psync: depth is 1")

    @field_validator("sequential_kib", "random_kib")
    @classmethod
    def _fits_the_file(cls, value: int, info: ValidationInfo) -> int:
        size_mib = info.data.get("size_mib")
        if size_mib is not None and value > size_mib * 1024:
            raise ValueError(f"must be at most the size of the file, {size_mib * 1024} KiB")
        return value


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """A failing device is an ERROR. Speed is judged only against references that the operator has set."""
    if finding := unmeasured_finding(NAME, measurement):
        return [finding]
    findings = []
    if isinstance(failed := measurement.facts.get("failed"), dict):
        findings.append(_failed(failed))
    if measurement.facts.get("direct") is False:
        findings.append(
            Finding(
                code="storage.not_direct",
                summary="the file system does not support O_DIRECT: measured through the page cache",
                severity=Severity.SKIPPED,
            )
        )
    for name in measurement.metrics:
        code = "storage.latency" if name.endswith("_p99_s") else "storage.slow"
        findings += judge_single(measurement, references, name, code=code)
    return findings


def _failed(failed: Json) -> Finding:
    """The finding for a failed job. Some errors are evidence against the device, others are not."""
    summary = f"fio's job {failed['job']} failed: {failed['message']}"
    if failed["errno"] in _OF_THE_DEVICE:
        return Finding(
            code="storage.io_error",
            summary=summary,
            severity=Severity.ERROR,
            action=Action.INSPECT_HARDWARE,
            evidence=failed,
        )
    return Finding(code="storage.job_failed", summary=summary, severity=Severity.UNKNOWN, evidence=failed)


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, StorageSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[StorageParams]]:
    return [
        Check(
            name=NAME,
            summary="Sequential and random reads and writes on a configured directory, with fio",
            scope=Scope.NODE,
            params=StorageParams,
            measure=partial(_measure, config.plugin(NAME, StorageSettings)),
            judge=judge,
            timeout_s=900.0,
            needs=Needs.IDLE_NODE,
            quick={"size_mib": 256, "runtime_s": 1.0},
            judged=JUDGED,
            compared={metric: Worse.LOWER for metric in JUDGED if not metric.endswith("_s")},
            finds=FINDS,
            cost_s=35.0,
            precedent="fio; Azure NHC's disk checks, SuperBench disk-benchmark",
        )
    ]


def _measure(settings: StorageSettings, params: StorageParams, context: Context) -> Measurement:
    from muster_plugins.checks.storage.measure import measure  # noqa: PLC0415 (memory that only a run should spend)

    return measure(settings, params, context)
