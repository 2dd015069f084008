"""The page `/quarantine`: budget, mass events, actors, nodes that are out or should be, and the latest decisions."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from muster.alarm import Alarm
from muster.model import ServiceState
from muster_coordinator.model.findings import cause_label
from muster_coordinator.model.quarantine import OUT, QuarantineRecord
from muster_coordinator.model.quarantine_events import Decided
from muster_coordinator.model.quarantine_views import ActorView, BudgetView, CaseView, DomainView
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.views.pages.bounded import Bounded, bounded
from muster_coordinator.views.pages.headline import names_text
from muster_coordinator.views.quarantine_text import (
    MODES,
    node_of,
    not_done,
    outcome_lines,
    state,
    time_of,
    what_was_decided,
    why,
)

MOST_CASES = 30
MOST_DOMAINS = 20
MOST_ALARMS = 20
MOST_DECISIONS = 30
MOST_ACTORS = 50


class CaseGroup(StrEnum):
    """The lists of nodes on the page. A node may be in several.

    HELD: it should be drained and is not. PENDING: an actor has failed or was not called yet. OUT: drained, or in
    probation. NEW: not accepted yet. LEFT_ALONE: a person or a scheduler wants muster to leave it as it is.
    """

    HELD = "held"
    PENDING = "pending"
    OUT = "out"
    NEW = "new"
    LEFT_ALONE = "left alone"


def groups_of(record: QuarantineRecord, latest: TransitionRecord | None) -> Iterator[CaseGroup]:
    """The lists that have this node; `latest` is its last transition. A node that has left is in none."""
    if record.evidence.has_left:
        return
    is_for_us = record.state not in OUT and record.left_alone_because is None
    if record.state is ServiceState.HELD or (record.is_proven and is_for_us):  # in observe mode no node is HELD
        yield CaseGroup.HELD
    if latest is not None and (latest.failed or not latest.told):
        yield CaseGroup.PENDING
    if record.state in OUT:
        yield CaseGroup.OUT
    if record.state is ServiceState.ACCEPTING:
        yield CaseGroup.NEW
    if record.left_alone_because is not None:
        yield CaseGroup.LEFT_ALONE


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineFacts:
    """What the page is made from: the first cases of each list, the oldest first, and the latest decisions."""

    at: float
    budget: BudgetView
    cases: Mapping[CaseGroup, Bounded[CaseView]] = field(default_factory=dict)
    decisions: tuple[Decided, ...] = ()
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A node: its state with a mark for a dry run, since when, why, and which actors have not done their part."""

    node: str
    state: str
    since: float
    why: tuple[str, ...]
    not_done: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A decision or a request: `by` is a person, None for the policy; `outcomes` are those at each actor."""

    at: float
    node: str | None
    what: str
    by: str | None
    reason: str
    outcomes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FrozenCause:
    """A mass event: draining is frozen, because so many nodes report the cause, and since when."""

    label: str
    nodes: int
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinePage:
    """What the page shows. `domains` are those with nodes that are away, the fullest first."""

    at: float
    nodes: int
    away: int
    limit: int
    per_minute: float
    mode: str
    mode_text: str
    frozen: tuple[FrozenCause, ...]
    problems: tuple[str, ...]
    alarms: Bounded[Alarm]
    domains: Bounded[DomainView]
    actors: Bounded[ActorView]
    cases: Mapping[CaseGroup, Bounded[CaseRow]]
    decisions: tuple[DecisionRow, ...]
    has_more: bool

    @property
    def is_full(self) -> bool:
        return self.away >= self.limit


def quarantine_page(facts: QuarantineFacts) -> QuarantinePage:
    """The page of the quarantine of a fleet."""
    view = facts.budget.quarantine
    domains = sorted(view.domains, key=lambda domain: (domain.limit - domain.away, domain.name))
    decisions = tuple(map(_decision_row, facts.decisions))
    return QuarantinePage(
        at=facts.at,
        nodes=view.nodes,
        away=view.away,
        limit=view.limit,
        per_minute=view.per_minute,
        mode=view.mode,
        mode_text=MODES[view.mode],
        frozen=tuple(FrozenCause(cause_label(event.cause), event.nodes, event.since) for event in view.frozen),
        problems=tuple(_problems(facts.budget)),
        alarms=bounded(view.alarms, MOST_ALARMS),
        domains=bounded(domains, MOST_DOMAINS),
        actors=bounded(facts.budget.actors, MOST_ACTORS),
        cases={group: _rows(facts.cases.get(group, Bounded())) for group in CaseGroup},
        decisions=decisions,
        has_more=facts.has_more,
    )


def _problems(budget: BudgetView) -> Iterator[str]:
    view = budget.quarantine
    if view.mode == "enforce" and not any(actor.can_cordon for actor in budget.actors):
        yield "No actor can drain nodes: enable slurm or kubernetes"
    if budget.unheard:
        yield (
            f"Kept out by a scheduler, and no agent reports from there: {names_text(budget.unheard)}. Check that the "
            "agent runs there, under this name"
        )
    for others in view.kept_off:
        yield f"Kept off work by others ({others.how}), and counted as away: {names_text(others.nodes)}"
    if view.catching_up:
        yield f"Not drained for now, because older reports have not all arrived: {view.catching_up} nodes"


def _rows(cases: Bounded[CaseView]) -> Bounded[CaseRow]:
    return Bounded(tuple(map(_case_row, cases.items)), cases.rest)


def _case_row(case: CaseView) -> CaseRow:
    required_since = case.required_since if case.state is ServiceState.HELD else None
    since = case.since if required_since is None else required_since
    return CaseRow(case.node, state(case.state, case.dry_run), since, tuple(why(case)), tuple(not_done(case)))


def _decision_row(decided: Decided) -> DecisionRow:
    what, by, reason = what_was_decided(decided)
    return DecisionRow(time_of(decided), node_of(decided), what, by, reason, tuple(outcome_lines(decided)))


def first_of_each(found: Iterable[tuple[CaseGroup, float, str]]) -> Mapping[CaseGroup, Bounded[str]]:
    """The first nodes of each list, given as list, time and name: the oldest first."""
    lists: dict[CaseGroup, list[tuple[float, str]]] = {}
    for group, since, node in found:
        lists.setdefault(group, []).append((since, node))
    return {group: bounded((node for _, node in sorted(members)), MOST_CASES) for group, members in lists.items()}
