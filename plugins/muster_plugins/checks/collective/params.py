"""What can be chosen for a collective: by parameters, which may come over the network, and by the operator's settings.

The checks `collective` and `nccl_tests` share them.
"""

from typing import Self

from pydantic import Field, model_validator

from muster import Params
from muster_plugins.checks.collective.message_sizes import MessageSize, series
from muster_plugins.checks.collective.operations import Name
from muster_plugins.shared.nccl.environment import ProfileName
from muster_plugins.shared.nccl.transport import PATTERN


class CollectiveParams(Params):
    """What is left out is chosen to suit the backend."""

    collective: Name = Field("all_reduce", description="What the ranks do together, by nccl-tests' names")
    size_bytes: MessageSize | None = Field(
        None, description="One message size, for example 64M; 1 GiB with NCCL, 16 MiB with gloo"
    )
    begin_bytes: MessageSize | None = Field(None, description="Several message sizes: the smallest, for example 2M")
    end_bytes: MessageSize | None = Field(None, description="Several message sizes: the largest, for example 16G")
    factor: int = Field(2, ge=2, le=1024, description="Several message sizes: from one to the next")
    iterations: int = Field(10, ge=1, le=100_000, description="Measured rounds of each size; their median counts")
    warmup: int = Field(2, ge=0, le=100_000, description="Rounds before that")
    profile: ProfileName | None = Field(None, description="NCCL's environment; unset: the one in the settings")
    expect_transport: str | None = Field(
        None, pattern=PATTERN, description="What NCCL must use: P2P, SHM, NVLS, NET or NET/<name>; unset: the profile's"
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
        """The message sizes in bytes, from the smallest; `default` where none was given."""
        if self.begin_bytes is None or self.end_bytes is None:
            return [self.size_bytes or default]
        return series(self.begin_bytes, self.end_bytes, self.factor)
