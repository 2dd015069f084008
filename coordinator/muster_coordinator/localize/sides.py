"""What nodes show about the fabric when nobody said where they stand."""

from collections.abc import Iterable, Mapping

LEAST_ALIKE, SHARE_ALIKE = 2, 0.25
"""So many nodes, and this share of all that fail with everybody, may share a switch when they fail alike.

Two may fail alike by chance. They are left open nevertheless, since a switch with two nodes shows nothing else.
"""

ALIKE = 1.25
"""What nodes behind one bad switch reach differs by chance only, for which a quarter is much."""


def sides_of(groups: Iterable[tuple[str, ...]]) -> Mapping[str, frozenset[str]]:
    """By node, all nodes on its side, where `groups` have passed together.

    Of two nodes that have passed together, or each with a third one, nothing between them is known to be bad: they are
    on one side. Those that have not may be on two sides of a bad path.
    """
    sides: dict[str, set[str]] = {}
    for group in groups:
        side = max((sides.get(node, {node}) for node in group), key=len)
        for node in group:
            other = sides.get(node, {node})
            if other is not side:
                side |= other
                sides.update(dict.fromkeys(other, side))
        sides.update(dict.fromkeys(group, side))
    frozen = {id(side): frozenset(side) for side in sides.values()}
    return {node: frozen[id(side)] for node, side in sides.items()}


def alike(reached: Mapping[str, float]) -> frozenset[str]:
    """Of nodes that fail with everybody, those that fail so alike that one switch may be what is bad.

    `reached` says by node what its bad runs came to, 0 when they broke.
    """
    found: set[str] = set()
    ordered = sorted(reached, key=reached.__getitem__)
    enough = max(LEAST_ALIKE, SHARE_ALIKE * len(ordered))
    start = 0
    for end, node in enumerate(ordered, start=1):
        while reached[node] > ALIKE * reached[ordered[start]]:
            start += 1
        if end - start >= enough:
            found.update(ordered[start:end])
    return frozenset(found)
