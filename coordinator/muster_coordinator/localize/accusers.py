"""Whose accusation of a node counts, though nodes may lie: partners that were drawn by lot and share nobody.

What a node shows alone, nobody else can have brought about. What it shows with others may be the others' doing, even
where its own ranks crash: whoever sends them nonsense can crash them. Two crashes beside the same partner therefore
say as much about the partner, and neither is convicted of them. Partners count in their first run, which lots decide,
and later if they had passed before. Who has not passed meets other suspects, and liars can see to it that they are
suspects of the same kind.

The first partner from a node's own leaf counts like any other. Liars may say that they stand at a leaf, and then are
drawn there more often, but over all nodes of the fleet not more of them are drawn. Further ones from there are drawn
from few: at a leaf of 8 honest nodes and 12 liars, every second partner lies.
"""

from collections.abc import Iterable, Iterator

from muster_coordinator.liars import liars_among
from muster_coordinator.localize.chance import MISTAKES_ABOUT_PATHS, may_be_lies
from muster_coordinator.localize.evidence import Evidence, Path
from muster_coordinator.localize.trial import Trial

Partners = tuple[str, ...]


def accusers(evidence: Evidence, node: str, bad: Iterable[Trial]) -> list[Partners]:
    """Who counts of those with whom `node` was in these runs; of those who share a partner, one."""
    others = (trial.others(node) for trial in bad if evidence.drawn[trial.group].issuperset(trial.others(node)))
    return disjoint(found for found in others if found)


def accusers_missing(evidence: Evidence, node: str, bad: Iterable[Trial]) -> int:
    """How many more partners would have to accuse `node` until these cannot all be liars."""
    drawn = [*_draws(evidence, node, accusers(evidence, node, bad))]
    everybody, missing = len(evidence.sites), 0
    while may_be_lies(everybody, drawn):
        drawn.append((1, everybody - 1))
        missing += 1
    return missing


def pairs_missing(evidence: Evidence, path: Path, bad: Iterable[Trial]) -> int:
    """How many more pairs of nodes would have to be bad across `path` until not each of them can have a liar.

    A link has no other nodes than its ends, and names both. Where nodes say themselves at which leaf they stand, all
    liars may say that they are at the smaller one.
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
    """Whether all nodes at a leaf may be liars, because only they say that they stand there."""
    nodes = evidence.leaves[leaf]
    return all(evidence.sites[node].places_itself for node in nodes) and len(nodes) <= liars_among(len(evidence.sites))


def disjoint(groups: Iterable[Partners]) -> list[Partners]:
    """Of `groups` as many as have nobody in common: what is bad between two may spoil all groups that have both."""
    found: list[Partners] = []
    for group in sorted(dict.fromkeys(groups), key=len):
        if all(map(frozenset(group).isdisjoint, found)):
            found.append(group)
    return found


def _draws(evidence: Evidence, node: str, found: Iterable[Partners]) -> Iterator[tuple[int, int]]:
    """For each of these partners how many they are, and of how many they were drawn."""
    neighbours, from_leaf = evidence.neighbours(node), 0
    for partners in found:
        from_leaf += neighbours.issuperset(partners)
        near = neighbours.issuperset(partners) and from_leaf > 1
        yield len(partners), len(neighbours) if near else len(evidence.sites) - 1
