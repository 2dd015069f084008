"""Leaves as they show in the bandwidth of pairs: nodes of one leaf are faster with each other than with any other.

That is so where the switches above have less bandwidth than the leaves below them, and it shows where most nodes have
met most others. There are no leaves rather than guessed ones:

- Between the pairs inside of leaves and those across lies a gap that noise does not explain; of several such gaps, the
  widest one that makes leaves counts.
- Faults make pairs slower, never faster. So a few slow pairs inside of a leaf are no contradiction, but one fast pair
  joins what it connects, and what does not hold together then is no leaf.
- Nodes that have met too few or are slow with everybody are left out, and so are leaves of too few nodes and those that
  never met. Where less than half of the nodes remain, there are no leaves.
- What is known stands. A leaf takes the name that most of its known nodes have; what would join two known leaves or
  tear one apart is none.
"""

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

LEAST_GAP = 0.15
"""By how much the slower side of a gap falls short of the faster: three times the noise of a bad fabric, and as much as
`localize.evidence.threshold` asks of a fault."""

FEWEST_NODES = 3
"""Two fast nodes can be chance; that three are all fast with each other and slow with all others hardly is."""

MET_SHARE = 0.5
"""Of the other nodes, a node has to have met so many."""

HOLDS_TOGETHER = 0.9
"""Of the pairs inside of a leaf, so many have to be fast: the others may be bad links."""

PLACED_SHARE = 0.5
"""Of all nodes, so many have to have a leaf in the end."""


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """What two nodes have reached together, in GB/s."""

    one: str
    other: str
    bandwidth_gbps: float


@dataclass(frozen=True, slots=True)
class LearnedLeaf:
    """Nodes that share a leaf, and the evidence: medians and numbers of the pairs inside and of those to other leaves.

    `confidence` is the share of all these pairs, measured or not, that were measured and fit.
    """

    name: str
    nodes: tuple[str, ...]
    inside_gbps: float
    inside_pairs: int
    across_gbps: float
    across_pairs: int
    confidence: float

    def __str__(self) -> str:
        inside = f"{self.inside_gbps:.4g} GB/s with each other ({self.inside_pairs} pairs)"
        across = f"{self.across_gbps:.4g} GB/s with others ({self.across_pairs} pairs)"
        return f"{self.name}: {len(self.nodes)} nodes reach {inside} and {across}"


Met = Mapping[tuple[str, str], float]
"""By two nodes in the order of their names, what they have reached, in GB/s."""

Cluster = tuple[str, ...]
"""Nodes, in the order of their names."""


def learn_leaves(pairs: Iterable[MeasuredPair], known: Mapping[str, str]) -> list[LearnedLeaf]:
    """The leaves that the pairs show, by their first nodes; none when they show none.

    The pairs have to be comparable: of one check with the same parameters among the same nodes, such as of one sweep.
    `known` holds the leaves of those nodes that have one.
    """
    met = _medians(pairs)
    nodes = {node for both in met for node in both}
    usable = _usable(met)
    for boundary in _boundaries(usable.values()):
        clusters = _holding_together(_clusters(usable, boundary), usable, boundary)
        clusters = _without_contradictions(_all_met(clusters, usable), known)
        if len(clusters) > 1 and sum(map(len, clusters)) >= PLACED_SHARE * len(nodes):
            return [*_leaves(clusters, usable, boundary, known)]
    return []


def _medians(pairs: Iterable[MeasuredPair]) -> dict[tuple[str, str], float]:
    """What each two nodes have reached; a run that broke down measured nothing."""
    values: dict[tuple[str, str], list[float]] = {}
    for pair in pairs:
        if pair.one != pair.other and 0 < pair.bandwidth_gbps < math.inf:
            values.setdefault((min(pair.one, pair.other), max(pair.one, pair.other)), []).append(pair.bandwidth_gbps)
    return {both: statistics.median(values[both]) for both in sorted(values)}


def _usable(met: Met) -> Met:
    """The pairs of nodes that have met enough others and are not slow with all of them."""
    by_node: dict[str, list[float]] = {}
    for both, value in met.items():
        for node in both:
            by_node.setdefault(node, []).append(value)
    enough = {node: max(values) for node, values in by_node.items() if len(values) >= MET_SHARE * (len(by_node) - 1)}
    least = (1 - LEAST_GAP) * statistics.median(enough.values()) if enough else math.inf
    return {both: value for both, value in met.items() if all(enough.get(node, 0) >= least for node in both)}


