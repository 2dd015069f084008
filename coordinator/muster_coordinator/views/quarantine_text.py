"""The nodes that are out of service and why, as text. Times are in UTC, with local time beside it."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from muster.alarm import Alarm
from muster.instants import instant_text
from muster.model import Action, ServiceState
from muster.table import table
from muster.terminal import in_one_line
from muster.transition import Cause, Effect, Mark, describe_causes
from muster_coordinator.model.findings import cause_label
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

MODES = {
    "observe": "no node is drained, and no actor is called",
    "dry-run": "decisions are made and shown, and actors change nothing",
    "enforce": "faulty nodes are drained and returned to service",
}
"""What each mode means."""

_UNHEARD = "drained, and no agent reports from there: {}; check that the agent runs there, under this name"

_NEAR = 1
"""A failure domain gets a line when at most this many more of its nodes may be drained."""


def state(service: ServiceState, dry_run: bool) -> str:
    """A service state, with a mark if it is that of a dry run."""
    return f"{service}{DRY_RUN if dry_run else ''}"


def case_table(cases: Iterable[CaseView]) -> str:
    """A line for every case, and below it the actors that did nothing."""
    cases = list(cases)
    head, *lines = table(("NODE", "STATE", "SINCE", "WHY"), map(_case_row, cases)).splitlines()
    below = (list(not_done(case)) for case in cases)
    return "\n".join([head, *_interleaved(lines, below)])


def _case_row(case: CaseView) -> tuple[str, ...]:
    return case.node, state(case.state, case.dry_run), instant_text(case.since), _one_line(why(case)) or "-"


def why(case: CaseView) -> Iterator[str]:
    """Why a node is in its state, what keeps it there and the next step, the most important first."""
    yield from why_so_far(case)
    yield from what_comes_next(case)


def why_so_far(case: CaseView) -> Iterator[str]:
    """Why a node is in its state, and what keeps it there."""
    if case.left_alone_because is not None:
        yield case.left_alone_because
    yield from _found(case)
    if case.upcoming is not None:
        yield case.upcoming.text(instant_text(case.upcoming.at))
    if case.held_because:
        yield case.held_because
    yield from _whereabouts(case)
    yield from case.spared
    if case.will_drain_again:
        yield from case.will_drain_again
        yield "To prevent that, hold the node or add a policy row"


def _found(case: CaseView) -> Iterator[str]:
    """The findings, and what the node was drained for if that is something else."""
    is_for_causes = case.requirement is not None and any(cause.code in case.requirement.codes for cause in case.causes)
    if case.causes and not is_for_causes:
        yield f"Drained for {describe_causes(case.causes, Action.NONE)}"
    if case.requirement is not None:
        yield _required(case.requirement, case.causes if is_for_causes else ())


def _whereabouts(case: CaseView) -> Iterator[str]:
    """Why the node gives no capacity although muster did not drain it."""
    if case.kept_off:
        yield f"Others keep work off it ({'; '.join(case.kept_off)})"
    if case.leaving is not None:
        yield f"Leaving: {case.leaving}"
    if case.lost_at is not None:
        yield f"Silent since {instant_text(case.lost_at)}"
    if case.left:
        yield "Left the fleet"


def what_comes_next(case: CaseView) -> Iterator[str]:
    """What must happen before the node is in service again; nothing for one that is."""
    is_new = case.state is ServiceState.ACCEPTING and case.requirement is None
    if is_new and case.unfit_because:
        yield f"Not accepted: {case.unfit_because}"
    if case.needs_person:
        yield f"Stays out until `muster quarantine release {case.node}`: {case.needs_person}"
    elif case.probation is not None:
        yield _progress(case.probation, case.rounds)
    elif is_new and not case.unfit_because:
        yield "New, not accepted yet"
    elif case.retest_at is not None and case.left_alone_because is None:
        yield _retest(case, instant_text(case.retest_at))
    elif case.state is ServiceState.IN_SERVICE and case.shut_out_as is not None:
        yield f"Waiting for {_not_resumed(case)} to resume the node"


def _retest(case: CaseView, when: str) -> str:
    if case.requirement is not None and case.retest_because is None:
        return f"Retest after {when} once all faults have cleared"
    return f"Retest after {when}: {case.retest_because or 'all faults have cleared'}"


def _not_resumed(case: CaseView) -> str:
    """The actors that must still resume a node in service: they failed, or have not answered yet."""
    failed = (actor for actor, outcome in case.outcomes.items() if outcome.is_scheduler_failure)
    silent = (actor for actor, seen in case.observed.items() if seen.mark is Mark.OURS and actor not in case.outcomes)
    return " and ".join([*failed, *silent]) or "all actors"


def _required(requirement: Requirement, causes: Sequence[Cause]) -> str:
    """The codes that the policy requires draining for, the worst first; a case of an earlier version has only codes."""
    found = describe_causes(causes, requirement.action) if causes else ", ".join(requirement.codes)
    proof = "" if requirement.is_proven else f"; not drained before {', '.join(requirement.unproven)} finds it again"
    return f"{found} (policy row {requirement.row}){proof}"


def _progress(probation: Probation, wanted: int) -> str:
    rounds = f"Tests: {min(probation.passed, wanted)} of {wanted} {'round' if wanted == 1 else 'rounds'} passed"
    if probation.test is not None:
        check, *later = (test.check for test in probation.waiting)
        return f"{rounds}, {check} runs now{', then ' + ', '.join(later) if later else ''}"
    trouble = f", the last one did not count: {probation.trouble}" if probation.trouble else ""
    next_one = f", next one at {instant_text(probation.next_at)}" if probation.next_at else ""
    return rounds + trouble + next_one


def not_done(case: CaseView) -> Iterator[str]:
    """The actors that failed, and if no actor drained a node that is out, those that left it as it is."""
    missed = {Effect.FAILED, Effect.LEFT} if _is_out_in_name_only(case) else {Effect.FAILED}
    return (outcome_line(actor, outcome) for actor, outcome in case.outcomes.items() if outcome.effect in missed)


def _is_out_in_name_only(case: CaseView) -> bool:
    """Whether no actor drained a node that is out, for example because schedulers know it by another name."""
    effects = [outcome.effect for outcome in case.outcomes.values() if not outcome.only_tells]
    return case.state in OUT and case.left_alone_because is None and all(effect is Effect.LEFT for effect in effects)


def outcome_line(actor: str, outcome: ActorOutcome) -> str:
    """The outcome of a transition at one actor."""
    tries = f" (tried {outcome.tries} times)" if outcome.tries > 1 else ""
    again = "" if outcome.next_try is None else f"; next try at {instant_text(outcome.next_try)}"
    return _one_line([f"{actor}: {outcome.effect}{tries}: {outcome.detail}{again}"])


def decision_table(decided: Iterable[Decided]) -> str:
    """A line for every request and every transition, and below a transition its outcome at each actor."""
    decided = list(decided)
    head, *lines = table(("TIME", "NODE", "WHAT", "BY", "REASON"), map(_decision_row, decided)).splitlines()
    below = map(outcome_lines, decided)
    return "\n".join([head, *_interleaved(lines, below)])


def outcome_lines(decided: Decided) -> list[str]:
    """The outcome of a transition at each actor; a request has none."""
    return [] if isinstance(decided, Asked) else [outcome_line(*outcome) for outcome in decided.outcomes.items()]


def _decision_row(decided: Decided) -> tuple[str, ...]:
    what, by, reason = what_was_decided(decided)
    return instant_text(time_of(decided)), node_of(decided) or "-", what, by or "-", _one_line([reason])


def time_of(decided: Decided) -> float:
    """The time of a request or a transition."""
    return decided.at if isinstance(decided, Asked) else decided.transition.at


def node_of(decided: Decided) -> str | None:
    """The node of a request or a transition; None for a request about the fleet."""
    return decided.node if isinstance(decided, Asked) else decided.transition.node


def what_was_decided(decided: Decided) -> tuple[str, str | None, str]:
    """What was requested or decided, by whom, and why. None stands for the policy."""
    if isinstance(decided, Asked):
        return what_was_asked(decided), decided.request.by, decided.request.reason
    transition = decided.transition
    causes = transition.causes
    found = describe_causes(causes, Action.NONE) if causes else ", ".join(transition.codes)
    after = state(transition.after, transition.dry_run)
    what = f"stays {after}" if transition.before is transition.after else f"{transition.before} to {after}"
    return what, transition.by, f"{found}: {transition.reason}" if found else transition.reason


def what_was_asked(asked: Asked) -> str:
    """The name of the requested command."""
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
    """The quarantine of the whole fleet: mode, limits, mass events, actors and alarms."""
    quarantine = budget.quarantine
    parts = ["\n".join(_summary(quarantine))]
    near = [domain for domain in quarantine.domains if domain.limit - domain.away <= _NEAR]
    if near:
        parts.append(table(("FULL OR NEARLY SO", "NODES", "AWAY", "LIMIT"), map(_domain_row, near)))
    if budget.actors:
        parts.append(table(("ACTOR", "CAN DRAIN", "STATE"), map(_actor_row, budget.actors)))
    else:
        parts.append("No actor is enabled")
    if quarantine.alarms:
        parts.append(alarm_table(quarantine.alarms))
    if budget.unheard:
        parts.append(_UNHEARD.format(", ".join(budget.unheard)))
    return "\n\n".join(parts)


def alarm_table(alarms: Iterable[Alarm]) -> str:
    """A line for every standing alarm."""
    rows = ((alarm.kind, instant_text(alarm.since), _one_line([alarm.text])) for alarm in alarms)
    return table(("ALARM", "SINCE", "WHAT"), rows)


def _summary(view: QuarantineView) -> Iterator[str]:
    yield f"mode: {view.mode}: {MODES[view.mode]}"
    yield f"away: {view.away} of {view.nodes} nodes, limit {view.limit}"
    yield f"rate: at most {view.per_minute:g} drains in a minute"
    yield f"waiting to be drained (HELD): {', '.join(view.held) or 'none'}"
    for others in view.kept_off:
        yield f"kept off work by others ({others.how}): {', '.join(others.nodes)}"
    if view.catching_up:
        yield f"catching up: nodes whose older reports have not all arrived: {view.catching_up} (not drained for now)"
    if not view.frozen:
        yield "frozen: no"
    for event in view.frozen:
        report = f"{event.nodes} nodes report {cause_label(event.cause)} since {instant_text(event.since)}"
        yield f"frozen: draining paused fleet-wide: {report}"


def _domain_row(domain: DomainView) -> tuple[str, ...]:
    return domain.name, str(domain.nodes), str(domain.away), str(domain.limit)


def _actor_row(actor: ActorView) -> tuple[str, ...]:
    return actor.name, "yes" if actor.can_cordon else "no", _one_line([actor.problem or f"works: {actor.summary}"])


def _one_line(parts: Iterable[str]) -> str:
    """The parts as one cell of a table. Texts of others may have several lines."""
    return in_one_line("; ".join(parts))


def _interleaved(lines: Iterable[str], below: Iterable[Iterable[str]]) -> Iterator[str]:
    """Each line with the lines that belong below it, which are indented."""
    for line, more in zip(lines, below, strict=True):
        yield line
        yield from (textwrap.indent(text, "    ") for text in more)
