"""The plugin `slurm`: nodes that Slurm schedules."""

from collections.abc import Iterable
from functools import partial

from pydantic import Field

from muster import Config, IdleProbe, Section, hookimpl
from muster_plugins.slurm.idle import probe

NAME = "slurm"


class SlurmSettings(Section):
    """The table `[plugins.slurm]`."""

    enabled: bool = Field(False, description="true: this node is busy while Slurm has given it to a job")
    node: str | None = Field(
        None, pattern=r"^[A-Za-z0-9_.-]+$", description="The node's name in Slurm; unset: its name in muster"
    )
    squeue: str = Field("squeue", description="The squeue executable: a path, or a name that is looked for along PATH")
    interval_s: float = Field(
        0.0, ge=0, le=60, description="While a run holds the node: seconds until Slurm is asked again; 0: every time"
    )


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, SlurmSettings)


@hookimpl
def muster_idle_probes(config: Config) -> Iterable[IdleProbe]:
    settings = config.plugin(NAME, SlurmSettings)
    if not settings.enabled:
        return []
    node = settings.node or config.settings.node
    return [IdleProbe(name=NAME, probe=partial(probe, settings.squeue, node), interval_s=settings.interval_s)]
