"""What is decided about the fleet as a whole, for people to see."""

from collections.abc import Iterable
from typing import Literal

from muster.model import Data, Name, ServiceState
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.quarantine.budget import Budget
from muster_coordinator.quarantine.case import Case
from muster_coordinator.quarantine.census import Census
from muster_coordinator.quarantine.mass_event import MassEvent


class DomainView(Data):
    """A failure domain of which nodes are away: how many it has, how many are away, how many may be."""

    name: str
    nodes: int
    away: int
    limit: int


class QuarantineView(Data):
    """How many nodes count, how many are away and may be, which wait to go, and which causes keep all in service."""

    mode: Literal["observe", "dry-run", "enforce"]
    nodes: int
    away: int
    limit: int
    per_minute: float
    held: tuple[Name, ...]
    frozen: tuple[MassEvent, ...]
    domains: tuple[DomainView, ...]


def view_of(
    settings: QuarantineSettings,
    budget: Budget,
    census: Census,
    cases: Iterable[Case],
    frozen: Iterable[MassEvent],
) -> QuarantineView:
    """The quarantine as it stands."""
    domains = (
        DomainView(
            name=place, nodes=census.members_of[place], away=away, limit=budget.domain_limit(census.members_of[place])
        )
        for place, away in sorted(census.away_of.items())
        if away
    )
    return QuarantineView(
        mode=settings.mode,
        nodes=census.members,
        away=census.away,
        limit=budget.limit(census.members),
        per_minute=budget.per_minute,
        held=tuple(sorted(case.node for case in cases if case.state is ServiceState.HELD)),
        frozen=tuple(frozen),
        domains=tuple(domains),
    )
