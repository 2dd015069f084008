"""What is decided about the nodes and about the fleet as a whole, for people to see."""

from collections.abc import Iterable

from muster.model import ServiceState
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.model.actions import Action
from muster_coordinator.model.case import OUT, Case
from muster_coordinator.model.quarantine_events import MassEvent
from muster_coordinator.model.quarantine_views import CaseView, DomainView, QuarantineView
from muster_coordinator.quarantine import repeaters
from muster_coordinator.quarantine.budget import Budget
from muster_coordinator.quarantine.census import Census
from muster_coordinator.quarantine.policy import Policy


def case_view(
    case: Case, latest: Action | None, settings: QuarantineSettings, policy: Policy, *, rounds: int
) -> CaseView:
    """The case of a node; `latest` is its last transition."""
    return CaseView(
        **{**dict(case), "held_because": _held_because(case, settings)},
        outcomes={} if latest is None else latest.outcomes,
        rounds=rounds,
        spared=policy.spared(case.charges),
        back_at=repeaters.back_at(case, settings.returning) if case.state is ServiceState.CORDONED else None,
        needs_person=_needs_person(case, settings),
    )


def _held_because(case: Case, settings: QuarantineSettings) -> str:
    is_only_seen = settings.mode == "observe" and case.demand is not None and case.state not in OUT
    return "who only observes takes no node out" if is_only_seen else case.held_because


def _needs_person(case: Case, settings: QuarantineSettings) -> str:
    if case.state not in OUT:
        return ""
    if settings.mode == "observe":
        return "who only observes brings nothing back"
    is_out_again = case.state is ServiceState.CORDONED and repeaters.needs_a_person(case.taken_out, settings.returning)
    return f"it was out {len(case.taken_out)} times" if is_out_again else ""


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
        held=tuple(sorted(case.node for case in cases if case.state is ServiceState.HELD and not case.gone)),
        frozen=tuple(frozen),
        domains=tuple(domains),
    )
