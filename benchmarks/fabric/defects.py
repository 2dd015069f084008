"""Broken parts of a network, and what they deliver."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from benchmarks.fabric.network import Health, Network

HANGS = 0.0
"""The share of normal at which nothing gets through: runs across the part wait until they are ended."""


class BrokenPart(StrEnum):
    """The kinds of parts that break.

    A leaf is all of its switches, a switch the one that carries a rail, a way the connection of a leaf with one spine.
    """

    NODE = "node"
    LINK = "link"
    RAIL = "rail"
    LEAF = "leaf"
    SWITCH = "switch"
    PATH = "path"
    WAY = "way"


@dataclass(frozen=True, kw_only=True)
class Defect:
    """A broken part that delivers this `share` of normal.

    `of` has numbers: of a node; of a node and a rail; of a leaf; of a leaf and a rail; of two leaves, the lower first;
    or of a leaf and a spine. The share of a node counts for its GPUs and for all that it sends and receives, also
    alone; that of its link for what it exchanges with others. The defect shows with probability `chance` in each run of
    a node, and in each round for what lies between nodes. A node that `crashes` ends its own ranks instead of being
    slow.
    """

    part: BrokenPart
    of: tuple[int, ...]
    share: float = HANGS
    chance: float = 1.0
    crashes: bool = False

    @property
    def is_persistent(self) -> bool:
        return self.chance == 1.0


def health_with(network: Network, speed: np.ndarray, defects: Iterable[Defect]) -> Health:
    """What all parts deliver if these defects show, in a fleet whose nodes have this speed; 1 is normal."""
    health = network.healthy()
    health.nodes[:] = speed
    for defect in defects:
        match defect.part, defect.of:
            case BrokenPart.NODE, (node,):
                health.nodes[node] *= 1.0 if defect.crashes else defect.share
            case BrokenPart.LINK, (node,):
                health.links[node, :] *= defect.share
            case BrokenPart.RAIL, (node, rail):
                health.links[node, rail] *= defect.share
            case BrokenPart.LEAF, (leaf,):
                health.switches[leaf, :] *= defect.share
            case BrokenPart.SWITCH, (leaf, rail):
                health.switches[leaf, rail % network.planes] *= defect.share
            case BrokenPart.WAY, (leaf, way):
                health.ways[leaf, way] *= defect.share
            case BrokenPart.PATH, (one, other):
                health.paths[one, other] = defect.share
    return health


def showing(defects: Iterable[Defect], lots: random.Random) -> list[Defect]:
    """The defects that show this time."""
    return [defect for defect in defects if defect.is_persistent or lots.random() < defect.chance]
