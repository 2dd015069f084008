"""All cases, with what must be known about them together: how many are away, who waits, and who is to be looked at."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from muster.errors import Refused, unknown
from muster_coordinator.model.case import Case
from muster_coordinator.quarantine.census import Census

Rank = tuple[int, float, str]
"""What nodes that wait are ordered by."""


class Cases:
    """The cases by node. What has changed since `changed` was asked last is kept apart."""

    def __init__(self) -> None:
        self.census = Census()
        self._cases: dict[str, Case] = {}
        self._queue: list[Rank] = []  # of those that were told why they have to wait, in order
        self._looks: dict[str, float] = {}
        self._changed: dict[str, None] = {}

    def restore(self, cases: Iterable[Case]) -> None:
        """Takes over stored cases."""
        for case in cases:
            self.put(case)
        self._changed.clear()

    @property
    def by_node(self) -> Mapping[str, Case]:
        return self._cases

    def get(self, node: str) -> Case | None:
        return self._cases.get(node)

    def known(self, node: str) -> Case:
        """The case of a node that somebody has named; Refused when there is none."""
        if node not in self._cases:
            raise Refused(unknown("node", node, self._cases))
        return self._cases[node]

    def put(self, case: Case) -> Case:
        """Takes a case in place of what it was."""
        before = self._cases.get(case.node)
        if before == case:
            return case
        self.census.replace(before, case)
        self._cases[case.node] = case
        self._changed[case.node] = None
        self._queue_up(before, case)
        return case

    def change(self, case: Case, **updates: Any) -> Case:
        """Takes a case with these fields changed."""
        return self.put(case.model_copy(update=updates))

    def remove(self, case: Case) -> None:
        """Does without a case from now on."""
        self.census.remove(case)
        del self._cases[case.node]
        self._queue_up(case, None)
        for kept in (self._looks, self._changed):
            kept.pop(case.node, None)

    def changed(self) -> list[Case]:
        """The cases that have changed since this was asked last, as they are now."""
        nodes, self._changed = self._changed, {}
        return [self._cases[node] for node in nodes]

    @property
    def waiting(self) -> int:
        """How many nodes were told why they have to wait."""
        return len(self._queue)

    def held(self) -> Iterator[Case]:
        """The nodes that were told why they have to wait, the first to go first; they may change meanwhile."""
        return (self._cases[node] for *_, node in tuple(self._queue))

    def look_at(self, node: str, moment: float) -> None:
        """Has a node looked at again at this moment, if not before."""
        self._looks[node] = min(moment, self._looks.get(node, moment))

    def _queue_up(self, before: Case | None, after: Case | None) -> None:
        if before is not None and before.held_because:
            del self._queue[bisect_left(self._queue, rank(before))]
        if after is not None and after.held_because:
            insort(self._queue, rank(after))

    def is_due(self, now: float) -> bool:
        """Whether a node is to be looked at now."""
        return any(moment <= now for moment in self._looks.values())

    def due(self, now: float) -> list[str]:
        """The nodes that are to be looked at now, by name; they are not any more afterwards."""
        due = sorted(node for node, moment in self._looks.items() if moment <= now)
        for node in due:
            del self._looks[node]
        return due


def rank(case: Case) -> Rank:
    """Less than that of another node when this one has to go before it: the worst first, then who was accused first."""
    urgency = 0 if case.demand is None else case.demand.urgency
    return -urgency, case.accused_at or 0.0, case.node


def waits(case: Case) -> bool:
    """Whether it is proven to have to go, and ours to take out as soon as there is room."""
    return case.demand is not None and case.demand.is_proven and case.hands_off is None
