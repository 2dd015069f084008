"""The options of a collective: parameters, which may come over the network, and the operator's settings.

The checks `collective` and `nccl_tests` share them.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from muster import Params
from muster_plugins.shared.collectives.message_sizes import MessageSize, series
from muster_plugins.shared.nccl.environment import ProfileName
from muster_plugins.shared.nccl.transport import PATTERN

ONE_RANK = "a collective over one rank measures nothing: it needs two GPUs in the node, or two nodes in a job or sweep"
"""Why a collective is skipped that would only copy its message, at 0 GB/s."""

CollectiveName = Literal["all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv"]
"""The names that nccl-tests uses: its programs have these names plus `_perf`."""


class CollectiveParams(Params):
    """Parameters that are not set get a default that suits the backend."""

    collective: CollectiveName = Field("all_reduce", description="The collective, by its name in nccl-tests")
    size_bytes: MessageSize | None = Field(
        None, description="One message size, for example 64M; 1 GiB with NCCL, 16 MiB with gloo"
    )
    begin_bytes: MessageSize | None = Field(None, description="Series of message sizes: the smallest, for example 2M")
    end_bytes: MessageSize | None = Field(None, description="Series of message sizes: the largest, for example 16G")
    factor: int = Field(2, ge=2, le=1024, description="Series of message sizes: factor between two sizes")
    iterations: int = Field(
        10, ge=1, le=100_000, description="Measured rounds of each size; the result is their median"
    )
    warmup: int = Field(2, ge=0, le=100_000, description="Unmeasured rounds before them")
    profile: ProfileName | None = Field(
        None, description="Environment variables for NCCL; unset: those in the settings"
    )
    expect_transport: str | None = Field(
        None,
        pattern=PATTERN,
        description="Transport that NCCL must use: P2P, SHM, NVLS, NET or NET/<name>; unset: the profile's",
    )

    @model_validator(mode="after")
    def _has_one_size_or_a_series(self) -> Self:
        if (self.begin_bytes is None) != (self.end_bytes is None):
            raise ValueError("begin_bytes and end_bytes belong together: give both, for example 2M and 16G")
        if self.begin_bytes is None or self.end_bytes is None:
            return self
        if self.size_bytes is not None:
            raise ValueError("give either size_bytes or begin_bytes and end_bytes")
        if self.begin_bytes > self.end_bytes:
            raise ValueError(f"begin_bytes {self.begin_bytes} is more than end_bytes {self.end_bytes}")
        return self

    def sizes(self, default: int) -> list[int]:
        """The message sizes in bytes, from the smallest; only `default` if no size was given."""
        if self.begin_bytes is None or self.end_bytes is None:
            return [self.size_bytes or default]
        return series(self.begin_bytes, self.end_bytes, self.factor)
