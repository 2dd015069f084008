"""How many nodes may lie at the same time, because somebody has broken into them."""

LYING = 0.05
"""Share of the nodes that may lie, but at least one node. An attacker has to break into each node separately."""


def liars_among(nodes: int) -> int:
    """The number of nodes that may lie, of a fleet of so many."""
    return max(1, int(LYING * nodes))
