"""A few pairs inside leaves in a round that crosses leaves: they show what runs reach that share no uplink.

The idea: where links between leaves are oversubscribed or collide, every pair across leaves is slow in the first round,
so nothing tells that it could be faster, and a bad node hides among them. A pair inside a leaf tells.

Example: a1-b1, a2-b2 and a3-b3 cross the path a-b. a1-a2, b1-b2 and a3-b3 cross it once and show both leaves. Where
a1-b1 and a2-c1 exchange partners, a1-a2 shows leaf a, and b1-c1 crosses another path.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from muster_coordinator.localize.evidence.fabric import KnownFabric, Path
from muster_coordinator.localize.significance import liars_among_peers
from muster_coordinator.model.probes import Site

Members = tuple[str, ...]

LEAST_INSIDE = 2
"""Two values make a level."""

MOST_LEFT_OUT = 1 / 16
"""Of the paths that the round crosses. One pair in twenty is inside a leaf at most, so only small fleets leave out
more: of 16 nodes at four leaves, two of six paths."""


def with_pairs_inside(groups: Sequence[Members], sites: Mapping[str, Site]) -> list[Members]:
    """Two pairs at one leaf exchange partners until enough pairs are inside leaves.

    They are so many that they are still enough without those that liars may fake. Nothing changes if that would leave
    out too many paths. Takes O(n) for n nodes, and O(leaves) for each exchange.
    """
    wanted = LEAST_INSIDE + liars_among_peers(len(sites), sum(map(len, groups))) // 2
    crossing = CrossingPairs(KnownFabric(sites))
    others = [group for group in groups if not crossing.add(group)]
    enough = (1 - MOST_LEFT_OUT) * crossing.paths
    while crossing.inside.total() < wanted and (leaf := crossing.next_leaf()) is not None:
        (one, first), (other, second) = crossing.take(leaf), crossing.take(leaf)
        others += [pair for pair in ((one, other), (first, second)) if not crossing.add(pair)]
    return [*crossing.pairs, *others] if crossing.paths >= enough else [*groups]


class CrossingPairs:
    """The pairs that cross leaves, each with its path, and how many groups are `inside` each leaf."""

    def __init__(self, fabric: KnownFabric) -> None:
        self._fabric = fabric
        self.pairs: dict[Members, Path] = {}
        self.inside: Counter[str] = Counter()
        self._at: dict[str, list[Members]] = defaultdict(list)
        self._crossed: Counter[Path] = Counter()

    @property
    def paths(self) -> int:
        """The number of paths that the pairs cross."""
        return len(+self._crossed)

    def add(self, group: Members) -> bool:
        """Whether this group is a pair that crosses two known leaves."""
        path = self._fabric.path(group[0], group[-1])
        if self._fabric.is_inside(group):
            self.inside[path.ends[0]] += 1
        if len(group) != 2 or not path.of_leaves or path.ends[0] == path.ends[1]:
            return False
        self.pairs[group] = path
        self._crossed[path] += 1
        for leaf in path.ends:
            self._at[leaf].append(group)
        return True

    def next_leaf(self) -> str | None:
        """The leaf of several pairs with the fewest groups inside, the largest first; None if there is none.

        Rule: the largest first. Prevents: of 1,024 nodes 51 may lie. They declare 25 leaves, and half of all pairs
        inside leaves are theirs.
        """
        able = (leaf for leaf, pairs in self._at.items() if len(pairs) > 1)
        return min(able, key=lambda leaf: (self.inside[leaf], -len(self._at[leaf])), default=None)

    def take(self, leaf: str) -> tuple[str, str]:
        """Removes a pair at this leaf whose path most pairs cross: the node that stands there, and its partner."""
        pair = max(self._at[leaf], key=lambda pair: self._crossed[self.pairs[pair]])
        path = self.pairs.pop(pair)
        self._crossed[path] -= 1
        for end in path.ends:
            self._at[end].remove(pair)
        one, other = sorted(pair, key=lambda node: self._fabric.sites[node].leaf != leaf)
        return one, other
