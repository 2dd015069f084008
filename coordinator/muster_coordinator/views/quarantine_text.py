"""Who is out of service and why, as text for people."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from muster.alarm import Alarm
from muster.model import Action, ServiceState, format_instant
from muster.table import table
from muster.terminal import in_one_line
from muster.transition import Cause, Effect, describe_causes
from muster_coordinator.model.quarantine import OUT, Probation, Requirement
from muster_coordinator.model.quarantine_events import (
    Asked,
    Decided,
    FreezeLifted,
    HoldRequested,
    NodeForgotten,
    ReleaseRequested,
)
from muster_coordinator.model.quarantine_views import ActorView, BudgetView, CaseView, DomainView, QuarantineView
from muster_coordinator.model.transitions import ActorOutcome

DRY_RUN = " (dry run)"

_MODES = {
    "observe": "nothing is taken out of service, and no actor is told of anything",
    "dry-run": "decisions are made and shown, and no actor does anything",
    "enforce": "nodes are taken out of service and brought back",
}

_UNHEARD = "kept out of work, and no agent reports from there: {}; see that it runs there, under this name"

_NEAR = 1
"""So many nodes of a failure domain may still go when it is worth a line."""


def state(service: ServiceState, dry_run: bool) -> str:
    """A service state, and whether it is only pretended."""
    return f"{service}{DRY_RUN if dry_run else ''}"


def case_table(cases: Iterable[CaseView]) -> str:
    """A line for every case, and below it what the actors have not done."""
    cases = list(cases)
    rows = ((it.node, state(it.state, it.dry_run), format_instant(it.since), _one_line(why(it)) or "-") for it in cases)
    head, *lines = table(("NODE", "STATE", "SINCE", "WHY"), rows).splitlines()
    below = (list(not_done(case)) for case in cases)
    return "\n".join([head, *_interleaved(lines, below)])


def why(case: CaseView) -> Iterator[str]:
    """Why a node is where it is, what keeps it there and what comes next, the weightiest first."""
    if case.hands_off is not None:
        yield case.hands_off
    yield from _found(case)
    if case.prospect is not None:
        yield case.prospect.text
    if case.held_because:
        is_new = case.state is ServiceState.ACCEPTING
        yield f"it {'is not taken out' if is_new else 'stays in service'} for now: {case.held_because}"
    yield from _whereabouts(case)
    yield from case.spared
    if case.will_drain_again:
        yield from case.will_drain_again
        yield "to prevent that, hold the node or add a policy row"
    yield from _what_comes_next(case)


def _found(case: CaseView) -> Iterator[str]:
    """What was found, and what it was drained for where that is something else."""
    is_for_causes = case.demand is not None and any(cause.code in case.demand.codes for cause in case.causes)
    if case.causes and not is_for_causes:
        yield f"drained for {describe_causes(case.causes, Action.NONE)}"
    if case.demand is not None:
        yield _asked(case.demand, case.causes if is_for_causes else ())


def _whereabouts(case: CaseView) -> Iterator[str]:
    """Why it gives no capacity although muster did not drain it."""
    if case.kept_off:
        yield f"work is kept off it ({'; '.join(case.kept_off)})"
    if case.leaving is not None:
        yield f"it is leaving: {case.leaving}"
    if case.lost_at is not None:
        yield f"silent since {format_instant(case.lost_at)}"
    if case.gone:
        yield "it has left the fleet"


def _what_comes_next(case: CaseView) -> Iterator[str]:
    is_new = case.state is ServiceState.ACCEPTING and case.demand is None
    if is_new and case.unfit_because:
        yield f"not accepted: {case.unfit_because}"
    if case.needs_person:
        yield f"it stays out until somebody releases it: {case.needs_person}"
    elif case.trial is not None:
        yield _progress(case.trial, case.rounds)
    elif is_new and not case.unfit_because:
        yield "new, and not accepted yet"
    elif case.back_at is not None:
        yield _coming_back(case, format_instant(case.back_at))
    elif case.state is ServiceState.IN_SERVICE and case.closed_as is not None:
        yield "not every actor has let it in again"


def _coming_back(case: CaseView, when: str) -> str:
    if case.demand is not None and case.may_return is None:
        return f"it may be tested from {when} on, when nothing stands against it any more"
    return f"waits to be tested, from {when} on: {case.may_return or 'nothing stands against it any more'}"


def _asked(demand: Requirement, causes: Sequence[Cause]) -> str:
    """What the policy requires, with the worst first; a case of an earlier version has only codes."""
    found = describe_causes(causes, demand.action) if causes else ", ".join(demand.codes)
    proof = "" if demand.is_proven else f"; not proven before {', '.join(demand.unproven)} has found it once more"
    return f"{found} (row {demand.row}){proof}"


def _progress(trial: Probation, wanted: int) -> str:
    rounds = f"tests: {min(trial.passed, wanted)} of {wanted} {'round' if wanted == 1 else 'rounds'} passed"
    if trial.test is not None:
        check, *later = (test.check for test in trial.waiting)
        return f"{rounds}, {check} under way{', then ' + ', '.join(later) if later else ''}"
    trouble = f", the last did not count: {trial.trouble}" if trial.trouble else ""
    return f"{rounds}{trouble}, the next at {format_instant(trial.next_at)}" if trial.next_at else rounds + trouble


def not_done(case: CaseView) -> Iterator[str]:
    """The actors that have failed, and if none keeps work off a node that is out, those that have left it as it is."""
    missed = {Effect.FAILED, Effect.LEFT} if _is_out_in_name_only(case) else {Effect.FAILED}
    return (outcome_line(actor, outcome) for actor, outcome in case.outcomes.items() if outcome.effect in missed)


def _is_out_in_name_only(case: CaseView) -> bool:
    """Whether no actor has taken the node out that we have, as when schedulers know it by another name."""
    keepers = [outcome for outcome in case.outcomes.values() if not outcome.only_tells]
    return case.state in OUT and case.hands_off is None and all(it.effect is Effect.LEFT for it in keepers)


def outcome_line(actor: str, outcome: ActorOutcome) -> str:
    """What came of a transition at one actor."""
    tries = f" (tried {outcome.tries} times)" if outcome.tries > 1 else ""
    again = "" if outcome.next_try is None else f"; again at {format_instant(outcome.next_try)}"
    return _one_line([f"{actor}: {outcome.effect}{tries}: {outcome.detail}{again}"])


def decision_table(decided: Iterable[Decided]) -> str:
    """A line for what somebody has asked for and for every transition, and below that what came of it at each actor."""
    decided = list(decided)
    head, *lines = table(("TIME", "NODE", "WHAT", "BY", "REASON"), map(_decision_row, decided)).splitlines()
    below = ([] if isinstance(it, Asked) else [outcome_line(*each) for each in it.outcomes.items()] for it in decided)
    return "\n".join([head, *_interleaved(lines, below)])


def _decision_row(decided: Decided) -> tuple[str, ...]:
    if isinstance(decided, Asked):
        request = decided.request
        return format_instant(decided.at), decided.node or "-", _what(decided), request.by, _one_line([request.reason])
    it = decided.transition
    found = ", ".join(cause.short for cause in it.causes) or ", ".join(it.codes)
    after = state(it.after, it.dry_run)
    what = f"stays {after}" if it.before is it.after else f"{it.before} to {after}"
    return (
        format_instant(it.at),
        it.node,
        what,
        it.by or "-",
        _one_line([f"{found}: {it.reason}" if found else it.reason]),
    )


def _what(asked: Asked) -> str:
    """What was asked for, by the name of its command."""
    match asked.request:
        case HoldRequested():
            return "hold"
        case ReleaseRequested(untested=untested):
            return "release, untested" if untested else "release"
        case FreezeLifted():
            return "unfreeze"
        case NodeForgotten():
            return "forget"


def budget_text(budget: BudgetView) -> str:
    """The quarantine of the whole fleet: what it may do, what it has done, and whether its actors work."""
    quarantine = budget.quarantine
    parts = ["\n".join(_summary(quarantine))]
    near = [it for it in quarantine.domains if it.limit - it.away <= _NEAR]
    if near:
        parts.append(table(("FULL OR NEARLY SO", "NODES", "AWAY", "LIMIT"), map(_domain_row, near)))
    if budget.actors:
        parts.append(table(("ACTOR", "KEEPS WORK OFF", "STATE"), map(_actor_row, budget.actors)))
    else:
        parts.append("no actor is enabled")
    if quarantine.alarms:
        parts.append(alarm_table(quarantine.alarms))
    if budget.unheard:
        parts.append(_UNHEARD.format(", ".join(budget.unheard)))
    return "\n\n".join(parts)


def alarm_table(alarms: Iterable[Alarm]) -> str:
    """A line for every alarm that stands."""
    rows = ((alarm.kind, format_instant(alarm.since), _one_line([alarm.text])) for alarm in alarms)
    return table(("ALARM", "SINCE", "WHAT"), rows)


def _summary(it: QuarantineView) -> Iterator[str]:
    yield f"mode: {it.mode}: {_MODES[it.mode]}"
    yield f"away: {it.away} of {it.nodes} nodes, at most {it.limit} may be"
    yield f"rate: {it.per_minute:g} nodes in a minute"
    yield f"held: {', '.join(it.held) or 'none'}"
    for others in it.kept_off:
        yield f"kept off work by others ({others.how}): {', '.join(others.nodes)}"
    if it.catching_up:
        yield f"starting: nodes whose stored reports have not arrived yet: {it.catching_up} (not drained for now)"
    if not it.frozen:
        yield "frozen: no"
    for event in it.frozen:
        yield f"frozen: no node is taken out, as {event.nodes} have {event.cause} since {format_instant(event.since)}"


def _domain_row(it: DomainView) -> tuple[str, ...]:
    return it.name, str(it.nodes), str(it.away), str(it.limit)


def _actor_row(it: ActorView) -> tuple[str, ...]:
    return it.name, "yes" if it.can_cordon else "no", _one_line([it.problem or f"works: {it.summary}"])


def _one_line(parts: Iterable[str]) -> str:
    """The parts as one cell of a table: what others write may have any number of lines."""
    return in_one_line("; ".join(parts))


def _interleaved(lines: Iterable[str], below: Iterable[Iterable[str]]) -> Iterator[str]:
    """Each line with what belongs below it, which is indented."""
    for line, more in zip(lines, below, strict=True):
        yield line
        yield from (textwrap.indent(it, "    ") for it in more)
