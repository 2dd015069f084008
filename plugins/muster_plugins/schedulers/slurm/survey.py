"""The survey of Slurm's nodes."""

from collections.abc import Iterable

from muster import Mark, SchedulerNode, Survey
from muster.labels import LABEL_NAME
from muster_plugins.schedulers.slurm.marks import SlurmHold, describe, hold, marked
from muster_plugins.schedulers.slurm.names import Names
from muster_plugins.schedulers.slurm.nodes import SlurmNode
from muster_plugins.schedulers.slurm.scontrol import Failed, Scontrol
from muster_plugins.schedulers.slurm.settings import SlurmActorSettings

_LEAVING = {
    "POWER_DOWN": "Slurm is about to power it down",
    "POWERING_DOWN": "Slurm is powering it down",
    "POWERED_DOWN": "Slurm has powered it down",
    "REBOOT_REQUESTED": "Slurm plans to reboot it",
    "REBOOT_ISSUED": "Slurm is rebooting it",
    "MAINTENANCE": "it is reserved for maintenance",
}

_MAY_UPDATE: set[Scontrol] = set()
"""Once the right was found, it is not checked again, because slurmctld logs each check as an error."""


async def survey(scontrol: Scontrol, settings: SlurmActorSettings) -> Survey:
    """All nodes of Slurm, and whether we may drain them. Raises Failed if Slurm does not answer."""
    names = Names(settings.domain, settings.names)
    nodes = tuple(scheduler_node(node, names, settings.opt_out_feature) for node in await scontrol.nodes())
    lack = await _lacking_right(scontrol)
    return Survey(summary="Slurm", can_cordon=lack is None, problem=lack, nodes=nodes)


def scheduler_node(node: SlurmNode, names: Names, opt_out_feature: str) -> SchedulerNode:
    """The state of one node in Slurm. A drain for a test says nothing about its service state."""
    return SchedulerNode(
        node=names.in_muster(node.name),
        mark=_mark(node),
        transition=marked(node),
        detail="" if hold(node) in (SlurmHold.NOTHING, SlurmHold.QUARANTINE) else describe(node),
        opted_out=opt_out_feature in node.features,
        leaving=next((text for flag, text in _LEAVING.items() if flag in node.state), None),
        labels={**_labels("feature.slurm", node.features), **_labels("partition.slurm", node.partitions)},
    )


def _labels(prefix: str, names: Iterable[str]) -> dict[str, str]:
    """A label for each of the names, except names that are not valid in a label's key."""
    return {f"{prefix}/{name}": "true" for name in names if LABEL_NAME.fullmatch(name)}


def _mark(node: SlurmNode) -> Mark:
    match hold(node):
        case SlurmHold.QUARANTINE:
            return Mark.OURS
        case SlurmHold.OTHERS:
            return Mark.FOREIGN
    return Mark.UNDONE if marked(node) else Mark.NONE


async def _lacking_right(scontrol: Scontrol) -> str | None:
    """Why we may not change nodes, and how to fix that; None if we may."""
    if scontrol not in _MAY_UPDATE:
        try:
            await scontrol.check_right()
        except Failed as failure:
            return str(failure)
        _MAY_UPDATE.add(scontrol)
    return None
