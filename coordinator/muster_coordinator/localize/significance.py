"""Whether lies may explain bad runs, and which values lie close together.

A compromised node can report anything, and can make honest partners slow or crash. Liars pass with each other, so a
node that has passed may still be a liar. But a random draw picks no liar more often than another node. Example: of 256
nodes 12 may lie. The expected number of honest nodes that meet a liar in the first round and three more in a row is 12
x 11 / 254 x 10 / 253 x 9 / 252, which is one in 1,400 sweeps. Four partners therefore convict.

Each function takes time in proportion to the number of runs that it is given.
"""

from collections.abc import Iterable, Mapping

from muster_coordinator.normal.normality import liars_among

FALSE_NODES, FALSE_PATHS = 0.001, 0.0025
"""Accepted false-accusation rate of a sweep, for nodes and for paths. A wrongly named path costs an inspection; a
wrongly named node loses its work."""

FEWEST_CONTROL_PAIRS = 2
"""What a run should reach is what this many pairs of controls have reached. A pair exceeds what is possible only if
both of its nodes lie. If one node in twenty lies, all nodes of two pairs do so once in 160,000 draws."""


def liars_among_peers(nodes: int, peers: int) -> int:
    """How many of a number of `peers`, which are compared with each other, may lie in a fleet of `nodes`.

    Nodes say themselves what they are, so liars may choose one kind of hardware: they may be twice as large a share of
    it as of the fleet. Prevents: of 64 nodes three may lie. Of four nodes of one kind, nothing could be known if all
    three might be among them.
    """
    return min(liars_among(nodes), liars_among(2 * peers))


def liars_may_explain(
    nodes: int, drawn: Iterable[tuple[int, int]], accepted: float = FALSE_NODES, *, peers: int | None = None
) -> bool:
    """Whether liars may explain bad runs with partners that were drawn one after another, in a fleet of `nodes`.

    `drawn` has for each run the number of partners and the number of nodes from which they were drawn. One liar among
    the partners is enough to spoil a run, but no liar counts in two runs. `accepted` is the accepted number of wrong
    convictions in a sweep. `peers` is the number of nodes of one kind of hardware, if partners are drawn among these;
    only these meet the liars among them.
    """
    peers = nodes if peers is None else peers
    liars, expected = liars_among_peers(nodes, peers), float(peers)
    for taken, (partners, among) in enumerate(drawn):
        expected *= min(1.0, partners * max(liars - taken, 0) / max(among - taken, 1))
    return expected > accepted


def controls_needed(nodes: int, peers: int) -> int:
    """How many of these peers must be drawn at random before it is too unlikely that all of them lie."""
    number = 1
    while liars_may_explain(nodes, [(1, peers)] * number, FALSE_NODES * peers, peers=peers):
        number += 1
    return number


def crowds(reached: Mapping[str, float], ratio: float, enough: float) -> frozenset[str]:
    """The nodes that are among at least `enough` nodes whose values lie within this ratio. O(n log n) for n nodes."""
    found: set[str] = set()
    ordered = sorted(reached, key=reached.__getitem__)
    start = added = 0
    for end, node in enumerate(ordered, start=1):
        while reached[node] > ratio * reached[ordered[start]]:
            start += 1
        if end - start >= enough:
            found.update(ordered[max(start, added) : end])
            added = end
    return frozenset(found)