def _boundaries(values: Iterable[float]) -> list[float]:
    """Values in the middle of the gaps, that of the widest first."""
    gaps = [
        (lower / upper, math.sqrt(lower * upper))
        for lower, upper in itertools.pairwise(sorted(values))
        if lower < (1 - LEAST_GAP) * upper
    ]
    return [middle for _, middle in sorted(gaps)]


def _clusters(met: Met, boundary: float) -> list[Cluster]:
    """The nodes that fast pairs connect, where they are enough."""
    fast: dict[str, list[str]] = {}
    for (one, other), value in met.items():
        if value > boundary:
            fast.setdefault(one, []).append(other)
            fast.setdefault(other, []).append(one)
    found: list[Cluster] = []
    while fast:
        reached, ahead = set(), [next(iter(fast))]
        while ahead:
            node = ahead.pop()
            if node not in reached:
                reached.add(node)
                ahead += fast.pop(node)
        found.append(tuple(sorted(reached)))
    return sorted(cluster for cluster in found if len(cluster) >= FEWEST_NODES)


def _between(clusters: Iterable[Cluster], met: Met) -> dict[tuple[str, str], list[float]]:
    """What was measured between each two clusters, by their first nodes; inside of one as between it and itself."""
    first_of = {node: cluster[0] for cluster in clusters for node in cluster}
    found: dict[tuple[str, str], list[float]] = {}
    for (one, other), value in met.items():
        if one in first_of and other in first_of:
            ends = first_of[one], first_of[other]
            found.setdefault((min(ends), max(ends)), []).append(value)
    return found


def _holding_together(clusters: list[Cluster], met: Met, boundary: float) -> list[Cluster]:
    """Those of which the pairs inside are fast, whichever connect them."""
    between = _between(clusters, met)
    fast = {ends: statistics.fmean(value > boundary for value in values) for ends, values in between.items()}
    return [cluster for cluster in clusters if fast[cluster[0], cluster[0]] >= HOLDS_TOGETHER]


def _all_met(clusters: list[Cluster], met: Met) -> list[Cluster]:
    """Those that have met all others: two that have not may be one."""
    between = _between(clusters, met)
    unmet = [ends for ends in itertools.combinations((cluster[0] for cluster in clusters), 2) if ends not in between]
    apart = {*itertools.chain.from_iterable(unmet)}
    return [cluster for cluster in clusters if cluster[0] not in apart]


def _without_contradictions(clusters: list[Cluster], known: Mapping[str, str]) -> list[Cluster]:
    """The clusters without a known name, or with one that most of their known nodes share and no other cluster has."""
    names = {cluster: _name(cluster, known) for cluster in clusters}
    owners = Counter(names.values())
    return [cluster for cluster, name in names.items() if name is None or (name and owners[name] == 1)]


def _name(cluster: Cluster, known: Mapping[str, str]) -> str | None:
    """The leaf that most known nodes of a cluster name; empty when they do not agree, None when no node is known.

    A node may claim any place. One that claims the leaf of others must not keep these from their leaf.
    """
    names = Counter(known[node] for node in cluster if node in known)
    if not names:
        return None
    name, times = names.most_common(1)[0]
    return name if 2 * times > names.total() else ""


def _leaves(clusters: list[Cluster], met: Met, boundary: float, known: Mapping[str, str]) -> Iterator[LearnedLeaf]:
    between = _between(clusters, met)
    placed = sum(map(len, clusters))
    new = (name for number in itertools.count(1) if (name := f"learned-{number}") not in known.values())
    for cluster in clusters:
        inside = between[cluster[0], cluster[0]]
        across = [
            value for ends, values in between.items() if cluster[0] in ends and ends[0] != ends[1] for value in values
        ]
        possible = math.comb(len(cluster), 2) + len(cluster) * (placed - len(cluster))
        yield LearnedLeaf(
            name=_name(cluster, known) or next(new),
            nodes=cluster,
            inside_gbps=statistics.median(inside),
            inside_pairs=len(inside),
            across_gbps=statistics.median(across),
            across_pairs=len(across),
            confidence=(sum(value > boundary for value in inside) + len(across)) / possible,
        )
