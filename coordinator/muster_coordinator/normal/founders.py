"""Limits the baselines that belong to a single node, so that no node can push out the baselines of the others.

A node that measures with its own parameters begins a new baseline, and may do so with every run. A node may keep
MOST_ALONE baselines that no second node has joined. When it begins one more, it loses the oldest of them. Example: n1
makes up 1,000 conditions; it keeps the last 200, and the shared baselines stay. Each step takes constant time.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable

MOST_ALONE = 200
"""A fifth of all baselines. The built-in checks make about 60 on a node that is alone in its fleet."""

SHARED = ""
"""Replaces the founder's name when a second node has joined."""


class Founders:
    """The only node that has measured for a baseline so far, by the baseline's key."""

    def __init__(self) -> None:
        self._founder: dict[str, str] = {}
        self._alone: defaultdict[str, OrderedDict[str, None]] = defaultdict(OrderedDict)

    def restore(self, key: str, founder: str) -> None:
        """Restores the founder of a baseline, which is empty if several nodes have measured for it."""
        self._founder[key] = founder
        if founder != SHARED:
            self._alone[founder][key] = None

    def order(self, keys: Iterable[str]) -> None:
        """Notes that these baselines were measured last, in this order."""
        for key in keys:
            if (alone := self._alone.get(self._founder[key])) is not None:
                alone.move_to_end(key)

    def founder(self, key: str) -> str:
        """The only node that has measured for a baseline; empty if there are several, or none."""
        return self._founder.get(key, SHARED)

    def note(self, key: str, node: str) -> str | None:
        """Notes that a node measures for a baseline. Returns the key of the baseline that it loses, if any."""
        if self._founder.setdefault(key, node) != node:
            self.end(key)
            self._founder[key] = SHARED
            return None
        alone = self._alone[node]
        alone[key] = None
        alone.move_to_end(key)
        return next(iter(alone)) if len(alone) > MOST_ALONE else None

    def end(self, key: str) -> None:
        """Forgets a baseline that was dropped."""
        founder = self._founder.pop(key, SHARED)
        if founder != SHARED:
            del self._alone[founder][key]
