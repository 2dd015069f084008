"""The settings of sweeps that start by themselves, and what a restart of the coordinator does to sweeps."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, field_validator, model_validator

from muster.model import Name
from muster.section import Section


def _number_or_share(text: str) -> str:
    found = re.fullmatch(r"(?P<nodes>\d{1,9})|(?P<share>\d{1,3}(\.\d{1,6})?)%", text)
    if found is None or float(found["nodes"] or found["share"]) == 0 or float(found["share"] or 0) > 100:
        raise ValueError("must be a number of nodes, such as 40, or a share of them, such as 25%")
    return text


NodesAtOnce = Annotated[str, Field(coerce_numbers_to_str=True), AfterValidator(_number_or_share)]
"""How many nodes may be in groups at once: `40`, or `25%` of the participating nodes."""


class SweepSettings(Section):
    """A sweep that starts by itself, with the options of a requested one."""

    check: Name = Field(description="Name of the check")
    params: dict[str, JsonValue] = Field({}, description="Parameters of the check")
    strategy: Literal["single", "pairs", "round_robin", "whole", "bisect", "adaptive"] | None = Field(
        None, description="How nodes are grouped; unset: adaptive, and single for a check of single nodes"
    )
    pairing: Literal["random", "intra_rack", "inter_rack", "rail"] | None = Field(
        None, description="Which nodes form pairs, for strategy pairs; unset: random"
    )
    passes: int = Field(1, ge=1, le=64, description="Minimum number of runs for each node")
    max_parallel: NodesAtOnce | None = Field(
        None, description="Nodes in groups at once, a number or a share such as 25%; unset: all"
    )
    max_rounds: int | None = Field(None, ge=1, description="Maximum number of rounds; unset: no limit")
    max_node_s: float | None = Field(None, gt=0, description="Maximum number of node-seconds; unset: no limit")
    priority: int = Field(0, ge=-100, le=100, description="The sweep with the highest priority gets shared nodes first")

    @model_validator(mode="after")
    def _has_pairs_for_its_pairing(self) -> Self:
        if self.pairing is not None and self.strategy != "pairs":
            raise ValueError(f"pairing = {self.pairing!r} is for strategy pairs: set strategy = 'pairs' as well")
        return self


class ScheduleSettings(SweepSettings):
    """A sweep that starts at the times of a cron expression."""

    cron: str = Field(
        max_length=200, description="When: minute, hour, day of month, month, day of week, for example 0 2 * * *"
    )
    timezone: str = Field("UTC", description="IANA time zone of the cron expression, for example Europe/Berlin")
    jitter_s: float = Field(
        300.0, ge=0, le=86_400, description="Maximum delay of each start in seconds; each time a different part of it"
    )
    enabled: bool = Field(True, description="false: does not start")
    select: str | None = Field(
        None, min_length=1, max_length=10_000, description="Which nodes, for example rack=r1,r2; unset: all"
    )
    max_parallel: NodesAtOnce = Field("10%", description="Nodes in groups at once, a number or a share such as 25%")

    @field_validator("cron")
    @classmethod
    def _has_five_fields(cls, value: str) -> str:
        """Only counts the fields; the coordinator has a parser and checks their content."""
        if len(value.split()) != 5:
            raise ValueError("must have five fields: minute, hour, day of month, month, day of week, such as 0 2 * * *")
        return value


class NewNodesSettings(SweepSettings):
    """The sweep over nodes that have joined the fleet."""

    gather_s: float = Field(120.0, ge=0, le=86_400, description="Seconds that the first new node waits for others")
    partners: int = Field(3, ge=1, le=64, description="Healthy nodes that take part if there is only one new node")


class SweepsSettings(Section):
    """The coordinator's sweeps."""

    after_restart: Literal["resume", "abort"] = Field(
        "resume", description="What happens to a running sweep when the coordinator restarts"
    )
    schedules: dict[Name, ScheduleSettings] = Field({}, description="By name, sweeps that begin at set times")
    new_nodes: NewNodesSettings | None = Field(None, description="The sweep over new nodes; unset: none")
