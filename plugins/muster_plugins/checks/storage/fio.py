"""fio: the jobs of the check `storage`, their command line, and fio's JSON report."""

from collections.abc import Mapping
from typing import NamedTuple

from muster.model import Data
from muster_plugins.shared.program_json import json_in
from muster_plugins.shared.programs import Completed
from muster_plugins.shared.unmeasured import Unmeasured, tail


class FioJob(NamedTuple):
    """One job. `pattern` is fio's `rw`. A `sequential` job moves large blocks, the others small ones."""

    pattern: str
    reads: bool
    sequential: bool


JOBS = {
    "seq_write": FioJob("write", reads=False, sequential=True),
    "seq_read": FioJob("read", reads=True, sequential=True),
    "rand_read": FioJob("randread", reads=True, sequential=False),
    "rand_write": FioJob("randwrite", reads=False, sequential=False),
}
"""The jobs in order. The first job writes the whole file once, so that no later job reads a hole."""


class FioPlan(NamedTuple):
    """Options that all jobs share. Without `direct` they go through the page cache."""

    file: str
    size_bytes: int
    runtime_s: float
    sequential_bytes: int
    random_bytes: int
    depth: int
    engine: str
    direct: bool


def arguments(plan: FioPlan) -> list[str]:
    """The arguments of fio, with one job after the other on the same file."""
    common = [
        "--output-format=json",
        f"--filename={plan.file}",
        f"--size={plan.size_bytes}",
        f"--ioengine={plan.engine}",
        f"--iodepth={plan.depth}",
        f"--direct={plan.direct:d}",
        "--percentile_list=99",
    ]
    return common + [argument for name, job in JOBS.items() for argument in _job_arguments(name, job, plan)]


def _job_arguments(name: str, job: FioJob, plan: FioPlan) -> list[str]:
    block = plan.sequential_bytes if job.sequential else plan.random_bytes
    once = name == next(iter(JOBS))
    extent = ["--end_fsync=1"] if once else ["--time_based", f"--runtime={round(plan.runtime_s * 1000)}ms"]
    return [f"--name={name}", "--stonewall", f"--rw={job.pattern}", f"--bs={block}", *extent]


class FioSpeed(NamedTuple):
    """The speed of one job."""

    gbps: float
    iops: float
    p99_s: float


class FioJobFailed(Exception):
    """A job ended with an error of the operating system."""

    def __init__(self, job: str, errno: int) -> None:
        super().__init__(f"fio's job {job} ended with error {errno}")
        self.job = job
        self.errno = errno


class _Percentiles(Data):
    percentile: Mapping[str, float] = {}


class _FioDirection(Data):
    """Bandwidth in bytes per second, or before fio 3 in KiB per second; latencies in ns, before fio 3 in us."""

    iops: float
    bw: float
    bw_bytes: float | None = None
    clat_ns: _Percentiles | None = None
    clat: _Percentiles = _Percentiles()

    def speed(self) -> FioSpeed:
        unit_s, latencies = (1e-9, self.clat_ns) if self.clat_ns is not None else (1e-6, self.clat)
        return FioSpeed(
            gbps=(self.bw * 1024 if self.bw_bytes is None else self.bw_bytes) / 1e9,
            iops=self.iops,
            p99_s=latencies.percentile["99.000000"] * unit_s,
        )


class _JobReport(Data):
    jobname: str
    error: int
    read: _FioDirection
    write: _FioDirection


class _FioReport(Data):
    jobs: tuple[_JobReport, ...]


def speeds(done: Completed) -> dict[str, FioSpeed]:
    """The speeds that fio measured, by job.

    Raises FioJobFailed if a job failed, Unmeasured as `fio_failed` or `garbage` if there is no readable report.
    """
    reports = {report.jobname: report for report in _report(done).jobs}
    for report in reports.values():
        if report.error:
            raise FioJobFailed(report.jobname, report.error)
    try:
        return {name: (reports[name].read if job.reads else reports[name].write).speed() for name, job in JOBS.items()}
    except KeyError as missing:
        raise Unmeasured("garbage", f"fio's report lacks {missing}") from None


def _report(done: Completed) -> _FioReport:
    """The report. Notes may precede it, and there is none if fio cannot start."""
    if "{" not in done.stdout and done.exit_code:
        raise Unmeasured("fio_failed", f"fio ended with {done.exit_code}", output=tail(done.stderr or done.stdout))
    try:
        return _FioReport.model_validate(json_in(done.stdout))
    except ValueError as error:  # a ValidationError is a ValueError, too
        first_line = str(error).splitlines()[0]
        raise Unmeasured("garbage", f"fio's report cannot be read: {first_line}", output=tail(done.stdout)) from None
