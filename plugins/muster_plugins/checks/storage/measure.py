"""Measures the check `storage` with fio.

The scratch file has no name: it is unlinked while open, and fio opens it through this process. Therefore the kernel
always frees its space, even if the run is killed.
"""

import errno
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

from muster import Context, Measurement, Skip
from muster.model import Json
from muster_plugins.checks.storage import fio
from muster_plugins.checks.storage.check import StorageParams, StorageSettings
from muster_plugins.shared.programs import find_program
from muster_plugins.shared.unmeasured import Unmeasured, run_within

_SPARE = 2
"""The scratch file uses at most this fraction, one half, of the free space, because other programs write there, too."""


def measure(settings: StorageSettings, params: StorageParams, context: Context) -> Measurement:
    """Bandwidth in GB/s, operations per second and 99th percentile of the latency in seconds for each job."""
    if settings.directory is None:
        raise Skip("no directory to measure: set plugins.storage.directory")
    facts: Json = {"directory": str(settings.directory), **params.model_dump()}
    try:
        program = find_program(settings.fio)
        if program is None:
            raise Unmeasured("fio_missing", f"{settings.fio} is not installed, or not executable")
        with _scratch_file(settings.directory, params.size_mib << 20) as file:
            return _measured(program, file, params, context, facts)
    except Unmeasured as why:
        return why.measurement(facts)


def _scratch_file(directory: Path, size_bytes: int) -> IO[bytes]:
    """An unlinked file with its space allocated. Raises Unmeasured as `no_space` or `directory_unusable`."""
    try:
        free = shutil.disk_usage(directory).free
        if size_bytes > free // _SPARE:
            raise _no_space(directory, size_bytes, free)
        file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115  the caller closes it
        try:
            os.posix_fallocate(file.fileno(), 0, size_bytes)
        except OSError:
            file.close()
            raise
        return file
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _no_space(directory, size_bytes, shutil.disk_usage(directory).free) from None
        raise Unmeasured("directory_unusable", f"{directory} cannot be written: {error.strerror}") from None


def _no_space(directory: Path, size_bytes: int, free: int) -> Unmeasured:
    return Unmeasured(
        "no_space",
        f"{directory} has {free / 2**20:.0f} MiB free: size_mib can be at most {free // _SPARE >> 20}, "
        f"for {size_bytes >> 20} MiB it takes {size_bytes * _SPARE >> 20} MiB",
        free_bytes=free,
        size_bytes=size_bytes,
    )


def _measured(program: Path, file: IO[bytes], params: StorageParams, context: Context, facts: Json) -> Measurement:
    path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
    direct = _supports_direct(path)
    plan = fio.FioPlan(
        file=path,
        size_bytes=params.size_mib << 20,
        runtime_s=params.runtime_s,
        sequential_bytes=params.sequential_kib << 10,
        random_bytes=params.random_kib << 10,
        depth=params.depth,
        engine=params.engine,
        direct=direct,
    )
    context.progress(f"fio on {facts['directory']}: {', '.join(fio.JOBS)}")
    done = run_within(context, [program, *fio.arguments(plan)], cwd=context.scratch)
    facts = facts | {"direct": direct}
    try:
        found = fio.speeds(done)
    except fio.FioJobFailed as error:
        failed: Json = {"job": error.job, "errno": error.errno, "message": os.strerror(error.errno)}
        return Measurement(facts=facts | {"failed": failed})
    metrics = {f"{job}_{unit}": value for job, speed in found.items() for unit, value in speed._asdict().items()}
    return Measurement(metrics=metrics, facts=facts)


def _supports_direct(path: str) -> bool:
    """Whether the file system at `path` supports O_DIRECT; tmpfs of older kernels does not."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_DIRECT))
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise Unmeasured("directory_unusable", f"the scratch file cannot be opened again: {error.strerror}") from None
    return True
