"""All cases, with what must be known about them together: how many are away, who waits, and who is to be looked at."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from muster.errors import Refused, unknown
from muster_coordinator.quarantine.case import Case
from muster_coordinator.quarantine.census import Census


class Cases:
    """The cases by node. What has changed since `changed` was asked last is kept apart."""

    def __init__(self) -> None:
        self.census = Census()
        self._cases: dict[str, Case] = {}
        self._held: set[str] = set()
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
        (self._held.add if case.held_because else self._held.discard)(case.node)
        return case

    def change(self, case: Case, **updates: Any) -> Case:
        """Takes a case with these fields changed."""
        return self.put(case.model_copy(update=updates))

    def changed(self) -> list[Case]:
        """The cases that have changed since this was asked last, as they are now."""
        nodes, self._changed = self._changed, {}
        return [self._cases[node] for node in nodes]

    def held(self) -> Iterator[Case]:
        """The nodes that were told that there is no room, in no order."""
        return (self._cases[node] for node in self._held)

    def look_at(self, node: str, moment: float) -> None:
        """Has a node looked at again at this moment, if not before."""
        self._looks[node] = min(moment, self._looks.get(node, moment))

    def due(self, now: float) -> list[str]:
        """The nodes that are to be looked at now, by name; they are not any more afterwards."""
        due = sorted(node for node, moment in self._looks.items() if moment <= now)
        for node in due:
            del self._looks[node]
        return due


def rank(case: Case) -> tuple[int, float, str]:
    """Less than that of another node when this one has to go before it: the worst first, then who was accused first."""
    urgency = 0 if case.demand is None else case.demand.urgency
    return -urgency, case.accused_at or 0.0, case.node


def waits(case: Case) -> bool:
    """Whether it is proven to have to go, and ours to take out as soon as there is room."""
    return case.demand is not None and case.demand.is_proven and case.hands_off is None
