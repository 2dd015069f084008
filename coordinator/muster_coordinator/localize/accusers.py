"""Whose runs count against a node, although nodes may lie: disjoint partners that were drawn by lot.

Only the node itself can cause what it shows alone. What it shows with others may be their doing, even a crash of its
own ranks: a partner that sends nonsense can crash them. Two crashes beside the same partner therefore speak as much
against the partner, and convict neither.

Lots decide on a partner in two cases: in the partner's first run, and after it has passed. A partner that has not
passed meets other suspects, and liars can arrange to be suspects of the same kind. Such partners do not count.

The first partner from a node's own leaf counts like any other. Liars may claim to stand at a leaf, and are then drawn
there more often; but over all nodes of the fleet no more liars are drawn. Further partners from the leaf count as drawn
from its few nodes: at a leaf of 8 honest nodes and 12 liars, three of five partners lie.

Example: in a fleet of 256 nodes 12 may lie. Node a crashes beside b, c, d and e, which share nobody and were drawn by
lot. That all four lie is too unlikely (see `chance`), so a is at fault. After three of them, one more is missing. The
functions take time in proportion to the bad runs of the node, times their partners for `disjoint`.
"""

from collections.abc import Iterable, Iterator

from muster_coordinator.localize.chance import MISTAKES_ABOUT_PATHS, may_be_lies
from muster_coordinator.localize.evidence import Evidence, Path
from muster_coordinator.localize.trial import Trial
from muster_coordinator.normal.liars import liars_among

Partners = tuple[str, ...]


def accusers(evidence: Evidence, node: str, bad: Iterable[Trial]) -> list[Partners]:
    """The partners of `node` in these bad runs that count against it; no two of them share a node."""
    others = (trial.others(node) for trial in bad if evidence.drawn[trial.group].issuperset(trial.others(node)))
    return disjoint(found for found in others if found)


def accusers_missing(evidence: Evidence, node: str, bad: Iterable[Trial]) -> int:
    """How many more partners must be bad with `node` until they cannot all be liars; 0 when there are enough."""
    drawn = [*_draws(evidence, node, accusers(evidence, node, bad))]
    everybody, missing = len(evidence.sites), 0
    while may_be_lies(everybody, drawn):
        drawn.append((1, everybody - 1))
        missing += 1
    return missing


def pairs_missing(evidence: Evidence, path: Path, bad: Iterable[Trial]) -> int:
    """How many more pairs must be bad across `path` until it is too unlikely that each pair has a liar.

    0 for a link between two nodes: no other pair can try it, and its conviction names both ends. Where only nodes
    themselves say at which leaf they stand, all liars may claim to stand at the smaller leaf.
    """
    if not path.of_leaves:
        return 0
    everybody = len(evidence.sites)
    ends = [evidence.leaves[leaf] for leaf in path.ends]
    places = (node for nodes in ends for node in nodes)
    draw = (1, min(map(len, ends))) if any(evidence.sites[node].places_itself for node in places) else (2, everybody)
    drawn, missing = [draw for _ in disjoint(trial.members for trial in bad)], 0
    while may_be_lies(everybody, drawn, MISTAKES_ABOUT_PATHS):
        drawn.append(draw)
        missing += 1
    return missing


def may_be_of_liars(evidence: Evidence, leaf: str) -> bool:
    """Whether all nodes at a leaf may be liars: only they themselves say so, and they are no more than may lie."""
    nodes = evidence.leaves[leaf]
    return all(evidence.sites[node].places_itself for node in nodes) and len(nodes) <= liars_among(len(evidence.sites))


def disjoint(groups: Iterable[Partners]) -> list[Partners]:
    """Groups that share no node, small ones first. What is bad between two nodes may spoil all groups with both."""
    found: list[Partners] = []
    for group in sorted(dict.fromkeys(groups), key=len):
        if all(map(frozenset(group).isdisjoint, found)):
            found.append(group)
    return found


def _draws(evidence: Evidence, node: str, found: Iterable[Partners]) -> Iterator[tuple[int, int]]:
    """For each group of partners, how many they are and from how many they were drawn."""
    neighbours, from_leaf = evidence.neighbours(node), 0
    for partners in found:
        from_leaf += neighbours.issuperset(partners)
        near = neighbours.issuperset(partners) and from_leaf > 1
        yield len(partners), len(neighbours) if near else len(evidence.sites) - 1
