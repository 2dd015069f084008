"""The settings of an agent."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from muster.addresses import is_loopback, possible_host, split_address
from muster.home_path import HomePath
from muster.model import MOST_WAITING
from muster.section import Section

DeviceFigures = Literal["all", "temperature", "power", "clocks", "utilisation", "ecc", "pcie", "nvlink"]
"""Groups of the figures of devices that an agent can give to Prometheus."""


class AgentSettings(Section):
    """The agent on a node."""

    listen: str = Field(
        "127.0.0.1:8788", description="host:port of /healthz and /metrics; other than loopback needs a token"
    )
    token_file: HomePath | None = Field(None, description="File with the token that /metrics needs")
    device_metrics: tuple[DeviceFigures, ...] = Field(
        (), description='Figures of devices in /metrics, named as by the DCGM exporter: groups, or ["all"]'
    )
    address: str | None = Field(None, description="Address at which other nodes reach this one; unset: found by route")
    heartbeat_s: float = Field(
        10.0, ge=0.5, le=10, description="Seconds between heartbeats; a node is lost after 30 s without one"
    )
    spread_s: float = Field(30.0, ge=0, description="Seconds over which the first background runs are spread")
    outbox_limit: int = Field(
        10_000, ge=10, le=MOST_WAITING, description="Maximum number of runs kept until the coordinator has stored them"
    )
    memory_limit_gib: float | None = Field(
        None, gt=0, le=1 << 20, description="GiB of memory for all ranks of a run together; unset: half of the host's"
    )
    machine_type: str | None = Field(
        None, description="Machine type, for references; unset: by label, cloud or firmware"
    )
    block: str | None = Field(None, description="Topology: the node's block")
    rack: str | None = Field(None, description="Topology: the rack")
    leaf: str | None = Field(None, description="Topology: the leaf switch")
    host: str | None = Field(None, description="Topology: the physical host")
    machine_id_file: HomePath = Field(
        Path("/etc/machine-id"), description="File that is different on every machine: a node's name belongs to one"
    )
    labels_file: HomePath | None = Field(
        None, description='The node\'s labels: lines key="value", or JSON as `kubectl get node NODE -o json` prints it'
    )

    @field_validator("listen")
    @classmethod
    def _is_address(cls, value: str) -> str:
        split_address(value)
        return value

    @model_validator(mode="after")
    def _has_a_token_beyond_loopback(self) -> Self:
        if self.token_file is None and not is_loopback(self.listen):
            raise ValueError(f"listen = {self.listen!r} lets other hosts in, which needs a token: set agent.token_file")
        return self

    @field_validator("address")
    @classmethod
    def _is_host(cls, value: str | None) -> str | None:
        return None if value is None else possible_host(value)
