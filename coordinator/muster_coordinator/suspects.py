"""Who is out of line by one comparison, and when those are too many for it to be their own fault."""

from collections.abc import Mapping

from muster.model import Finding
from muster_coordinator.normality import is_crowd

Held = Mapping[str, tuple[Finding, ...]]
"""By node, what is held against it from now on."""


class Suspects:
    """The nodes that are out of line. `since` is when so many were that a common cause must be looked for.

    While there is a common cause, nothing is held against anybody.
    """

    def __init__(self) -> None:
        self.out_of_line: set[str] = set()
        self.since: float | None = None
        self._accused: set[str] = set()

    def take(self, node: str, found: tuple[Finding, ...], *, nodes: int, shifted: bool, now: float) -> Held:
        """Notes what was found about a node, one of so many; `shifted` says that the whole fleet has become worse."""
        (self.out_of_line.add if found else self.out_of_line.discard)(node)
        if shifted or is_crowd(len(self.out_of_line), nodes):
            self.since = self.since or now
            return {node: (), **self.release()}
        self.since = None
        (self._accused.add if found else self._accused.discard)(node)
        return {node: found}

    def release(self) -> Held:
        """Takes back what is held against anybody."""
        released: Held = dict.fromkeys(self._accused, ())
        self._accused.clear()
        return released
