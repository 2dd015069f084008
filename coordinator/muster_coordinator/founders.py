"""Which node is alone in what it is compared by, so that one node cannot take the room of all others.

Whoever measures with parameters that nobody else uses begins a baseline of its own, and may do so with every run. Of
those that no second node has joined, a node keeps a limited number: with one more it gives up its oldest.
"""

from collections import OrderedDict, defaultdict

MOST_ALONE = 200
"""A fifth of all baselines. The checks that come with muster make some 60 on a node that is alone in its fleet."""


SHARED = ""
"""In the place of a founder's name."""


class Founders:
    """By key of a baseline, the node that alone has measured by it so far."""

    def __init__(self) -> None:
        self._founder: dict[str, str] = {}
        self._alone: defaultdict[str, OrderedDict[str, None]] = defaultdict(OrderedDict)

    def note(self, key: str, node: str) -> str | None:
        """Notes that a node measures by a baseline; gives the one that it has to give up for that, if any."""
        if self._founder.setdefault(key, node) != node:
            self.end(key)
            self._founder[key] = SHARED
            return None
        alone = self._alone[node]
        alone[key] = None
        alone.move_to_end(key)
        return next(iter(alone)) if len(alone) > MOST_ALONE else None

    def end(self, key: str) -> None:
        """Notes that a baseline is no more."""
        founder = self._founder.pop(key, SHARED)
        if founder != SHARED:
            del self._alone[founder][key]
