"""Which nodes may be cordoned now: the budget, the rate and mass events.

Many nodes, one cause, a short time: that is rather a broken driver roll-out or a broken check than many bad nodes.
While there is such a mass event, nothing is cordoned fleet-wide. Example with the defaults: 5 of 200 nodes get XID 79
within ten minutes, and draining stops. It goes on when fewer than 5 have it, or when a person lifts the freeze; then
the same cause freezes again only after fewer had it meanwhile.
"""

from collections import Counter
from collections.abc import Collection, Mapping

from muster.quarantine_settings import BudgetSettings, MassEventSettings
from muster_coordinator.model.quarantine import FleetState, MassEvent, QuarantineRecord, Wait

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


def admit(
    record: QuarantineRecord, census: Census, limits: Limits, rate: Rate, fleet: FleetState, now: float
) -> Wait | None:
    """Why a node may not be cordoned now, other nodes that wait aside; None when it may."""
    if fleet.mass_events:
        return Wait.MASS_EVENT
    return limits.no_room(record, census) or (None if rate.has_room(now) else Wait.RATE)


def wait_text(wait: Wait, record: QuarantineRecord, census: Census, settings: BudgetSettings, fleet: FleetState) -> str:
    """Why a node waits, with the numbers of now."""
    limits = Limits(settings)
    match wait:
        case Wait.LAST_NODE:
            return "it would be the last node that goes"
        case Wait.BUDGET:
            limit = limits.limit(census.members)
            return f"the budget is used up: at most {limit} of {census.members} nodes may be away"
        case Wait.DOMAIN_BUDGET:
            domain = str(record.evidence.domain)
            members = census.members_of[domain]
            limit = limits.domain_limit(members)
            place = f"{settings.domain} {domain}"
            return f"the budget of {place} is used up: at most {limit} of its {members} nodes may be away"
        case Wait.RATE:
            return f"at most {settings.per_minute:g} nodes are taken out in a minute"
        case Wait.MASS_EVENT:
            cause = fleet.mass_events[0].cause if fleet.mass_events else "the same"
            return f"too many nodes have {cause} for it to be their own fault"
        case Wait.ORDER:
            return "others have been waiting for longer, or are worse"


def fleet_state_after(
    fleet: FleetState,
    cause: str,
    since_of: Mapping[str, float],
    members: int,
    settings: MassEventSettings,
    now: float,
) -> FleetState:
    """The fleet's state when `since_of` are the nodes that have this cause, and since when each has it."""
    threshold = max(settings.nodes, share_of(settings.share, members))
    others = tuple(event for event in fleet.mass_events if event.cause != cause)
    standing = next((event for event in fleet.mass_events if event.cause == cause), None)
    if len(since_of) < threshold:
        lifted = tuple(it for it in fleet.lifted if it != cause)
        return FleetState(mass_events=others, lifted=lifted) if standing or cause in fleet.lifted else fleet
    if cause in fleet.lifted:
        return fleet
    lately = sum(now - since <= settings.window_s for since in since_of.values())
    if standing is None and lately < threshold:
        return fleet
    event = MassEvent(cause=cause, nodes=len(since_of), since=standing.since if standing else now)
    if standing is None:
        return fleet.model_copy(update={"mass_events": (*fleet.mass_events, event)})
    events = tuple(event if it.cause == cause else it for it in fleet.mass_events)
    return fleet.model_copy(update={"mass_events": events})


def lifted(fleet: FleetState) -> FleetState:
    """The fleet's state after a person lifted the freeze."""
    causes: Collection[str] = {*fleet.lifted, *(event.cause for event in fleet.mass_events)}
    return FleetState(lifted=tuple(sorted(causes)))
