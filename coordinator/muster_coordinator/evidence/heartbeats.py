"""When nodes were heard last, and of which nothing has been heard for too long."""

from collections import OrderedDict

LOST_AFTER_HEARTBEATS = 3
"""One heartbeat may be lost on the way and one may be late."""


class Heartbeats:
    """Of nodes that are heard every `every_s` at least. Who is not among them is lost."""

    def __init__(self, every_s: float) -> None:
        self._lost_after_s = LOST_AFTER_HEARTBEATS * every_s
        self._heard: OrderedDict[str, float] = OrderedDict()  # the one that was heard longest ago comes first

    def note(self, node: str, now: float) -> None:
        """Notes a sign of life."""
        self._heard[node] = now
        self._heard.move_to_end(node)

    def give_up(self, node: str) -> None:
        """Waits no more for a node that is lost."""
        del self._heard[node]

    def overdue(self, now: float) -> list[str]:
        """The nodes that are lost and not given up yet; looks at no others."""
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
