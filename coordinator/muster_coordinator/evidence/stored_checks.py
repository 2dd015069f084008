"""The checks with stored runs, by node: a node cannot make the coordinator keep the runs of ever new checks."""

from collections import defaultdict
from collections.abc import Iterable, Set

from muster.model import Run
from muster_coordinator.evidence.health import MOST_CHECKS


class StoredChecks:
    """The checks with stored runs, by node. The last runs of each check are kept while the node is known."""

    def __init__(self) -> None:
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        self._changed: set[str] = set()

    def restore(self, node: str, checks: Iterable[str]) -> None:
        """Restores the checks of a node."""
        self._names[node].update(checks)

    def of(self, node: str) -> Set[str]:
        """The checks of a node."""
        return self._names.get(node, frozenset())

    def admit(self, run: Run) -> bool:
        """Whether a run may be stored: its check is known, or its node has fewer than MOST_CHECKS checks."""
        names = self._names[run.node]
        if run.check in names:
            return True
        if len(names) >= MOST_CHECKS:
            return False
        names.add(run.check)
        self._changed.add(run.node)
        return True

    def take_changed(self) -> set[str]:
        """The nodes with a new check since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def forget(self, node: str) -> None:
        """Forgets a node that has left."""
        self._names.pop(node, None)
        self._changed.discard(node)
