"""Picks healthy nodes to measure another node with: the nearest one, and others drawn at random."""

import random
from collections.abc import Collection, Mapping

from muster.model import Health
from muster_coordinator.evidence.definitions import like_most
from muster_coordinator.evidence.node import Node


def draw_partners(
    node: Node, nodes: Mapping[str, Node], check: str, number: int, *, seed: str, without: Collection[str] = ()
) -> list[Node]:
    """Up to `number` healthy nodes that can run the check with `node`; `seed` decides which ones.

    The nearest one distinguishes a bad node from a bad path to it. The others come from anywhere in the node's block:
    nodes report their positions themselves, and liars that all claim a position beside a tested node could keep it out
    of service forever. Nodes with other hardware come last, because they may be slower. Nodes with another definition
    of the check than most are left out, because the sweep would leave them out.
    """
    healthy = (
        other
        for other in nodes.values()
        if other is not node and other.name not in without and other.health is Health.HEALTHY and can_run(other, check)
    )
    others = like_most(healthy, check)
    random.Random(seed).shuffle(others)  # noqa: S311 - no secret depends on it
    kind = node.hardware_kind
    unlike = {other.name for other in others if other.hardware_kind != kind}
    nearest = sorted(others, key=lambda other: (other.name in unlike, *_distance(node, other)))[:1]
    drawn = sorted(others, key=lambda other: (other.name in unlike, other.topology.block != node.topology.block))
    return [*nearest, *(other for other in drawn if other not in nearest)][:number]


def can_run(node: Node, check: str) -> bool:
    """Whether the node is online and has the check."""
    return node.online and check in node.checks


def _distance(node: Node, other: Node) -> tuple[bool, bool, bool]:
    """Sort key: nodes of the same rack first, then of the same leaf, then of the same block."""
    here, there = node.topology, other.topology
    return here.block != there.block, here.leaf != there.leaf, here.rack != there.rack
