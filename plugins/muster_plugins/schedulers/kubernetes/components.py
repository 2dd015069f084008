"""The component of a node that a finding is about, as the type of its condition. Pure."""

from fnmatch import fnmatchcase

from muster import Cause
from muster_plugins.shared.xids import meaning

_GPU = "MusterGpuProblem"
_GPU_MEMORY = "MusterGpuMemoryProblem"
_NVLINK = "MusterNvlinkProblem"
_NETWORK = "MusterNetworkProblem"
_HOST = "MusterHostProblem"

COMPONENTS = (_GPU, _GPU_MEMORY, _NVLINK, _NETWORK, _HOST)

_MEMORY_XIDS = frozenset({48, 63, 64, 92, 94, 95, 140, 168, 171, 172})
"""By NVIDIA's catalogue: errors of the memory, and rows or pages that were retired."""

_RULES = (
    (_HOST, ("memory.host_*",)),
    (
        _GPU_MEMORY,
        ("memory.*", "*.ecc_*", "*.row_remap_*", "*.pages_retired", "*.page_retirement_pending", "*.memory_*"),
    ),
    (_NVLINK, ("*.nvlink_*", "*.fabric_not_joined", "*.fabric_unhealthy", "*.sxid")),
    (_NETWORK, ("fabric.*", "collective.*", "nccl_tests.*", "kernel_log.nic_*")),
    (
        _GPU,
        (
            "nvml.*",
            "simulated.*",
            "gemm.*",
            "inference.*",
            "training.*",
            "training_ddp.*",
            "dcgm.*",
            "kernel_log.off_the_bus",
            "kernel_log.gpu_*",
            "kernel_log.driver_*",
            "kernel_log.pcie_*",
            "host.stuck_process",
        ),
    ),
)
"""The first row with a pattern that matches the code decides. A code without a match is about the host."""


def component_of(cause: Cause) -> str:
    """The type of the condition, one of COMPONENTS."""
    if cause.xid is not None:
        return _component_of_xid(cause.xid)
    matching = (kind for kind, codes in _RULES if any(fnmatchcase(cause.code, code) for code in codes))
    return next(matching, _HOST)


def _component_of_xid(xid: int) -> str:
    if xid in _MEMORY_XIDS:
        return _GPU_MEMORY
    return _NVLINK if meaning(xid).name.startswith("NVLink") else _GPU
