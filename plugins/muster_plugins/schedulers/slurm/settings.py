"""The settings of the plugin `slurm`."""

from typing import Annotated

from pydantic import Field, field_validator

from muster import Section
from muster.model import Name

SlurmName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")]


class SlurmActorSettings(Section):
    """The table `[plugins.slurm.actor]`, of the coordinator."""

    enabled: bool = Field(False, description="true: nodes that are out of service are drained in Slurm")
    opt_out_feature: str = Field(
        "muster_opt_out", min_length=1, description="Feature in Slurm of nodes that muster must not change"
    )
    domain: str = Field(
        "",
        pattern=r"^(\.[A-Za-z0-9_.-]+)?$",
        description="Suffix that node names have in muster and not in Slurm, such as .cluster.example",
    )
    names: dict[Name, SlurmName] = Field({}, description="Nodes whose names differ: name in muster = name in Slurm")

    @field_validator("names")
    @classmethod
    def _are_different(cls, names: dict[str, str]) -> dict[str, str]:
        if len(set(names.values())) < len(names):
            raise ValueError("must not give two nodes the same name in Slurm")
        return names


class SlurmSettings(Section):
    """The table `[plugins.slurm]`."""

    enabled: bool = Field(False, description="true: this node is busy while Slurm runs a job on it")
    node: SlurmName | None = Field(None, description="The node's name in Slurm; unset: its name in muster")
    squeue: str = Field("squeue", description="The squeue executable: a path, or a name to find in PATH")
    scontrol: str = Field("scontrol", description="The scontrol executable: a path, or a name to find in PATH")
    interval_s: float = Field(
        0.0,
        ge=0,
        le=60,
        description="Seconds between two probes while a run has the node; 0: probe every time",
    )
    reserve: bool = Field(False, description="true: drain this node in Slurm during sweeps and requested runs")
    actor: SlurmActorSettings = SlurmActorSettings()
