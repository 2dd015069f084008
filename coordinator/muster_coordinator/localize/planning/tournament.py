"""Rounds of disjoint pairs: every node with every other one, or across as many paths as possible.

The circle method: one node stays on its chair while the others move on by one chair after each round; nodes that sit
opposite each other meet. Example: a b c d sit as a-d, b-c. Then a-c, d-b. Then a-b, c-d. Four nodes, three rounds, each
pair once. A round of n nodes takes O(n).
"""

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import TypeVar

from muster_coordinator.model.probes import Site

Player = TypeVar("Player")


def rounds_of(players: Sequence[Player]) -> Iterator[list[tuple[Player, Player]]]:
    """Rounds of disjoint pairs in which each of `players` meets each other one exactly once."""
    return (meetings(players, turn) for turn in range(turns_of(len(players))))


def turns_of(players: int) -> int:
    """The number of rounds until every player has met every other one."""
    return max(players - 1 + players % 2, 0)


def meetings(players: Sequence[Player], turn: int) -> list[tuple[Player, Player]]:
    """The disjoint pairs of one round.

    The first player stays while the others have moved on by `turn` chairs. With an odd number of players, each meets
    the empty chair once.
    """
    seats: list[Player | None] = [*players, *([None] if len(players) % 2 else [])]
    moving = deque(seats[1:])
    moving.rotate(turn)
    seats[1:] = moving
    half = len(seats) // 2
    opposite = zip(seats[:half], reversed(seats[half:]), strict=True)
    return [(one, other) for one, other in opposite if one is not None and other is not None]


def across_leaves(sites: Iterable[Site], seed: str, passes: int) -> list[tuple[str, ...]]:
    """Disjoint groups of all nodes, in pairs that cross as many different pairs of leaves as possible.

    Nodes that are left over meet within their leaf. An odd number of nodes makes one group of three. `seed` draws which
    nodes and leaves meet, so another sweep takes other paths; further `passes` with the same seed cross further paths.
    Example: 1,024 nodes at 32 leaves have 496 paths. The 512 pairs of one pass cross all of them.
    """
    rng = random.Random(seed)  # noqa: S311 - no secret depends on it
    leaves: dict[str | None, list[str]] = {}
    for site in sorted(sites, key=lambda site: site.node):
        leaves.setdefault(site.leaf, []).append(site.node)
    waiting = [leaves[leaf] for leaf in rng.sample(sorted(leaves, key=str), len(leaves))]
    for nodes in waiting:
        random.Random(f"{seed} {passes}").shuffle(nodes)  # noqa: S311 - as above
    groups: list[tuple[str, ...]] = list(_crossing(waiting, passes * max(map(len, waiting), default=0)))
    rest = [node for nodes in waiting for node in nodes]
    groups += [tuple(rest[i : i + 2]) for i in range(0, len(rest) - 1, 2)]
    if len(rest) % 2 and groups:
        groups[-1] = (*groups[-1], rest[-1])
    return groups


def _crossing(leaves: list[list[str]], skip: int) -> Iterator[tuple[str, str]]:
    """Takes nodes from `leaves` in pairs while two leaves have any."""
    rounds = list(rounds_of(leaves))
    for number in count(skip):
        if sum(map(bool, leaves)) < 2:
            return
        for one, other in rounds[number % len(rounds)]:
            if one and other:
                yield one.pop(), other.pop()
