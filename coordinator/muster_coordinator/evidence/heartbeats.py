"""The time when each node was heard last, and the nodes that are lost.

The idea: nodes are kept in the order in which they were heard, the oldest first. The lost nodes are at the front, and a
tick looks only at these.

Example: with a heartbeat of 10 s, a node is lost when nothing was heard from it for more than 30 s. Noting a heartbeat
takes constant time, a tick time in proportion to the lost nodes.
"""

from collections import OrderedDict

LOST_AFTER_HEARTBEATS = 3
"""Three heartbeats: one may be lost on the way and one may be late."""


class Heartbeats:
    """The nodes that send a heartbeat every `every_s` seconds. A node that is not among them is lost."""

    def __init__(self, every_s: float) -> None:
        self._lost_after_s = LOST_AFTER_HEARTBEATS * every_s
        self._heard: OrderedDict[str, float] = OrderedDict()  # the node that was heard longest ago comes first

    def note(self, node: str, now: float) -> None:
        """Notes that the node was heard at `now`."""
        self._heard[node] = now
        self._heard.move_to_end(node)

    def give_up(self, node: str) -> None:
        """Removes a node that is lost."""
        del self._heard[node]

    def overdue(self, now: float) -> list[str]:
        """The nodes that are lost and were not given up yet."""
        silent = []
        for node in self._heard:
            if not self.is_lost(node, now):
                break
            silent.append(node)
        return silent

    def is_lost(self, node: str, now: float) -> bool:
        """Whether nothing has been heard of a node for three heartbeats."""
        heard = self._heard.get(node)
        return heard is None or now - heard > self._lost_after_s
