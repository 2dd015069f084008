"""What the API serves of a node and of the fleet, made from the records."""

from collections.abc import Iterable

from muster.model import ServiceState
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.model.quarantine import OUT, FleetState, QuarantineRecord
from muster_coordinator.model.quarantine_views import CaseView, DomainView, QuarantineView
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine.budget import Census, Limits
from muster_coordinator.quarantine.desired import Rules, needs_person, retest_at
from muster_coordinator.quarantine.policy import Policy


def case_view(
    record: QuarantineRecord,
    latest: TransitionRecord | None,
    fleet: FleetState,
    settings: QuarantineSettings,
    policy: Policy,
    *,
    waits_for: str,
) -> CaseView:
    """A node's case; `waits_for` says why it waits, in words."""
    evidence, decision, actors = record.evidence, record.decision, record.actors
    cause = None if decision.requirement is None else decision.requirement.cause
    is_frozen = any(event.cause == cause for event in fleet.mass_events)
    return CaseView(
        node=record.node,
        state=decision.state,
        since=decision.since,
        dry_run=decision.dry_run,
        place=evidence.domain,
        lost_at=evidence.lost_at,
        listed=actors.was_listed,
        gone=evidence.has_left,
        charges=evidence.findings,
        sightings=evidence.seen,
        demand=decision.requirement,
        prospect=decision.upcoming,
        accused_at=decision.required_since,
        cause_since=decision.cause_since,
        absolved_at=decision.ignored_before,
        fit=evidence.is_fit,
        own_checks=evidence.own_checks,
        patience_s=evidence.silent_after_s,
        hold=decision.hold,
        views=actors.observed,
        asked=decision.second_opinions,
        frozen_by=cause if is_frozen else None,
        let_pass=cause if cause in fleet.lifted else None,
        taken_out=decision.cordoned_at,
        accusers=decision.retest_checks,
        may_return=decision.retest_because,
        trial=decision.probation,
        held_because=_held_because(record, settings, waits_for),
        transition=actors.transition,
        kept_out=decision.kept_out_as_new,
        closed_as=actors.shut_out_as,
        announced=actors.shows_held,
        outcomes={} if latest is None else latest.outcomes,
        rounds=Rules.of(settings).rounds(record.state),
        back_at=retest_at(record, settings.returning) if record.state is ServiceState.CORDONED else None,
        spared=policy.not_draining(evidence.findings),
        needs_person=_needs_person(record, settings),
    )


def _held_because(record: QuarantineRecord, settings: QuarantineSettings, waits_for: str) -> str:
    is_required = record.decision.requirement is not None and record.state not in OUT
    return "who only observes takes no node out" if settings.mode == "observe" and is_required else waits_for


def _needs_person(record: QuarantineRecord, settings: QuarantineSettings) -> str:
    if record.state not in OUT:
        return ""
    if settings.mode == "observe":
        return "who only observes brings nothing back"
    cordoned_at = record.decision.cordoned_at
    is_out_again = record.state is ServiceState.CORDONED and needs_person(cordoned_at, settings.returning)
    return f"it was out {len(cordoned_at)} times" if is_out_again else ""


def fleet_view(
    settings: QuarantineSettings, census: Census, records: Iterable[QuarantineRecord], fleet: FleetState
) -> QuarantineView:
    """The quarantine of the whole fleet."""
    limits = Limits(settings.limits)
    domains = (
        DomainView(
            name=name, nodes=census.members_of[name], away=away, limit=limits.domain_limit(census.members_of[name])
        )
        for name, away in sorted(census.away_of.items())
        if away
    )
    is_held = (it for it in records if it.state is ServiceState.HELD and not it.evidence.has_left)
    return QuarantineView(
        mode=settings.mode,
        nodes=census.members,
        away=census.away,
        limit=limits.limit(census.members),
        per_minute=settings.limits.per_minute,
        held=tuple(sorted(record.node for record in is_held)),
        frozen=fleet.mass_events,
        domains=tuple(domains),
    )
