"""Which nodes groups have taken, so that no node is in two of them.

A node is free again when its group has ended and it has had the time to let go. In a `turn`, whoever comes first takes
what is free; nodes that it waits for are not given to those that come after it, or else a large group would wait for
ever while small ones take its nodes in turns.
"""

import math
from collections.abc import Iterable


class Occupancy:
    """The nodes that are taken, and until when."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._waited_for: set[str] = set()
        self.has_released = False  # since the last turn

    def new_turn(self) -> None:
        """Forgets who waits for which nodes."""
        self._waited_for.clear()
        self.has_released = False

    def is_free(self, node: str, now: float) -> bool:
        """Whether the next to come can have a node."""
        return self._until.get(node, 0.0) <= now and node not in self._waited_for

    def take(self, nodes: Iterable[str], now: float) -> bool:
        """Takes all the nodes, or waits for them when one is not free."""
        wanted = tuple(nodes)
        if not all(self.is_free(node, now) for node in wanted):
            self.wait_for(wanted)
            return False
        self._until.update(dict.fromkeys(wanted, math.inf))
        return True

    def wait_for(self, nodes: Iterable[str]) -> None:
        """Keeps nodes from whoever comes later in this turn."""
        self._waited_for.update(nodes)

    def release(self, nodes: Iterable[str], at: float) -> None:
        """Lets nodes be taken from `at` on, a time in seconds since the epoch."""
        self._until.update(dict.fromkeys(nodes, at))
        self.has_released = True
