"""Keeps Slurm's work off this node during a test: a drain with its own reason.

A node that is out of service is drained already and stays drained. The coordinator may drain a node just when a failed
test has ended, between our read of the node and our change. Then its drain is lost but its mark is not, so the next
survey restores the drain.
"""

import asyncio
from collections.abc import Mapping

from muster_plugins.schedulers.slurm.marks import SlurmHold, describe, hold, marked, restored_reason, testing_reason
from muster_plugins.schedulers.slurm.nodes import SlurmNode
from muster_plugins.schedulers.slurm.scontrol import Failed, Scontrol


class HeldByOthers(Exception):
    """The node is held by others; the text is what they wrote."""


def reserve(scontrol: Scontrol, name: str, why: str) -> None:
    """Drains the node, or takes over a drain of ours. Raises HeldByOthers or Failed if it cannot."""
    asyncio.run(_reserve(scontrol, name, why))


def release(scontrol: Scontrol, name: str) -> None:
    """Removes our drain. Other states of the node stay, such as DOWN."""
    asyncio.run(_release(scontrol, name))


async def _reserve(scontrol: Scontrol, name: str, why: str) -> None:
    node = await _known(scontrol, name)
    match hold(node):
        case SlurmHold.OTHERS | SlurmHold.ABSENCE:
            raise HeldByOthers(f"{name} is {describe(node)}")
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
