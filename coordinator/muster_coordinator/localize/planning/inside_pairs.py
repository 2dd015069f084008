"""A few pairs inside leaves in a round that crosses leaves: they show what runs reach that share no uplink.

The idea: where links between leaves are oversubscribed or collide, every pair across leaves is slow in the first round,
so nothing tells that it could be faster, and a bad node hides among them. A pair inside a leaf tells.

Example: a1-b1, a2-b2 and a3-b3 cross the path a-b. a1-a2, b1-b2 and a3-b3 cross it once and show both leaves.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from muster_coordinator.model.probes import Site
from muster_coordinator.normal.normality import liars_among

Members = tuple[str, ...]

LEAST_INSIDE = 2
"""Two values make a level."""


def with_pairs_inside(groups: Sequence[Members], sites: Mapping[str, Site]) -> list[Members]:
    """Two pairs across the same leaves exchange partners until enough pairs are inside leaves.

    They are so many that they are still enough without those that liars may fake. Each pair of leaves keeps a pair
    across, so where every path is crossed once or twice only, nothing changes. O(n) for n nodes.

    Rule: only leaves with more nodes than may lie. Prevents: eleven liars declare a leaf of their own, meet each other
    in the first round, and have passed before any honest node has met them.
    """
    liars = liars_among(len(sites))
    wanted = LEAST_INSIDE + liars // 2
    size = Counter(site.leaf for site in sites.values())
    paths: dict[frozenset[str], list[Members]] = {}
    inside, others = [], []
    for group in groups:
        ends = frozenset(sites[node].leaf or node for node in group)
        if len(ends) == 1:
            inside.append(group)
        elif len(group) == 2 and min(size[sites[node].leaf] for node in group) > liars:
            paths.setdefault(ends, []).append(tuple(sorted(group, key=lambda node: sites[node].leaf or node)))
        else:
            others.append(group)
    for pairs in paths.values():
        while len(pairs) > 2 and len(inside) < wanted:
            (one, other), (third, fourth) = pairs.pop(), pairs.pop()
            inside += [(one, third), (other, fourth)]
    return [*others, *(pair for pairs in paths.values() for pair in pairs), *inside]
