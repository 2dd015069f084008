"""Learns leaves from the bandwidth of pairs: nodes of one leaf are faster with each other than with other nodes.

The idea: if the switches above have less bandwidth than the leaves, the bandwidths of pairs fall into two bands with a
gap in between. Fast pairs connect nodes into clusters, and the clusters are the leaves. No leaf is better than a
guessed one, so each step leaves out what is not certain:

- The gap must be wider than noise. The widest gap that makes leaves counts.
- A fault makes a pair slower, never faster. So a few slow pairs inside a leaf are allowed. One fast pair joins the
  nodes that it connects; a cluster whose other pairs are slow is then no leaf.
- Nodes that have met too few others, or are slow with everyone, are left out. So are clusters of too few nodes, and
  clusters that have not met each other. If fewer than half of the nodes remain, nothing is learned.
- Known leaves stand. A cluster takes the name that most of its known nodes have. A cluster that would join two known
  leaves, or split one, is left out.

Example: n1, n2 and n3 reach 100 GB/s with each other, and so do n4, n5 and n6. Across, pairs reach 50. The gap from 50
to 100 is wider than 15 %, and the boundary is 71. The leaves are {n1, n2, n3} and {n4, n5, n6}. If n3-n4 also reached
100, all six would form one cluster, most of its pairs would be slow, and nothing would be learned.

Each boundary takes time in proportion to the pairs, and sorting them O(p log p) for p pairs.
"""

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from muster.nouns import count

LEAST_GAP = 0.15
"""Least shortfall of the slower side of a gap: three times the noise of a bad fabric. A fault must be as large in
`localize.evidence.threshold`."""

FEWEST_NODES = 3
"""Fewest nodes of a leaf. Two fast nodes can be chance; three that are all fast with each other hardly are."""

MET_SHARE = 0.5
"""Share of the other nodes that a node must have met."""

HOLDS_TOGETHER = 0.9
"""Share of the pairs inside a leaf that must be fast. The others may be bad links."""

PLACED_SHARE = 0.5
"""Share of all nodes that must have a leaf in the end."""


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """Two nodes and the bandwidth that they reached together, in GB/s."""

    one: str
    other: str
    bandwidth_gbps: float


@dataclass(frozen=True, slots=True)
class LearnedLeaf:
    """Nodes that share a leaf, and the evidence: median and number of the pairs inside, and of those to other leaves.

    `confidence` is the share of the possible pairs that were measured and fit.
    """

    name: str
    nodes: tuple[str, ...]
    inside_gbps: float
    inside_pairs: int
    across_gbps: float
    across_pairs: int
    confidence: float

    def __str__(self) -> str:
        inside = f"{self.inside_gbps:.4g} GB/s with each other ({count(self.inside_pairs, 'pair')})"
        across = f"{self.across_gbps:.4g} GB/s with others ({count(self.across_pairs, 'pair')})"
        return f"{self.name}: {len(self.nodes)} nodes reach {inside} and {across}"


Met = Mapping[tuple[str, str], float]
"""The median bandwidth of two nodes in GB/s, by the nodes in the order of their names."""

Cluster = tuple[str, ...]
"""Nodes, in the order of their names."""


def learn_leaves(pairs: Iterable[MeasuredPair], known: Mapping[str, str]) -> list[LearnedLeaf]:
    """The leaves that the pairs show, in the order of their first nodes; empty if they show none.

    The pairs must be comparable, as those of one sweep are: one check with the same parameters. `known` has the leaves
    of nodes that have one.
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
    """The median bandwidth of each pair, without runs that measured nothing."""
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
    """The middles of the gaps, the widest gap first."""
    gaps = [
        (lower / upper, math.sqrt(lower * upper))
        for lower, upper in itertools.pairwise(sorted(values))
        if lower < (1 - LEAST_GAP) * upper
    ]
    return [middle for _, middle in sorted(gaps)]


def _clusters(met: Met, boundary: float) -> list[Cluster]:
    """The clusters of nodes that fast pairs connect, if large enough."""
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
    """Bandwidths between two clusters, by their first nodes. Both are the same for pairs inside a cluster."""
    first_of = {node: cluster[0] for cluster in clusters for node in cluster}
    found: dict[tuple[str, str], list[float]] = {}
    for (one, other), value in met.items():
        if one in first_of and other in first_of:
            ends = first_of[one], first_of[other]
            found.setdefault((min(ends), max(ends)), []).append(value)
    return found


def _holding_together(clusters: list[Cluster], met: Met, boundary: float) -> list[Cluster]:
    """The clusters whose inner pairs are fast."""
    between = _between(clusters, met)
    fast = {ends: statistics.fmean(value > boundary for value in values) for ends, values in between.items()}
    return [cluster for cluster in clusters if fast[cluster[0], cluster[0]] >= HOLDS_TOGETHER]


def _all_met(clusters: list[Cluster], met: Met) -> list[Cluster]:
    """The clusters that have met all others. Two that have not met may be one leaf."""
    between = _between(clusters, met)
    unmet = [ends for ends in itertools.combinations((cluster[0] for cluster in clusters), 2) if ends not in between]
    apart = {*itertools.chain.from_iterable(unmet)}
    return [cluster for cluster in clusters if cluster[0] not in apart]


def _without_contradictions(clusters: list[Cluster], known: Mapping[str, str]) -> list[Cluster]:
    """The clusters without a known name, or with a name that most of their known nodes and no other cluster have."""
    names = {cluster: _name(cluster, known) for cluster in clusters}
    owners = Counter(names.values())
    return [cluster for cluster, name in names.items() if name is None or (name and owners[name] == 1)]


def _name(cluster: Cluster, known: Mapping[str, str]) -> str | None:
    """The leaf of most known nodes of a cluster; empty if they disagree, None if no node is known.

    A node may claim any leaf. Prevents: one liar claims another leaf, and its honest neighbours learn no leaf.
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
