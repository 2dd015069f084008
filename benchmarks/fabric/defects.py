"""Broken parts of a network, and what they deliver."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from benchmarks.fabric.network import FatTree, PartShares

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


def shares_with(network: FatTree, speed: np.ndarray, defects: Iterable[Defect]) -> PartShares:
    """What all parts deliver if these defects show, in a fleet whose nodes have this speed; 1 is normal."""
    parts = network.healthy()
    parts.nodes[:] = speed
    for defect in defects:
        match defect.part, defect.of:
            case BrokenPart.NODE, (node,):
                parts.nodes[node] *= 1.0 if defect.crashes else defect.share
            case BrokenPart.LINK, (node,):
                parts.links[node, :] *= defect.share
            case BrokenPart.RAIL, (node, rail):
                parts.links[node, rail] *= defect.share
            case BrokenPart.LEAF, (leaf,):
                parts.switches[leaf, :] *= defect.share
            case BrokenPart.SWITCH, (leaf, rail):
                parts.switches[leaf, rail % network.planes] *= defect.share
            case BrokenPart.WAY, (leaf, way):
                parts.ways[leaf, way] *= defect.share
            case BrokenPart.PATH, (one, other):
                parts.paths[one, other] = defect.share
    return parts


def showing(defects: Iterable[Defect], lots: random.Random) -> list[Defect]:
    """The defects that show this time."""
    return [defect for defect in defects if defect.is_persistent or lots.random() < defect.chance]
