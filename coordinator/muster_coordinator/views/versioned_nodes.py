"""The rows of all nodes, each with the version of its last change, so that a viewer gets only what changed. Pure.

The idea: changes gather, and at most every `PERIOD_S` a *cut* gives all of them the next version. The rows are kept in
the order of their versions. What changed since a version is then the end of that order, each node once and as it is
now: a viewer that has read nothing for a minute gets what one that missed a single cut gets, only more rows.

Example: n1 changes at 0.0 s and n1, n2 at 0.1 s. The cut at 0.0 s gives n1 version 1, the one at 0.25 s gives n1 and n2
version 2. A viewer at version 1 gets both rows, and so does one at version 0.

A change and a cut cost constant time for each changed row. What changed since a version costs time in proportion to its
rows, at most `MOST_ROWS`: a viewer that misses more takes a snapshot, which is smaller because it is compressed.
"""

import math
from itertools import takewhile
from typing import NamedTuple

from muster_coordinator.views.node_rows import DatedRow, NodeRow

PERIOD_S = 0.25
"""Minimum time between two versions."""

MOST_ROWS = 2_000
"""Maximum number of nodes, changed and gone, between two versions for which a viewer needs no snapshot: 0.17 MB."""


class ChangedRows(NamedTuple):
    """The rows that changed between two versions, the latest first, and the nodes that are gone."""

    rows: list[DatedRow]
    gone: list[str]


class VersionedNodes:
    """The nodes at the present `version`. Times are of any clock that does not go back, except `changed_at`."""

    def __init__(self) -> None:
        self.version = 0
        self._oldest = 0  # the first version since which every change is known
        self._cut_at = -math.inf
        self._rows: dict[str, DatedRow] = {}  # by version
        self._gone: dict[str, int] = {}  # the nodes that are gone, and with which version, by version
        self._pending: dict[str, tuple[NodeRow | None, float]] = {}  # changes since the last cut; None: gone

    @property
    def rows(self) -> list[DatedRow]:
        """The rows at the present version."""
        return list(self._rows.values())

    @property
    def has_changes(self) -> bool:
        """Whether anything has changed since the last cut."""
        return bool(self._pending)

    def knows(self, name: str) -> bool:
        return name in self._rows or name in self._pending

    def seed(self, row: NodeRow, changed_at: float | None) -> None:
        """Takes the first row of a node as part of the present version. Call it before the first snapshot is made."""
        if not self.knows(row.name):
            self._rows[row.name] = DatedRow(row, self.version, changed_at)

    def note(self, row: NodeRow, changed_at: float) -> None:
        """Notes the present row of a node."""
        known = self._rows.get(row.name)
        if known is not None and known.row == row:
            self._pending.pop(row.name, None)  # nobody has seen what it was in between
        else:
            self._pending[row.name] = row, changed_at

    def drop(self, name: str, changed_at: float) -> None:
        """Notes that a node is gone."""
        if name in self._rows:
            self._pending[name] = None, changed_at
        else:
            self._pending.pop(name, None)

    def due_in(self, now: float) -> float:
        """How long until the next cut may be made, in seconds; 0 if it may be made now."""
        return max(0.0, self._cut_at + PERIOD_S - now)

    def cut(self, now: float, *, always: bool = False) -> bool:
        """Makes the changes since the last cut a new version, if there are any. Returns whether there is one."""
        if not self._pending and not always:
            return False
        self._cut_at = now
        self.version += 1
        pending, self._pending = self._pending, {}
        for name, (row, changed_at) in pending.items():
            self._rows.pop(name, None)
            self._gone.pop(name, None)
            if row is None:
                self._gone[name] = self.version
            else:
                self._rows[name] = DatedRow(row, self.version, changed_at)
        while len(self._gone) > MOST_ROWS:
            name = next(iter(self._gone))
            self._oldest = self._gone.pop(name)
        return True

    def since(self, version: int) -> ChangedRows | None:
        """What changed after `version` up to the present one; None if that is not known, or too much."""
        if not self._oldest <= version <= self.version:
            return None
        gone = list(takewhile(lambda name: self._gone[name] > version, reversed(self._gone)))
        rows: list[DatedRow] = []
        for dated in reversed(self._rows.values()):
            if dated.version <= version:
                break
            rows.append(dated)
            if len(rows) + len(gone) > MOST_ROWS:
                return None
        return ChangedRows(rows, gone) if len(gone) <= MOST_ROWS else None
