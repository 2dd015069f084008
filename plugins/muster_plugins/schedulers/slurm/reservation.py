"""Keeps Slurm's work off this node while it is tested: a drain with a reason of its own.

A node that is out of service is drained already, and stays so. The coordinator takes a node out just when a test has
ended badly, so its drain may come between our look at the node and our change, and be lost. Its mark is not, and so the
drain is put back.
"""

import asyncio
from collections.abc import Mapping

from muster_plugins.schedulers.slurm.marks import SlurmHold, describe, hold, marked, restored_reason, testing_reason
from muster_plugins.schedulers.slurm.nodes import SlurmNode
from muster_plugins.schedulers.slurm.scontrol import Failed, Scontrol


class Taken(Exception):
    """Others have the node; the text says what they wrote."""


def reserve(scontrol: Scontrol, name: str, why: str) -> None:
    """Drains the node, or takes a drain of ours over; Taken or Failed when that cannot be done."""
    asyncio.run(_reserve(scontrol, name, why))


def release(scontrol: Scontrol, name: str) -> None:
    """Takes our drain off. What Slurm says of the node otherwise stays, such as that it is DOWN."""
    asyncio.run(_release(scontrol, name))


async def _reserve(scontrol: Scontrol, name: str, why: str) -> None:
    node = await _known(scontrol, name)
    match hold(node):
        case SlurmHold.OTHERS | SlurmHold.ABSENCE:
            raise Taken(f"{name} is {describe(node)}")
        case SlurmHold.NOTHING | SlurmHold.TEST:
            await _update(scontrol, node, {"State": "DRAIN", "Reason": testing_reason(why, node)})


async def _release(scontrol: Scontrol, name: str) -> None:
    node = await _known(scontrol, name)
    if hold(node) is SlurmHold.TEST:
        await _update(scontrol, node, {"State": "UNDRAIN"})


async def _update(scontrol: Scontrol, before: SlurmNode, changes: Mapping[str, str]) -> None:
    await scontrol.update(before.name, changes)
    now = await _known(scontrol, before.name)
    mark = marked(now)
    if mark is not None and mark != marked(before) and hold(now) not in (SlurmHold.QUARANTINE, SlurmHold.OTHERS):
        await scontrol.update(now.name, {"State": "DRAIN", "Reason": restored_reason(mark, before)})


async def _known(scontrol: Scontrol, name: str) -> SlurmNode:
    node = await scontrol.node(name)
    if node is None:
        raise Failed(f"Slurm has no node {name}; set plugins.slurm.node to its name there")
    return node
