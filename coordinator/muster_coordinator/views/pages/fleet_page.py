"""The page `/`: the whole fleet, the worst first."""

from dataclasses import dataclass

from muster.nouns import count
from muster_coordinator.model.baselines import FleetFinding
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.views.pages.bounded import Bounded, bounded
from muster_coordinator.views.pages.fleet_facts import FleetFacts
from muster_coordinator.views.pages.fleet_map import FleetMap, fleet_map
from muster_coordinator.views.pages.headline import Headline, headline
from muster_coordinator.views.pages.lost_capacity import LostCapacity, lost_capacity
from muster_coordinator.views.pages.needs_person import PersonTask, needs_person
from muster_coordinator.views.pages.page_row import as_stale
from muster_coordinator.views.pages.ranked_causes import RankedCause, ranked_causes
from muster_coordinator.views.pages.reaction_times import ReactionTimes, reaction_times
from muster_coordinator.views.pages.recent_changes import RecentChange, recent_changes

MOST_SWEEPS = 10
MOST_FLEET_FINDINGS = 10

CONVICTED_S = 86_400.0
"""How long the map shows a leaf that a sweep has convicted."""


@dataclass(frozen=True, slots=True)
class RunningSweep:
    """A sweep that runs: what it does, since when, how far it is, and what it has found so far."""

    id: str
    check: str
    strategy: str
    origin: str
    nodes: int
    since: float
    progress: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPage:
    """What the page shows of the fleet `name` at the time `at`."""

    name: str
    at: float
    headline: Headline
    map: FleetMap
    fleet_findings: Bounded[FleetFinding]
    causes: Bounded[RankedCause]
    tasks: Bounded[PersonTask]
    changes: Bounded[RecentChange]
    sweeps: Bounded[RunningSweep]
    capacity: LostCapacity
    reactions: ReactionTimes


def fleet_page(facts: FleetFacts) -> FleetPage:
    """The page of this fleet."""
    rows = facts.rows if facts.coordinator.is_connected else tuple(map(as_stale, facts.rows))
    findings = sorted(facts.fleet.findings, key=lambda finding: finding.since)
    running = [_running(sweep) for sweep in facts.sweeps if sweep.ended_at is None]
    return FleetPage(
        name=facts.fleet.name,
        at=facts.at,
        headline=headline(facts),
        map=fleet_map(rows, _convicted(facts)),
        fleet_findings=bounded(findings, MOST_FLEET_FINDINGS),
        causes=ranked_causes(rows, facts.quarantine.frozen),
        tasks=needs_person(facts),
        changes=recent_changes(facts.story, facts.asked, is_cut=facts.is_cut),
        sweeps=bounded(running, MOST_SWEEPS),
        capacity=lost_capacity(facts.capacity, facts.rows, facts.at),
        reactions=reaction_times(facts.capacity.transitions),
    )


def _running(sweep: SweepRecord) -> RunningSweep:
    parts = [f"round {len(sweep.rounds)}"] if sweep.rounds else ["planned"]
    parts += [
        f"{number:,} {what}"
        for what, number in (
            ("cleared", len(sweep.cleared_nodes)),
            ("suspect", len(sweep.suspects)),
            ("convicted", len(sweep.failed_nodes)),
        )
        if number
    ]
    if sweep.failed_links or sweep.failed_fabric:
        parts.append(f"{count(len(sweep.failed_links) + len(sweep.failed_fabric), 'bad link')}")
    return RunningSweep(
        sweep.id, sweep.check, sweep.strategy, sweep.requester, len(sweep.nodes), sweep.created_at, ", ".join(parts)
    )


def _convicted(facts: FleetFacts) -> dict[str, str]:
    """The leaves whose switch a sweep of the last day has convicted, each with the reason."""
    found: dict[str, str] = {}
    for sweep in facts.sweeps:
        if facts.at - sweep.created_at < CONVICTED_S:
            for fabric in sweep.failed_fabric:
                if len(fabric.leaves) == 1:
                    found.setdefault(fabric.leaves[0], f"convicted by a sweep with {sweep.check}")
    return found
