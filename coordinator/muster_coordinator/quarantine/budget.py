"""How many nodes may be out of service at once, and how quickly they may go.

Whatever keeps a node away counts, also what we have not done: the budget protects the capacity that is left.
"""

from muster.quarantine_settings import BudgetSettings
from muster_coordinator.model.case import Case
from muster_coordinator.quarantine.census import Census

SECONDS_OF_BURST = 1.0
"""After a quiet time so many seconds' worth of nodes may go at once, at least one."""


def share_of(share: str, whole: int) -> int:
    """So many percent of a number, rounded down."""
    return int(float(share.removesuffix("%")) * whole / 100 + 1e-9)


class Budget:
    """The limits that the settings give."""

    def __init__(self, settings: BudgetSettings) -> None:
        self.per_minute = settings.per_minute
        self._settings = settings
        self._per_second = settings.per_minute / 60
        self._burst = max(1.0, self._per_second * SECONDS_OF_BURST)
        self._tokens = self._burst
        self._counted_at = 0.0

    def limit(self, members: int) -> int:
        """How many of so many nodes may be away; never all of them."""
        limit = max(1, share_of(self._settings.share, members))
        if self._settings.nodes is not None:
            limit = min(limit, self._settings.nodes)
        return min(limit, max(0, members - 1))

    def domain_limit(self, members: int) -> int:
        """How many of so many nodes of one failure domain may be away."""
        return max(1, share_of(self._settings.domain_share, members))

    def refusal_of_room(self, census: Census, case: Case) -> str | None:
        """Why there is no room for a node to go; None when there is. One that is away anyway takes no more by that."""
        place, itself = case.place, int(case.is_member and case.is_away)
        limit = self.limit(census.members)
        if not limit:
            return "it would be the last node that goes"
        if census.away - itself >= limit:
            return f"the budget is used up: at most {limit} of {census.members} nodes may be away"
        if place is not None:
            members = census.members_of[place]
            limit = self.domain_limit(members)
            if census.away_of[place] - itself >= limit:
                domain = f"{self._settings.domain} {place}"
                return f"the budget of {domain} is used up: at most {limit} of its {members} nodes may be away"
        return None

    def refusal_of_rate(self, now: float) -> str | None:
        """Why no node may go right now, room or not; None when one may."""
        return f"at most {self.per_minute:g} nodes are taken out in a minute" if self._tokens_at(now) < 1 else None

    def lets_keep_out(self, census: Census) -> bool:
        """Whether one more new node may be kept out: never while a fleet is new, as then it would be all of it."""
        return census.away + census.kept_out < self.limit(census.members)

    def spend(self, now: float) -> None:
        """Counts a node that is taken out."""
        self._tokens = max(0.0, self._tokens_at(now) - 1)
        self._counted_at = now

    def _tokens_at(self, now: float) -> float:
        passed_s = abs(
            now - self._counted_at
        )  # a clock that was set back must not stop everything until it is there again
        return min(self._burst, self._tokens + passed_s * self._per_second)
