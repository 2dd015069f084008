"""What the check `host` makes of memory."""

import os
import resource
from pathlib import Path

import pytest
from tests.plugins.checks.host.looking import GPUS, NONE, judged, write

from muster import Measurement
from muster_plugins.checks.host import memory as host_memory
from muster_plugins.checks.host.look import CannotDetermine, NotApplicable


@pytest.mark.parametrize(
    ("total", "available", "expected"),
    [
        (1000_000_000, 500_000_000, {}),
        (1000_000_000, 50_000_000, {"host.memory_low": "WARNING"}),
        (200_000, 90_000, {"host.memory_low": "ERROR"}),
    ],
)
def test_available_memory(tmp_path, total, available, expected):
    """A small share is a warning, less than what kubelet needs a fault."""
    write(tmp_path / "meminfo", f"MemTotal: {total} kB\nMemFree: 1 kB\nMemAvailable: {available} kB\nHugePages: 0\n")
    measurement = host_memory.available(tmp_path, NONE)
    assert measurement.metrics["memory_available_bytes"] == available * 1024
    assert judged(host_memory, measurement) == expected


@pytest.mark.parametrize("text", ["", "MemTotal: 5 kB\n", "MemTotal: 0 kB\nMemAvailable: 0 kB\n", "\x00\xff"])
def test_memory_that_cannot_be_told(tmp_path, text):
    """Says so instead of a number."""
    write(tmp_path / "meminfo", text)
    with pytest.raises(CannotDetermine):
        host_memory.available(tmp_path, NONE)


def test_shared_memory_is_of_interest_where_gpus_are(tmp_path):
    """NCCL's processes share memory there."""
    with pytest.raises(NotApplicable):
        host_memory.shared(Path("/dev/shm"), tmp_path, NONE)
    real = os.statvfs("/dev/shm")
    measurement = host_memory.shared(Path("/dev/shm"), tmp_path, GPUS)
    assert measurement.metrics == {"shm_bytes": real.f_blocks * real.f_frsize}
    with pytest.raises(CannotDetermine):
        host_memory.shared(tmp_path / "none", tmp_path, GPUS)


@pytest.mark.parametrize(("size", "expected"), [(64 << 20, {"host.shm_small": "WARNING"}), (1 << 30, {})])
def test_judgement_of_shared_memory(size, expected):
    """Docker's 64 MiB are too few for NCCL."""
    assert judged(host_memory, Measurement(metrics={"shm_bytes": float(size)})) == expected


@pytest.mark.parametrize(
    ("limit", "told", "expected"),
    [(8 << 20, 8 << 20, {"host.memlock": "WARNING"}), (resource.RLIM_INFINITY, -1, {})],
)
def test_locked_memory_must_be_unlimited_for_rdma(tmp_path, monkeypatch, limit, told, expected):
    """Only where RDMA devices are, and GPUs whose memory they send."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    with pytest.raises(NotApplicable, match="no RDMA device"):
        host_memory.lockable(tmp_path, GPUS)
    (tmp_path / "class/infiniband/mlx5_0").mkdir(parents=True)
    with pytest.raises(NotApplicable, match="no GPU"):
        host_memory.lockable(tmp_path, NONE)
    measurement = host_memory.lockable(tmp_path, GPUS)
    assert measurement.facts == {"memlock_bytes": told}
    assert judged(host_memory, measurement) == expected
