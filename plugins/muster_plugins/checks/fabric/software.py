"""Software that a fabric needs: Google's gIB libraries, and a way for the network to access GPU memory."""

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path

from muster.model import Data

PROCFS = Path("/proc")

_PEER_MEMORY_MODULES = ("nvidia_peermem", "nv_peer_mem", "efa_nv_peermem")
"""NVIDIA's module since R470, its older separate module, and Amazon's for EFA."""

_DMA_BUF_KERNEL = (5, 12)
"""Linux can pass GPU memory to RDMA devices as dma-buf from this version on (NVIDIA GPU Operator, GPUDirect RDMA)."""


class GpuDirect(Data):
    """How the network can access GPU memory. `dma_buf` is None if that is unknown; `detail` says why.

    An available path does not mean that a library uses it.
    """

    peer_memory: str | None
    dma_buf: bool | None
    detail: str


def missing(patterns: Sequence[str]) -> tuple[str, ...]:
    """The glob patterns without a matching file."""
    found = {pattern: glob.glob(pattern) for pattern in patterns}  # noqa: PTH207  Path.glob refuses absolute patterns
    return tuple(pattern for pattern, files in found.items() if not files)


def gpu_direct(sysfs: Path, procfs: Path) -> GpuDirect:
    """Looks for a loaded peer memory module, or else for what dma-buf needs: kernel 5.12 and NVIDIA's open modules."""
    module = next((name for name in _PEER_MEMORY_MODULES if (sysfs / "module" / name).is_dir()), None)
    try:
        release = (procfs / "sys/kernel/osrelease").read_text(encoding="ascii", errors="replace").strip()
        driver = (procfs / "driver/nvidia/version").read_text(encoding="ascii", errors="replace")
    except OSError as error:
        return GpuDirect(peer_memory=module, dma_buf=None, detail=f"{error.filename}: {os.strerror(error.errno or 0)}")
    version = re.match(r"(\d+)\.(\d+)", release)
    if version is None:
        return GpuDirect(peer_memory=module, dma_buf=None, detail=f"not a kernel release: {release[:40]!r}")
    is_new = (int(version[1]), int(version[2])) >= _DMA_BUF_KERNEL
    is_open = "Open Kernel Module" in driver
    detail = f"kernel {release}, {'open' if is_open else 'proprietary'} driver modules"
    return GpuDirect(peer_memory=module, dma_buf=is_new and is_open, detail=detail)
