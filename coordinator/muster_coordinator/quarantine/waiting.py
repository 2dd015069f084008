"""Which nodes have to wait before they are taken out, and for what: for room, or only for their turn."""

from collections.abc import Iterator
from itertools import takewhile

from muster_coordinator.model.case import Case
from muster_coordinator.quarantine.budget import Budget
from muster_coordinator.quarantine.cases import Cases, rank, waits
from muster_coordinator.quarantine.mass_event import MassEvents


class Waiting:
    """What keeps nodes of `cases` in service that should go: the budget, a mass event, and those that go first."""

    def __init__(self, cases: Cases, budget: Budget, mass_events: MassEvents) -> None:
        self._cases = cases
        self._budget = budget
        self._mass_events = mass_events

    def refusal(self, case: Case, now: float) -> str | None:
        """Why the node may not be taken out now; None when it may."""
        refusal = self._refusal_to_all(case, now)
        if refusal is None and self._is_behind_others(case, now):
            return "others have been waiting for longer, or are worse"
        return refusal

    def is_long(self, case: Case) -> bool:
        """Whether it has to wait for room, or behind more than the rate lets go in a minute."""
        no_room = self._budget.refusal_of_room(self._cases.census, case)
        return no_room is not None or self._cases.waiting > self._budget.per_minute

    def worst_first(self, now: float) -> Iterator[Case]:
        """The nodes for which something has changed since they were told why they have to wait.

        Each is looked at when its turn has come: who went before it may have taken the room.
        """
        return (case for case in self._cases.held() if waits(case) and self._has_changed(case, now))

    def _has_changed(self, case: Case, now: float) -> bool:
        return self._refusal_to_all(case, now) != case.held_because

    def _is_behind_others(self, case: Case, now: float) -> bool:
        """Whether another node that waits has to go first, and may."""
        own = rank(case)
        first = takewhile(lambda it: rank(it) < own, self._cases.held())
        return any(waits(it) and not self._refusal_to_all(it, now) for it in first)

    def _refusal_to_all(self, case: Case, now: float) -> str | None:
        """What keeps the node in service, whoever else waits."""
        refusal = self._mass_events.refusal() or self._budget.refusal_of_room(self._cases.census, case)
        return refusal or self._budget.refusal_of_rate(now)
