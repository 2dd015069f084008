"""The hops of collectives: who sends to whom, and what a rate per hop means for a group.

Ranks are in topology order, so rings and trees cross few leaves. All GPUs of a node are one place here: between nodes,
a rank talks on the rail of its GPU, so each rail carries a ring or tree of its own with an equal part of the data, and
the slowest rail decides.

- **Ring**: each node sends to the next one. Each hop carries 2 (n - 1) / n of the data of its rail, so the bus
  bandwidth, by the definition of nccl-tests, is the rate of a hop. Two nodes: both send and receive at once.
- **Tree**: two binary trees with half of the data each, as NCCL builds them; what is a leaf in one is mostly an inner
  node in the other (Sanders, Speck and Träff 2009). Data goes up to be reduced and down again, all at one pace. A NIC
  carries at most four hops each way, and the bus bandwidth is 4 (n - 1) / n times the rate of a hop.

Example: a ring of n0, n1 and n2 at leaf a, and n3 at leaf b. Two of four hops cross: n2 to n3 and n3 to n0.
"""

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from benchmarks.fabric.flows import Numbers


class Collective(StrEnum):
    """How the nodes of a group exchange."""

    RING = "ring"
    TREE = "tree"


class Hops(NamedTuple):
    """The positions in the group of the sender and of the receiver of each hop."""

    source: Numbers
    target: Numbers


def hops_of(collective: Collective, nodes: int) -> Hops:
    """The hops of a group of two nodes or more."""
    if collective is Collective.RING:
        ranks = np.arange(nodes)
        return Hops(ranks, (ranks + 1) % nodes)
    pairs = [(child, parent) for tree in double_tree(nodes) for child, parent in enumerate(tree) if parent is not None]
    child, parent = np.array(pairs).T
    return Hops(np.concatenate([child, parent]), np.concatenate([parent, child]))


def bus_share(collective: Collective, nodes: int) -> float:
    """The bus bandwidth of a group as a multiple of the rate of its hops."""
    return 1.0 if collective is Collective.RING else 4 * (nodes - 1) / nodes


def double_tree(nodes: int) -> tuple[list[int | None], list[int | None]]:
    """The parent of each rank in the two trees of NCCL (src/graph/trees.cc): the second mirrors or shifts the first."""
    first = [_parent(rank, nodes) for rank in range(nodes)]
    second: list[int | None] = [None] * nodes
    for rank, parent in enumerate(first):
        second[_other(rank, nodes)] = None if parent is None else _other(parent, nodes)
    return first, second


def _parent(rank: int, nodes: int) -> int | None:
    """Of a binary tree in which ranks with more trailing zeros stand higher."""
    if rank == 0:
        return None
    bit = rank & -rank
    above = (rank ^ bit) | (bit << 1)
    return above if above < nodes else rank ^ bit


def _other(rank: int, nodes: int) -> int:
    """The place in the second tree of what has this place in the first one."""
    return (rank + 1) % nodes if nodes % 2 else nodes - 1 - rank
