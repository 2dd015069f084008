"""The known fabric: leaves and paths, and sides if the leaves are unknown."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

from muster_coordinator.localize.significance import FEWEST_CONTROL_PAIRS
from muster_coordinator.model.probes import Site

FEW_BESIDE, NODES_PER_GROUP = 7, 8
"""With at most this number of other groups of several nodes beside it, a run hardly shares links; in a fleet of fewer
than 64 nodes, with one for each eight nodes.

Chosen by simulation: of 300 nodes, links and rails that deliver 40 to 70 %, where links are 2:1 oversubscribed or ECMP
has four ways, 288 are found. At 3, 251 are, because three suspects and two control pairs are too many for one round. At
15, it is the same as at 7.
"""

CROSSING_PER_LEAF, SHARE_CROSSING = 4, 1 / 8
"""In a larger fleet, links are shared as little while groups have this many members at each leaf on average, or this
share of all nodes if that is more.

Example: 1,024 nodes at 32 leaves, 2:1 oversubscribed. A leaf has links for 16 of its 32 nodes. Beside 63 other groups,
four nodes of a leaf cross them. With `FEW_BESIDE`, 51 bad nodes would need more rounds than a sweep has: in five such
fleets, 241 of 255 are found instead of 135. At four leaves of 256 nodes, the share finds 48 of 51 instead of 30.
"""


class Path(NamedTuple):
    """The connection between two leaves, or between two nodes; the ends are in alphabetical order.

    For two nodes of one leaf, both ends are that leaf.
    """

    ends: tuple[str, str]
    of_leaves: bool


@dataclass(frozen=True)
class KnownFabric:
    """The fabric according to the `sites`, which are in topology order."""

    sites: Mapping[str, Site]

    @cached_property
    def leaves(self) -> Mapping[str, tuple[str, ...]]:
        """The nodes of every known leaf."""
        leaves: dict[str, list[str]] = {}
        for site in self.sites.values():
            if site.leaf is not None:
                leaves.setdefault(site.leaf, []).append(site.node)
        return {leaf: tuple(nodes) for leaf, nodes in leaves.items()}

    @cached_property
    def all_leaves_known(self) -> bool:
        return all(site.leaf is not None for site in self.sites.values())

    @cached_property
    def few_beside(self) -> int:
        """Beside how many other groups a run hardly shares links, in a sweep of this fabric: two controls at least.

        Prevents: 12 nodes at four leaves, 2:1 oversubscribed. All six pairs share links, with only five beside each.
        Rule: a small fleet whose leaves nobody knows has too few runs to tell contention from noise. Prevents: pairs of
        ten nodes reach 1.2 to 1.7 by noise, and the only two that run while others rest reach 1.6. Two slow runs would
        be compared with these, and a healthy node convicted.
        """
        least = FEWEST_CONTROL_PAIRS if self.leaves else FEW_BESIDE
        crossing = max(CROSSING_PER_LEAF * len(self.leaves), SHARE_CROSSING * len(self.sites))
        most = max(FEW_BESIDE, int(crossing) // 2 - 1)  # pairs, without the run itself
        return min(most, max(len(self.sites) // NODES_PER_GROUP, least))

    def neighbours(self, node: str) -> frozenset[str]:
        """The other nodes of its leaf."""
        leaf = self.sites[node].leaf
        return frozenset(() if leaf is None else self.leaves[leaf]) - {node}

    def leaves_of(self, nodes: Iterable[str]) -> frozenset[str | None]:
        """The leaves of these nodes, with None if one is unknown."""
        return frozenset(site.leaf if (site := self.sites.get(node)) is not None else None for node in nodes)

    def is_inside(self, nodes: Iterable[str]) -> bool:
        """Whether all these nodes are known to stand at one leaf."""
        leaves = self.leaves_of(nodes)
        return len(leaves) == 1 and None not in leaves

    def path(self, one: str, other: str) -> Path:
        """The path between two nodes: from leaf to leaf, or from node to node if a leaf is unknown."""
        leaf, another = self.sites[one].leaf, self.sites[other].leaf
        if leaf is None or another is None:
            return Path((min(one, other), max(one, other)), of_leaves=False)
        return Path((min(leaf, another), max(leaf, another)), of_leaves=True)

    def paths(self, nodes: Iterable[str]) -> frozenset[Path]:
        """The paths between every two of these nodes."""
        return frozenset(self.path(*ends) for ends in combinations(nodes, 2))


def sides_of(passed: Iterable[tuple[str, ...]]) -> Mapping[str, frozenset[str]]:
    """All nodes on the side of the fabric of each node, from groups that have `passed` together.

    Two nodes are on one side if they have passed together, or each with a third node: no part between them is known to
    be bad. Other nodes may be on two sides of a bad path. Example: a-b, b-c and d-e have passed. The sides are {a, b,
    c} and {d, e}; between c and d there may be a bad switch.

    Takes time in proportion to n log n for n nodes: the smaller side always joins the larger one.
    """
    sides: dict[str, set[str]] = {}
    for group in passed:
        side = max((sides.get(node, {node}) for node in group), key=len)
        for node in group:
            other = sides.get(node, {node})
            if other is not side:
                side |= other
                sides.update(dict.fromkeys(other, side))
        sides.update(dict.fromkeys(group, side))
    frozen = {key: frozenset(side) for key, side in {id(side): side for side in sides.values()}.items()}
    return {node: frozen[id(side)] for node, side in sides.items()}
