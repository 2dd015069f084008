"""The nodes that are in groups: no node is ever in two groups.

The idea: groups ask in turns, the most urgent sweep first. A group takes all its nodes at once or none. Nodes that a
group waits for are kept for it during the rest of the turn. Prevents: a group of 64 nodes waits forever, because pairs
take its nodes again and again as they become free.

Example: n1 is taken. Group (n1, n2) asks first and waits. Group (n2, n3) asks next and does not get n2. A node is free
again some seconds after its group has ended, when it has killed its ranks. Asking takes O(members).

A sweep that may not invite more nodes now has thousands of groups that wait. It keeps all their nodes at once, in
constant time.
"""

import math
from collections.abc import Iterable, Set


class Occupancy:
    """The time until which each taken node is taken, in seconds since the epoch."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._waited_for: set[str] = set()
        self._kept: list[Set[str]] = []
        self.has_released = False  # since the last turn

    def new_turn(self) -> None:
        """Begins a turn: no node is waited for."""
        self._waited_for.clear()
        self._kept.clear()
        self.has_released = False

    def is_free(self, node: str, now: float) -> bool:
        """Whether the next group that asks can have the node."""
        is_waited_for = node in self._waited_for or any(node in kept for kept in self._kept)
        return self._until.get(node, 0.0) <= now and not is_waited_for

    def take(self, nodes: Iterable[str], now: float) -> bool:
        """Takes all the nodes, or waits for them if one is not free."""
        wanted = tuple(nodes)
        if not all(self.is_free(node, now) for node in wanted):
            self.wait_for(wanted)
            return False
        self._until.update(dict.fromkeys(wanted, math.inf))
        return True

    def wait_for(self, nodes: Iterable[str]) -> None:
        """Keeps the nodes from groups that ask later in this turn."""
        self._waited_for.update(nodes)

    def keep(self, nodes: Set[str]) -> None:
        """Like `wait_for`, with the nodes that are in this set whenever somebody asks."""
        self._kept.append(nodes)

    def release(self, nodes: Iterable[str], at: float) -> None:
        """Frees the nodes from time `at` on, in seconds since the epoch."""
        self._until.update(dict.fromkeys(nodes, at))
        self.has_released = True
