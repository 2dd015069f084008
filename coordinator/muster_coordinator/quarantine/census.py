"""How many nodes there are and how many of them are away, as a whole and by failure domain."""

from collections import Counter

from muster_coordinator.model.case import Case


class Census:
    """Counts kept up to date case by case.

    New nodes that are not accepted yet, and those that have left, count not; of the new, `kept_out` counts those that
    actors keep out.
    """

    def __init__(self) -> None:
        self.members = 0
        self.away = 0
        self.kept_out = 0
        self.members_of: Counter[str] = Counter()
        self.away_of: Counter[str] = Counter()

    def replace(self, before: Case | None, after: Case) -> None:
        """Counts a case as it is now in place of how it was."""
        if before is not None:
            self.remove(before)
        self._count(after, 1)

    def remove(self, case: Case) -> None:
        """Counts a case no more."""
        self._count(case, -1)

    def _count(self, case: Case, by: int) -> None:
        self.kept_out += by * case.is_kept_out
        if not case.is_member:
            return
        self.members += by
        self.away += by * case.is_away
        if case.place is not None:
            self.members_of[case.place] += by
            self.away_of[case.place] += by * case.is_away
