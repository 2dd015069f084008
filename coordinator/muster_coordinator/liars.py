"""How many nodes may lie at the same time: whoever has broken into them says what it likes in their names."""

LYING = 0.05
"""Share of the nodes that may lie, and at least one: more of them would have to be broken into one by one."""


def liars_among(nodes: int) -> int:
    """How many of so many nodes may lie."""
    return max(1, int(LYING * nodes))
