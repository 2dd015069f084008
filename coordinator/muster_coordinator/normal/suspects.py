"""Who is out of line by one comparison, and when those are too many for it to be their own fault."""

from collections.abc import Mapping

from muster.model import Finding
from muster_coordinator.normal.normality import SAME_TIME_S, is_crowd

Held = Mapping[str, tuple[Finding, ...]]
"""By node, what is held against it from now on."""


class Suspects:
    """The nodes that are out of line. `since` is when so many were that a common cause must be looked for.

    `out_of_line` has them with the time when they were measured, the latest last. While there is a common cause,
    nothing is held against anybody.
    """

    def __init__(self) -> None:
        self.out_of_line: dict[str, float] = {}
        self.since: float | None = None
        self._accused: set[str] = set()

    def take(self, node: str, found: tuple[Finding, ...], *, at: float, nodes: int, shifted: bool, now: float) -> Held:
        """Notes what was found about a node, one of so many, that was measured `at`.

        `shifted` says that the whole fleet has become worse.
        """
        self.out_of_line.pop(node, None)
        if found:
            self.out_of_line[node] = at
        self._forget_the_absent(now)
        if shifted or is_crowd(len(self.out_of_line), nodes):
            self.since = self.since or now
            return {node: (), **self.release()}
        self.since = None
        (self._accused.add if found else self._accused.discard)(node)
        return {node: found}

    def forget(self, node: str) -> None:
        """Does without a node that has left."""
        self.out_of_line.pop(node, None)
        self._accused.discard(node)

    def _forget_the_absent(self, now: float) -> None:
        while self.out_of_line and now - self.out_of_line[first := next(iter(self.out_of_line))] > SAME_TIME_S:
            del self.out_of_line[first]

    def release(self) -> Held:
        """Takes back what is held against anybody."""
        released: Held = dict.fromkeys(self._accused, ())
        self._accused.clear()
        return released
