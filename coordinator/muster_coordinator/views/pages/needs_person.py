"""What waits for a person: what it is, since when, and what to do."""

from collections.abc import Iterator
from dataclasses import dataclass

from muster.alarm import Alarm, AlarmKind
from muster.model import Action, Health, ServiceState
from muster.transition import ACTION_TEXTS
from muster_coordinator.model.quarantine_views import CaseView
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.views.pages.bounded import Bounded, bounded
from muster_coordinator.views.pages.fleet_facts import FleetFacts
from muster_coordinator.views.pages.gist import gist
from muster_coordinator.views.quarantine_text import why

MOST_TASKS = 20

_NODE = "node "
"""Begins the subject of an alarm about one node that has the name of an actor, too."""

_TODO = {
    AlarmKind.MASS_EVENT: "Look for what these nodes share; then `muster quarantine unfreeze`",
    AlarmKind.BUDGET: "Repair and release nodes, or raise the limit in [quarantine.budget]",
    AlarmKind.ACTION: "Check the scheduler; muster tries again by itself",
    AlarmKind.PERSON: "Repair it, then `muster quarantine release`",
}

_KINDS = {
    AlarmKind.MASS_EVENT: "mass event",
    AlarmKind.BUDGET: "budget",
    AlarmKind.ACTION: "action failed",
    AlarmKind.PERSON: "repeater",
}

_RANKS = ("mass event", "action failed", "repeater", "budget", "held", "not drained", "inconclusive")


@dataclass(frozen=True, slots=True)
class PersonTask:
    """One thing to do: its kind, the node if it is about one, or the sweep, what is wrong, since when, what to do."""

    kind: str
    text: str
    since: float
    todo: str
    node: str | None = None
    sweep: str | None = None

    @property
    def rank(self) -> tuple[int, float]:
        return _RANKS.index(self.kind), self.since


def needs_person(facts: FleetFacts) -> Bounded[PersonTask]:
    """What waits for a person, the most urgent first; of equal urgency, the oldest first."""
    held = [_held(case) for case in facts.held]
    not_listed = len(facts.quarantine.held) - len(held)
    alarms = [_of_alarm(alarm) for alarm in facts.quarantine.alarms if not alarm.is_over]
    tasks = sorted([*alarms, *held, *_not_drained(facts), *_inconclusive(facts)], key=lambda task: task.rank)
    shown = bounded(tasks, MOST_TASKS)
    return Bounded(shown.items, shown.rest + max(0, not_listed))


def _of_alarm(alarm: Alarm) -> PersonTask:
    node = alarm.subject if alarm.kind is AlarmKind.PERSON else None
    if alarm.kind is AlarmKind.ACTION and alarm.subject.startswith(_NODE):
        node = alarm.subject.removeprefix(_NODE)
    return PersonTask(_KINDS[alarm.kind], alarm.text, alarm.since, _TODO[alarm.kind], node)


def _held(case: CaseView) -> PersonTask:
    action = Action.NONE if case.requirement is None else case.requirement.action
    since = case.since if case.required_since is None else case.required_since
    return PersonTask("held", "; ".join(map(gist, why(case))), since, _todo(action), case.node)


def _not_drained(facts: FleetFacts) -> Iterator[PersonTask]:
    """Nodes that have failed and are not to be drained: mode, policy or a person keeps them in service."""
    for row in facts.rows:
        is_in_service = not (row.left or row.is_away or row.service is ServiceState.HELD)
        if row.health is Health.FAILED and is_in_service and row.findings:
            worst = row.findings[0]
            why_not = "; mode is observe" if facts.quarantine.mode == "observe" else ""
            text = f"Failed and in service{why_not}: {gist(worst.summary)}"
            yield PersonTask("not drained", text, worst.since, _todo(worst.action), row.name)


def _todo(action: Action) -> str:
    text = ACTION_TEXTS.get(action, "look at its findings")
    return f"{text[:1].upper()}{text[1:]}"


def _inconclusive(facts: FleetFacts) -> Iterator[PersonTask]:
    """For each check, what its last sweep could not decide."""
    seen: set[str] = set()
    for sweep in facts.sweeps:
        if sweep.ended_at is None or sweep.check in seen:
            continue
        seen.add(sweep.check)
        if sweep.inconclusive:
            yield _of_sweep(sweep, sweep.ended_at)


def _of_sweep(sweep: SweepRecord, ended_at: float) -> PersonTask:
    names = ", ".join(sweep.inconclusive[:5])
    more = f" and {len(sweep.inconclusive) - 5:,} more" if len(sweep.inconclusive) > 5 else ""
    text = f"The last sweep with {sweep.check} could not decide about {names}{more}"
    return PersonTask("inconclusive", text, ended_at, "Sweep these nodes again with more partners", sweep=sweep.id)
