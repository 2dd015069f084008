"""What the API serves of a node and of the fleet, made from the records."""

from typing import Any

from muster.alarm import Alarm
from muster.model import ServiceState
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.model.quarantine import (
    OUT,
    ActorStatus,
    FleetState,
    NodeDecision,
    NodeEvidence,
    QuarantineRecord,
)
from muster_coordinator.model.quarantine_views import CaseView, DomainView, KeptOffView, QuarantineView
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine.budget import Census, Limits
from muster_coordinator.quarantine.desired import Rules, needs_person, retest_at
from muster_coordinator.quarantine.policy import Policy

_SERVED = {
    part: [name for name in part.model_fields if name in CaseView.model_fields]
    for part in (NodeEvidence, NodeDecision, ActorStatus)
}
"""The fields of each part of a record that the API serves as they are, under the same names."""


def case_view(
    record: QuarantineRecord,
    latest: TransitionRecord | None,
    fleet: FleetState,
    settings: QuarantineSettings,
    policy: Policy,
    *,
    waits_for: str,
) -> CaseView:
    """A node's case; `waits_for` is the text of why it waits."""
    decision = record.decision
    cause = None if decision.requirement is None else decision.requirement.cause
    is_frozen = any(event.cause == cause for event in fleet.mass_events)
    return CaseView(
        node=record.node,
        **_served(record.evidence),
        **_served(decision),
        **_served(record.actors),
        left=record.evidence.has_left,
        frozen_by=cause if is_frozen else None,
        lifted=cause if cause in fleet.lifted else None,
        held_because=_held_because(record, settings, waits_for),
        outcomes={} if latest is None else latest.outcomes,
        rounds=Rules.of(settings).rounds(record.state),
        retest_at=retest_at(record, settings.returning) if record.state is ServiceState.CORDONED else None,
        spared=policy.not_draining(record.evidence.findings),
        needs_person=_needs_person(record, settings),
        will_drain_again=_will_drain_again(record, settings, policy),
    )


def _served(part: NodeEvidence | NodeDecision | ActorStatus) -> dict[str, Any]:
    return {name: getattr(part, name) for name in _SERVED[type(part)]}


def _held_because(record: QuarantineRecord, settings: QuarantineSettings, waits_for: str) -> str:
    is_required = record.decision.requirement is not None and record.state not in OUT
    return "Not drained: mode is observe" if settings.mode == "observe" and is_required else waits_for


def _needs_person(record: QuarantineRecord, settings: QuarantineSettings) -> str:
    if record.state not in OUT:
        return ""
    if settings.mode == "observe":
        return "mode is observe; add --untested"
    cordoned_at = record.decision.cordoned_at
    is_out_again = record.state is ServiceState.CORDONED and needs_person(cordoned_at, settings.returning)
    return f"drained {len(cordoned_at)} times" if is_out_again else ""


def _will_drain_again(record: QuarantineRecord, settings: QuarantineSettings, policy: Policy) -> tuple[str, ...]:
    if record.state in OUT or record.left_alone_because is not None or settings.mode == "observe":
        return ()
    return policy.ignored(record.evidence.findings, record.decision.ignored_before)


def fleet_view(
    settings: QuarantineSettings,
    census: Census,
    fleet: FleetState,
    *,
    alarms: tuple[Alarm, ...],
    catching_up: int,
) -> QuarantineView:
    """The quarantine of the whole fleet; `alarms` stand, and `catching_up` nodes still deliver what they stored."""
    limits = Limits(settings.limits)
    domains = (
        DomainView(
            name=name, nodes=census.members_of[name], away=away, limit=limits.domain_limit(census.members_of[name])
        )
        for name, away in sorted(census.away_of.items())
        if away
    )
    return QuarantineView(
        mode=settings.mode,
        nodes=census.members,
        away=census.away,
        limit=limits.limit(census.members),
        per_minute=settings.limits.per_minute,
        held=tuple(sorted(census.held)),
        frozen=fleet.mass_events,
        domains=tuple(domains),
        kept_off=tuple(
            KeptOffView(how=how, nodes=tuple(sorted(nodes))) for how, nodes in sorted(census.kept_off.items())
        ),
        catching_up=catching_up,
        alarms=alarms,
    )
