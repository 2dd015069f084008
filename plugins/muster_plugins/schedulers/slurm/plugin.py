"""The plugin `slurm`, for nodes that Slurm schedules."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from muster import Config, IdleProbe, Reservation, hookimpl
from muster_plugins.schedulers.slurm.settings import SlurmSettings

if TYPE_CHECKING:
    from muster import ActionOutcome, Survey, Transition

NAME = "slurm"

_TEST_TIMEOUT_S = 1.2
"""All reservations of a node together have five seconds, and one asks scontrol up to four times."""

_ACT_TIMEOUT_S = 4.0
"""A transition has ten seconds and asks scontrol twice."""

_SURVEY_TIMEOUT_S = 20.0
"""A survey has sixty seconds and asks scontrol twice. A busy slurmctld is slow to list thousands of nodes."""


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, SlurmSettings)


@hookimpl
def muster_idle_probes(config: Config) -> Iterable[IdleProbe]:
    settings = config.plugin(NAME, SlurmSettings)
    if not settings.enabled:
        return []
    from muster_plugins.schedulers.slurm.idle import probe  # noqa: PLC0415 (memory that only nodes in Slurm should spend)

    ask = partial(probe, settings.squeue, _node(config))
    return [IdleProbe(name=NAME, probe=ask, interval_s=settings.interval_s)]


@hookimpl
def muster_reservations(config: Config) -> Iterable[Reservation]:
    settings = config.plugin(NAME, SlurmSettings)
    if not settings.reserve:
        return []
    from muster_plugins.schedulers.slurm import reservation  # noqa: PLC0415 (memory, as above)
    from muster_plugins.schedulers.slurm.scontrol import Scontrol  # noqa: PLC0415 (memory, as above)

    asked = (Scontrol(settings.scontrol, _TEST_TIMEOUT_S), _node(config))
    reserve, release = partial(reservation.reserve, *asked), partial(reservation.release, *asked)
    return [Reservation(name=NAME, reserve=reserve, release=release)]


@hookimpl
async def muster_survey(config: Config) -> "Survey | None":
    settings = config.plugin(NAME, SlurmSettings)
    if not settings.actor.enabled:
        return None
    from muster_plugins.schedulers.slurm.scontrol import Scontrol  # noqa: PLC0415 (memory, as above)
    from muster_plugins.schedulers.slurm.survey import survey  # noqa: PLC0415 (memory, as above)

    return await survey(Scontrol(settings.scontrol, _SURVEY_TIMEOUT_S), settings.actor)


@hookimpl
async def muster_transition(config: Config, transition: "Transition") -> "ActionOutcome | None":
    settings = config.plugin(NAME, SlurmSettings)
    if not settings.actor.enabled:
        return None
    from muster_plugins.schedulers.slurm.actor import act  # noqa: PLC0415 (memory, as above)
    from muster_plugins.schedulers.slurm.scontrol import Scontrol  # noqa: PLC0415 (memory, as above)

    return await act(Scontrol(settings.scontrol, _ACT_TIMEOUT_S), settings.actor, transition)


def _node(config: Config) -> str:
    """The name of this node in Slurm."""
    return config.plugin(NAME, SlurmSettings).node or config.settings.node
