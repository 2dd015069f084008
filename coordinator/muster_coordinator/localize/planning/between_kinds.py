"""Pairs across the paths between leaves of different hardware, which no group of one kind crosses.

The idea: nodes run with their own kind, so a path from a leaf of new nodes to a leaf of old ones stays out. As soon as
nodes have passed, a pair crosses each such path, and is compared with what the slower kind reaches.

Example: a and b are leaves of new nodes, c and d of old ones. a1-c1, a2-d1, b1-c2 and b2-d2 cross the four paths.
"""

import random
from collections.abc import Iterable, Iterator, Mapping

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.hardware import FEWEST_OF_HARDWARE
from muster_coordinator.model.probes import Probe

BETWEEN_KINDS = "{} and {} are of different hardware, and no group has crossed the path between leaves {} and {}"

SHARE_OF_LEAF = 0.25
"""Of the nodes of a leaf that cross such paths in a sweep, but at least FEWEST_OF_HARDWARE. Where there are more paths,
the next sweep crosses others."""


def between_kinds(evidence: GroupEvidence, healthy: Iterable[str], seed: str) -> Iterator[Probe]:
    """The pairs of `healthy` nodes, which are in random order; none at leaves with too few nodes to convict a path.

    `seed` draws the paths. Takes O(n) for n nodes, and O(n log n) for n such paths.
    """
    paths = sorted(evidence.uncrossed_between_kinds)
    random.Random(seed).shuffle(paths)  # noqa: S311 - no secret depends on it
    free = _free(evidence, healthy) if paths else {}
    for path in paths:
        one, other = (free.get(end) for end in path.ends)
        if one and other:
            pair = one.pop(), other.pop()
            yield Probe(pair, BETWEEN_KINDS.format(*pair, *path.ends))


def _free(evidence: GroupEvidence, healthy: Iterable[str]) -> Mapping[str, list[str]]:
    """The nodes that may still cross such paths, by leaf."""
    done = {node for run in evidence.runs if len(evidence.hardware.kinds_of(run.members)) > 1 for node in run.members}
    able: dict[str | None, list[str]] = {}
    for node in healthy:
        if node not in done:
            able.setdefault(evidence.sites[node].leaf, []).append(node)
    found = {}
    for leaf, nodes in evidence.fabric.leaves.items():
        if len(nodes) >= FEWEST_OF_HARDWARE:
            most = max(round(SHARE_OF_LEAF * len(nodes)), FEWEST_OF_HARDWARE) - len(done.intersection(nodes))
            found[leaf] = able.get(leaf, [])[: max(most, 0)]
    return found
