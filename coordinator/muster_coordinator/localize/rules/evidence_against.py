"""The bad runs that count against a node or a path although nodes may lie: disjoint partners drawn at random.

The idea: only the node itself can cause a bad run alone. A bad run with a partner may be the partner's fault, even a
crash of the node's own ranks. Liars cannot choose which nodes the coordinator draws, so several drawn partners are
hardly ever all liars.

Example: in a fleet of 256 nodes 12 may lie. Node a crashes beside b, c, d and e, which share no node and were drawn at
random. That all four lie is too unlikely (see `significance`), so a is convicted. After three of them, one is missing.

The functions take time in proportion to the bad runs of the node, times their partners for `disjoint`.
"""

from collections.abc import Iterable, Iterator

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.fabric import Path
from muster_coordinator.localize.likelihood.track_record import Partners
from muster_coordinator.localize.significance import FALSE_PATHS, liars_may_explain
from muster_coordinator.model.probes import GroupRun
from muster_coordinator.normal.normality import liars_among


def drawn_partners(evidence: GroupEvidence, node: str, bad: Iterable[GroupRun]) -> list[Partners]:
    """The partners of `node` in these bad runs that count against it; no two groups of them share a node.

    Rule: a partner counts in its first run, or after it has passed. Then the coordinator drew it at random.
    Prevents: liar n1 is slow in its first run, so n1 is a suspect, like healthy n0. Suspects of one kind run with each
    other. n1 and n2, both liars, would meet n0 one after the other and convict it.
    """
    others = (run.others(node) for run in bad if evidence.drawn_members[run.group].issuperset(run.others(node)))
    return disjoint(partners for partners in others if partners)


def drawn_partners_missing(evidence: GroupEvidence, node: str, bad: Iterable[GroupRun]) -> int:
    """How many more partners must be bad with `node` before they cannot all be liars; 0 if there are enough."""
    drawn = [*draws(evidence, node, drawn_partners(evidence, node, bad))]
    nodes, peers, missing = len(evidence.sites), len(evidence.hardware.peers(node)), 0
    while liars_may_explain(nodes, drawn, peers=peers):
        drawn.append((1, peers - 1))
        missing += 1
    return missing


def pairs_missing(evidence: GroupEvidence, path: Path, bad: Iterable[GroupRun]) -> int:
    """How many more pairs must be bad across `path` before it is too unlikely that each pair has a liar.

    0 for a link between two nodes: no other pair can try it, and its conviction names both ends.

    Rule: if only nodes themselves declare a leaf at an end, a pair counts as drawn from the smaller leaf.
    Prevents: in a fleet of 128 nodes six may lie. n0 to n5 declare themselves at leaf0, where no other node stands, and
    slow down every run to leaf1. Six different pairs are bad across that path, and each has a liar.
    """
    if not path.of_leaves:
        return 0
    nodes, peers = len(evidence.sites), min(len(evidence.hardware.peers(node)) for run in bad for node in run.members)
    ends = [evidence.fabric.leaves[leaf] for leaf in path.ends]
    places = (node for end in ends for node in end)
    draw = (1, min(map(len, ends))) if any(evidence.sites[node].places_itself for node in places) else (2, peers)
    drawn, missing = [draw for _ in disjoint(run.members for run in bad)], 0
    while liars_may_explain(nodes, drawn, FALSE_PATHS, peers=peers):
        drawn.append(draw)
        missing += 1
    return missing


def may_be_all_liars(evidence: GroupEvidence, leaf: str) -> bool:
    """Whether all nodes of a leaf may be liars: only they declare it, and they are no more than may lie.

    Prevents: the 12 liars among 256 nodes declare a leaf of their own, fail with all others, and get a healthy switch
    convicted.
    """
    nodes = evidence.fabric.leaves[leaf]
    return all(evidence.sites[node].places_itself for node in nodes) and len(nodes) <= liars_among(len(evidence.sites))


def disjoint(groups: Iterable[Partners]) -> list[Partners]:
    """Groups that share no node, small ones first.

    Prevents: the link a-b is bad. The groups abcdefgh, abcd and ab are bad one after another, because all have a and b.
    They count once against a, with partner b, and not three times.
    """
    found: list[Partners] = []
    for group in sorted(dict.fromkeys(groups), key=len):
        if all(map(frozenset(group).isdisjoint, found)):
            found.append(group)
    return found


def draws(evidence: GroupEvidence, node: str, found: Iterable[Partners]) -> Iterator[tuple[int, int]]:
    """For each group of partners, their number and the number of nodes from which they were drawn: those of its kind.

    Rule: the first partner from the node's own leaf counts as drawn from the fleet, further ones as drawn from the
    leaf. Prevents: in a fleet of 256 nodes, all 12 liars declare the leaf of healthy n0, which has 8 honest nodes. Four
    partners from that leaf are all liars in one of eight sweeps, and not in one of 350,000.

    The first one needs no correction: the liars gather at one leaf only, so over all nodes of the fleet the coordinator
    draws no more liars than before.
    """
    neighbours, from_leaf, others = evidence.neighbours(node), 0, len(evidence.hardware.peers(node)) - 1
    for partners in found:
        from_leaf += neighbours.issuperset(partners)
        near = neighbours.issuperset(partners) and from_leaf > 1
        yield len(partners), len(neighbours) if near else others
