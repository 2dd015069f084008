"""What the API serves of a node and of the fleet, made from the records."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from muster.alarm import Alarm
from muster.model import Data, ServiceState
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.model.quarantine import OUT, FleetState, QuarantineRecord
from muster_coordinator.model.quarantine_views import CaseView, DomainView, KeptOffView, QuarantineView
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine.budget import Census, Limits
from muster_coordinator.quarantine.desired import Rules, needs_person, retest_at
from muster_coordinator.quarantine.policy import Policy

EVIDENCE = {
    "place": "domain",
    "lost_at": "lost_at",
    "gone": "has_left",
    "charges": "findings",
    "sightings": "seen",
    "fit": "is_fit",
    "unfit_because": "unfit_because",
    "own_checks": "own_checks",
    "patience_s": "silent_after_s",
}
DECISION = {
    "state": "state",
    "since": "since",
    "dry_run": "dry_run",
    "demand": "requirement",
    "prospect": "upcoming",
    "accused_at": "required_since",
    "cause_since": "cause_since",
    "absolved_at": "ignored_before",
    "hold": "hold",
    "asked": "second_opinions",
    "taken_out": "cordoned_at",
    "accusers": "retest_checks",
    "may_return": "retest_because",
    "trial": "probation",
    "kept_out": "kept_out_as_new",
    "causes": "causes",
}
ACTORS = {
    "listed": "was_listed",
    "views": "observed",
    "transition": "transition",
    "closed_as": "shut_out_as",
    "announced": "shows_held",
}
"""What the API calls the fields of the records. These names are published; those of the records are the core's."""


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
        **_named(record.evidence, EVIDENCE),
        **_named(decision, DECISION),
        **_named(record.actors, ACTORS),
        frozen_by=cause if is_frozen else None,
        let_pass=cause if cause in fleet.lifted else None,
        held_because=_held_because(record, settings, waits_for),
        outcomes={} if latest is None else latest.outcomes,
        rounds=Rules.of(settings).rounds(record.state),
        back_at=retest_at(record, settings.returning) if record.state is ServiceState.CORDONED else None,
        spared=policy.not_draining(record.evidence.findings),
        needs_person=_needs_person(record, settings),
        will_drain_again=_will_drain_again(record, settings, policy),
    )


def _named(part: Data, names: Mapping[str, str]) -> dict[str, Any]:
    return {name: getattr(part, field) for name, field in names.items()}


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
    records: Iterable[QuarantineRecord],
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
    records = tuple(records)
    held = (record.node for record in records if record.state is ServiceState.HELD and not record.evidence.has_left)
    return QuarantineView(
        mode=settings.mode,
        nodes=census.members,
        away=census.away,
        limit=limits.limit(census.members),
        per_minute=settings.limits.per_minute,
        held=tuple(sorted(held)),
        frozen=fleet.mass_events,
        domains=tuple(domains),
        kept_off=_kept_off(records),
        catching_up=catching_up,
        alarms=alarms,
    )


def _kept_off(records: Iterable[QuarantineRecord]) -> tuple[KeptOffView, ...]:
    """The members that others keep work off, by how they do it."""
    nodes: defaultdict[str, list[str]] = defaultdict(list)
    for record in records:
        for how in record.kept_off if record.is_member else ():
            nodes[how].append(record.node)
    return tuple(KeptOffView(how=how, nodes=tuple(sorted(names))) for how, names in sorted(nodes.items()))
