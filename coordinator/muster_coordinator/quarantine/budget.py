"""The budget: how many nodes may be away, in the fleet and in each failure domain, and how fast they may go."""

from collections import Counter, deque
from collections.abc import Iterable

from muster.model import ServiceState
from muster.quarantine_settings import BudgetSettings
from muster_coordinator.model.quarantine import QuarantineRecord, Wait


def share_of(share: str, whole: int) -> int:
    """Percentage of `whole`, rounded down."""
    return int(float(share.removesuffix("%")) * whole / 100 + 1e-9)


class Census:
    """How many nodes count as capacity and how many of them are away, in the fleet and by failure domain.

    ACCEPTING nodes and those that have left do not count. `kept_out` counts new nodes that actors keep out. `held` are
    the nodes in state HELD, and `kept_off` those that others keep work off, by how they do it.
    """

    def __init__(self) -> None:
        self.members = 0
        self.away = 0
        self.kept_out = 0
        self.members_of: Counter[str] = Counter()
        self.away_of: Counter[str] = Counter()
        self.held: set[str] = set()
        self.kept_off: dict[str, set[str]] = {}

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
        if record.state is ServiceState.HELD:
            _enter(self.held, record.node, by)
        for how in dict.fromkeys(record.kept_off):
            _enter(self.kept_off.setdefault(how, set()), record.node, by)
            if not self.kept_off[how]:
                del self.kept_off[how]


def _enter(names: set[str], name: str, by: int) -> None:
    """Puts a name in (1) or takes it out (-1)."""
    if by > 0:
        names.add(name)
    else:
        names.remove(name)


class Limits:
    """How many nodes may be away, whatever the reason: the budget protects the capacity that is left."""

    def __init__(self, settings: BudgetSettings) -> None:
        self._settings = settings

    def limit(self, members: int) -> int:
        """How many of `members` nodes may be away; never all of them."""
        limit = max(1, share_of(self._settings.share, members))
        if self._settings.nodes is not None:
            limit = min(limit, self._settings.nodes)
        return min(limit, max(0, members - 1))

    def domain_limit(self, members: int) -> int:
        """How many of the `members` nodes of a failure domain may be away."""
        return max(1, share_of(self._settings.domain_share, members))

    def wait_of(
        self, record: QuarantineRecord, census: Census, reserved_for: Iterable[QuarantineRecord] = ()
    ) -> Wait | None:
        """Why the budget does not admit a node; None when it does. The nodes of `reserved_for` count as away.

        A node that is away anyway uses nothing up.
        """
        itself = int(record.is_member and record.is_away)
        reserved = Counter(other.evidence.domain for other in reserved_for if not other.is_away)
        limit = self.limit(census.members)
        if not limit:
            return Wait.LAST_NODE
        if census.away - itself + reserved.total() >= limit:
            return Wait.BUDGET
        domain = record.evidence.domain
        if domain is None:
            return None
        if census.away_of[domain] - itself + reserved[domain] >= self.domain_limit(census.members_of[domain]):
            return Wait.DOMAIN_BUDGET
        return None

    def admits_new(self, census: Census) -> bool:
        """Whether one more new node may be kept out; this protects a new fleet, where all nodes are new."""
        return census.away + census.kept_out < self.limit(census.members)


class RateWindow:
    """How fast nodes may be cordoned: `per_minute = 6` allows six in any minute, at once or one after the other.

    `per_minute = 0.5` is one in two minutes. Example with 6: of seven nodes that fail together, six are cordoned at
    once, and the seventh a minute after the first. A bucket of six tokens that refills would allow nearly twelve in the
    first minute.

    The times come from the records, so a restart gives no new allowance. A time in the future counts as long ago: a
    clock that was set back must not stop all draining.
    """

    def __init__(self, per_minute: float) -> None:
        self.per_minute = per_minute
        most = max(1, int(per_minute))
        self._window_s = 60 * most / per_minute
        self._last: deque[float] = deque(maxlen=most)

    def admits(self, now: float) -> bool:
        """Whether a node may be cordoned now."""
        is_full = len(self._last) == self._last.maxlen
        return not (is_full and 0 <= now - self._last[0] < self._window_s)

    def admits_at(self, now: float) -> float | None:
        """When the next node may be cordoned; None when it may be now."""
        return None if self.admits(now) else self._last[0] + self._window_s

    def note(self, now: float) -> None:
        """Counts a node that is cordoned."""
        self._last.append(now)
