"""The parameters of the check `memory`."""

from typing import Literal, get_args

from pydantic import Field

from muster import Params
from muster_plugins.shared.device_choice import Choice

MemoryPart = Literal["bandwidth", "pattern", "transfers", "pairs", "host"]
Pattern = Literal["walking_ones", "walking_zeros", "address", "random"]


class MemoryParams(Params):
    """Parameters that are not set get a default that suits the backend."""

    parts: tuple[MemoryPart, ...] = Field(
        ("bandwidth", "pattern", "transfers", "pairs"),
        min_length=1,
        description="Parts to measure; host, the bandwidth of the host's own memory, only on request",
    )
    size_bytes: int | None = Field(
        None,
        ge=1 << 16,
        le=1 << 40,
        description="Size of the buffers in bytes; default 1 GiB on GPUs, 1 MiB on the CPU",
    )
    iterations: int | None = Field(
        None, ge=1, le=10_000, description="Copies of each buffer; default 20 on GPUs, 3 on the CPU"
    )
    share: float = Field(0.8, gt=0, le=0.95, description="Share of the free memory that the pattern test covers")
    limit_bytes: int | None = Field(
        None, ge=1, description="Limit of the pattern test for each device; default none on GPUs, 2 MiB on the CPU"
    )
    patterns: tuple[Pattern, ...] = Field(
        get_args(Pattern), min_length=1, description="Patterns to write and read back"
    )
    rounds: int | None = Field(
        None, ge=1, le=10_000, description="Repetitions of all patterns; default 4 on GPUs, 1 on the CPU"
    )
    seed: int = Field(1, ge=0, lt=1 << 32, description="Seed of the random pattern")
    device: Choice = Field("auto", description="cpu: use the CPU even on a node with GPUs")
