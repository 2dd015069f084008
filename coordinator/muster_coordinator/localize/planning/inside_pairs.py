"""Pairs inside leaves in a round that crosses leaves: only as many pairs share uplinks as it takes to see every path.

The idea: where links between leaves are oversubscribed or collide, pairs across leaves slow each other, and bad nodes
and paths hide among them. One pair for each path is enough. All other pairs show more inside leaves.

Example: a1-b1, a2-b2 and a3-b3 cross the path a-b. a1-a2, b1-b2 and a3-b3 cross it once and show both leaves. Where
a1-b1 and a2-c1 exchange partners, a1-a2 shows leaf a, and b1-c1 crosses another path.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.fabric import FEW_BESIDE, KnownFabric, Path
from muster_coordinator.localize.significance import liars_among_peers
from muster_coordinator.model.probes import Probe, Site
from muster_coordinator.normal.normality import liars_among

Members = tuple[str, ...]

SHARE_INSIDE = 2 / 3
"""Of all pairs, if every path keeps one. A third of the pairs does not fill links that are oversubscribed 3:1.

Chosen by simulation (64 nodes, 2:1 oversubscribed, ECMP, work of others; 126 sweeps each). With two pairs inside
leaves, a sweep takes 2.1 runs for each node, and bad paths at 45 % pass. At a half, leaves of unequal size still take
1.8 runs. At 2/3, all take 1.2, and these paths are found.
"""

INSIDE = "{} and {} show what nodes of leaf {} reach; all runs so far crossed leaves"

LEAST_INSIDE = 2
"""Two values make a level."""

MOST_LEFT_OUT = 1 / 16
"""Of the paths that the round crosses. One pair in twenty is inside a leaf at most, so only small fleets leave out
more: of 16 nodes at four leaves, two of six paths."""


def with_pairs_inside(groups: Sequence[Members], sites: Mapping[str, Site]) -> list[Members]:
    """Pairs across leaves exchange partners: many run inside leaves where no path needs them, and a few always."""
    return _with_a_few_inside(_with_spare_ones_inside(groups, sites), sites)


def _with_spare_ones_inside(groups: Sequence[Members], sites: Mapping[str, Site]) -> list[Members]:
    """Two pairs across the same leaves exchange partners until enough pairs are inside leaves.

    Each pair of leaves keeps a pair across, so where every path is crossed once or twice only, nothing changes. O(n)
    for n nodes.

    Rule: only leaves with more nodes than may lie. Prevents: eleven liars declare a leaf of their own, meet each other
    in the first round, and have passed before any honest node has met them.
    """
    liars = liars_among(len(sites))
    wanted = SHARE_INSIDE * len(groups)
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
    while len(inside) < wanted and (long := [pairs for pairs in paths.values() if len(pairs) > 2]):
        for pairs in long:
            (one, other), (third, fourth) = pairs.pop(), pairs.pop()
            inside += [(one, third), (other, fourth)]
    return [*others, *(pair for pairs in paths.values() for pair in pairs), *inside]


def _with_a_few_inside(groups: Sequence[Members], sites: Mapping[str, Site]) -> list[Members]:
    """Two pairs at one leaf exchange partners until enough pairs are inside leaves.

    Liars may fake some of them, and the others are still enough. Nothing changes if that would leave out too many
    paths. Takes O(n) for n nodes, and O(leaves) for each exchange.
    """
    wanted = LEAST_INSIDE + liars_among_peers(len(sites), sum(map(len, groups))) // 2
    crossing = CrossingPairs(KnownFabric(sites))
    others = [group for group in groups if not crossing.add(group)]
    enough = (1 - MOST_LEFT_OUT) * crossing.paths
    while crossing.inside.total() < wanted and (leaf := crossing.next_leaf()) is not None:
        (one, first), (other, second) = crossing.take(leaf), crossing.take(leaf)
        others += [pair for pair in ((one, other), (first, second)) if not crossing.add(pair)]
    return [*crossing.pairs, *others] if crossing.paths >= enough else [*groups]


def inside_for_the_first_time(evidence: GroupEvidence, healthy: Iterable[str]) -> list[Probe]:
    """Pairs of these `healthy` nodes of one kind inside leaves, if all runs of their kind crossed leaves.

    Prevents: 12 nodes at four leaves, 2:1 oversubscribed. Each path needs its pair, and all pairs reach half of what
    nodes can do. A node that delivers 70 % would pass.
    """
    waiting: dict[str, str] = {}
    found: list[Probe] = []
    for node in healthy:
        leaf = evidence.sites[node].leaf
        if leaf is not None and (other := waiting.pop(leaf, None)) is not None:
            found.append(Probe((other, node), INSIDE.format(other, node, leaf)))
        elif leaf is not None:
            waiting[leaf] = node
    if not found or _have_run_inside(evidence, found[0].members):
        return []
    return found[: FEW_BESIDE + 1]


def _have_run_inside(evidence: GroupEvidence, nodes: Members) -> bool:
    """Whether nodes of this kind have run with others of their leaf."""
    runs = evidence.thresholds.among(evidence.hardware.kind_of(nodes[0])).runs
    return any(len(run.members) > 1 and evidence.fabric.is_inside(run.members) for run in runs)


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
