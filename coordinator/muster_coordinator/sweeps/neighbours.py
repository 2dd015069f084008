"""Healthy nodes near another one, for it to be measured with."""

import heapq
from collections.abc import Collection, Mapping

from muster.model import Health
from muster_coordinator.definitions import like_most
from muster_coordinator.node import Node


def nearest_healthy(
    node: Node, nodes: Mapping[str, Node], check: str, number: int, without: Collection[str] = ()
) -> list[Node]:
    """So many healthy nodes that can run the check with this one, or as many as there are, the nearest first.

    Of somewhat more that are near, those count that announce the check as most of them do: another would take no part.
    """
    others = (
        other
        for other in nodes.values()
        if other is not node and other.name not in without and other.health is Health.HEALTHY and can_run(other, check)
    )
    near = heapq.nsmallest(2 * number + 1, others, key=lambda other: _distance(node, other))
    return like_most(near, check)[:number]


def can_run(node: Node, check: str) -> bool:
    """Whether the node is there and has the check."""
    return node.online and check in node.checks


def _distance(node: Node, other: Node) -> tuple[bool, bool, bool, str]:
    """Sorts nodes of the same rack first, then of the same leaf, then of the same block."""
    here, there = node.topology, other.topology
    return here.block != there.block, here.leaf != there.leaf, here.rack != there.rack, other.name
