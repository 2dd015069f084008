"""The nodes that are out of line in one comparison, and whether they are so many that the cause is common.

Example: 3 of 20 nodes become outliers within a week. 3 is at least a tenth of 20 and at least LEAST_CROWD, so the cause
is common: their findings are withdrawn, and the fleet has a finding instead. Each node takes constant time on average.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from muster.model import Finding
from muster_coordinator.normal.normality import SAME_TIME_S, is_crowd

FoundByNode = Mapping[str, tuple[Finding, ...]]
"""The findings of the comparison that stand against each node from now on."""


class NodeStanding(NamedTuple):
    """Whether a node was out of line when it last measured, and whether a finding stands against it."""

    out_of_line: bool
    held: bool


class Suspects:
    """The nodes that are out of line, with the time of their measurement, the latest last (`out_of_line`).

    `since` is the begin of a common cause; None without one. While there is one, no finding stands against a node.
    """

    def __init__(self) -> None:
        self.out_of_line: dict[str, float] = {}
        self.since: float | None = None
        self._accused: set[str] = set()
        self._changed: set[str] = set()

    def restore(self, since: float | None, standings: Iterable[tuple[str, float, NodeStanding]]) -> None:
        """Restores what was known about nodes, each with the time of its last measurement, the latest last."""
        self.since = since
        for node, at, standing in standings:
            if standing.out_of_line:
                self.out_of_line[node] = at
            if standing.held:
                self._accused.add(node)
            self._forget_the_absent(at)

    def standing(self, node: str) -> NodeStanding:
        """What is known about a node."""
        return NodeStanding(node in self.out_of_line, node in self._accused)

    def take_changed(self) -> set[str]:
        """The nodes with another standing than at the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def take(
        self, node: str, found: tuple[Finding, ...], *, at: float, nodes: int, shifted: bool, now: float
    ) -> FoundByNode:
        """Notes the findings about a node of `nodes`, which was measured `at`. Returns the findings that change.

        `shifted` means that the whole fleet has become worse.
        """
        before = self.standing(node)
        held = self._take(node, found, at=at, nodes=nodes, shifted=shifted, now=now)
        if self.standing(node) != before:
            self._changed.add(node)
        return held

    def _take(
        self, node: str, found: tuple[Finding, ...], *, at: float, nodes: int, shifted: bool, now: float
    ) -> FoundByNode:
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
        """Forgets a node that has left."""
        self.out_of_line.pop(node, None)
        self._accused.discard(node)

    def _forget_the_absent(self, now: float) -> None:
        while self.out_of_line and now - self.out_of_line[first := next(iter(self.out_of_line))] > SAME_TIME_S:
            del self.out_of_line[first]

    def release(self) -> FoundByNode:
        """Withdraws all findings. Returns the nodes, each without findings."""
        released: FoundByNode = dict.fromkeys(self._accused, ())
        self._changed.update(self._accused)
        self._accused.clear()
        return released
