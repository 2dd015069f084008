"""The budget: how many nodes may be away, in the fleet and in each failure domain, and how quickly they may go."""

from collections import Counter

from muster.quarantine_settings import BudgetSettings
from muster_coordinator.model.quarantine import QuarantineRecord, Wait

SECONDS_OF_BURST = 1.0
"""After a quiet time so many seconds' worth of nodes may go at once, at least one."""


def share_of(share: str, whole: int) -> int:
    """Percentage of `whole`, rounded down."""
    return int(float(share.removesuffix("%")) * whole / 100 + 1e-9)


class Census:
    """How many nodes count as capacity and how many of them are away, in the fleet and by failure domain.

    ACCEPTING nodes and those that have left are no members. `kept_out` counts new nodes that actors keep out.
    """

    def __init__(self) -> None:
        self.members = 0
        self.away = 0
        self.kept_out = 0
        self.members_of: Counter[str] = Counter()
        self.away_of: Counter[str] = Counter()

    def count(self, record: QuarantineRecord, by: int) -> None:
        """Counts a record in (1) or out (-1)."""
        self.kept_out += by * record.is_kept_out
        if not record.is_member:
            return
        is_away = record.is_away
        self.members += by
        self.away += by * is_away
        if (domain := record.evidence.domain) is not None:
            self.members_of[domain] += by
            self.away_of[domain] += by * is_away


class Limits:
    """How many nodes may be away. Whatever keeps a node away counts: the budget protects the capacity that is left."""

    def __init__(self, settings: BudgetSettings) -> None:
        self._settings = settings

    def limit(self, members: int) -> int:
        """How many of so many nodes may be away; never all of them."""
        limit = max(1, share_of(self._settings.share, members))
        if self._settings.nodes is not None:
            limit = min(limit, self._settings.nodes)
        return min(limit, max(0, members - 1))

    def domain_limit(self, members: int) -> int:
        """How many of so many nodes of one failure domain may be away."""
        return max(1, share_of(self._settings.domain_share, members))

    def no_room(self, record: QuarantineRecord, census: Census) -> Wait | None:
        """Why there is no room to cordon a node; None when there is. A node that is away anyway needs none."""
        itself = int(record.is_member and record.is_away)
        limit = self.limit(census.members)
        if not limit:
            return Wait.LAST_NODE
        if census.away - itself >= limit:
            return Wait.BUDGET
        domain = record.evidence.domain
        if domain is not None and census.away_of[domain] - itself >= self.domain_limit(census.members_of[domain]):
            return Wait.DOMAIN_BUDGET
        return None

    def lets_keep_out(self, census: Census) -> bool:
        """Whether one more new node may be kept out: never while a fleet is new, as then it would be all of it."""
        return census.away + census.kept_out < self.limit(census.members)


class Rate:
    """How quickly nodes may be cordoned: a bucket of one second's worth, at least one."""

    def __init__(self, per_minute: float) -> None:
        self.per_minute = per_minute
        self._per_second = per_minute / 60
        self._burst = max(1.0, self._per_second * SECONDS_OF_BURST)
        self._tokens = self._burst
        self._counted_at = 0.0

    def has_room(self, now: float) -> bool:
        return self._tokens_at(now) >= 1

    def note(self, now: float) -> None:
        """Counts a node that is cordoned."""
        self._tokens = max(0.0, self._tokens_at(now) - 1)
        self._counted_at = now

    def _tokens_at(self, now: float) -> float:
        passed_s = abs(now - self._counted_at)  # a clock that was set back must not stop everything
        return min(self._burst, self._tokens + passed_s * self._per_second)
