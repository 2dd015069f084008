"""Tests of a node: which is next, what an answer means, when the next round is; and second opinions.

A round runs one test after the other: the tests of the settings, then the checks that found what the node was cordoned
for, then the checks that it runs by itself, then a sweep with healthy partners if the settings have one. A node must
pass several rounds in a row. A FAIL ends probation. If a test is UNKNOWN, or a wanted test was SKIPPED, the round does
not count. Then the pauses double up to an hour, since the node may be busy for hours or wait for its repair.
"""

from muster.backoff import backoff_s
from muster.model import Name, ServiceState, Verdict
from muster_coordinator.model.quarantine import Probation, ProbationTest, QuarantineRecord, SecondOpinion
from muster_coordinator.model.quarantine_events import LEAST_PARTNERS, QuarantineCommand, StartTest, TestEnded
from muster_coordinator.quarantine.change import Change, note
from muster_coordinator.quarantine.desired import Rules, StateStep
from muster_coordinator.quarantine.ids import Ids

LONGEST_PAUSE_S = 3600.0
"""Longest pause between rounds that do not count."""

LONGEST_SILENCE_S = 1800.0
"""Longest wait before a second opinion that did not report is started again: the node may be busy.

A sweep that could not tell is started again so long after its end.
"""

PASSED = (Verdict.PASS, Verdict.WARN)


def is_tested(record: QuarantineRecord, rules: Rules) -> bool:
    """Whether the node is being tested for its (return to) service.

    A new node is tested when it is fit, or when tests have begun and nothing is required: they may have made it unfit.
    """
    if not rules.decides or record.evidence.has_left or record.left_alone_because is not None:
        return False
    has_begun = record.decision.probation is not None and record.decision.requirement is None
    is_new = record.state is ServiceState.ACCEPTING and bool(rules.tests) and (record.evidence.is_fit or has_begun)
    return is_new or record.state is ServiceState.PROBATION


def continue_tests(record: QuarantineRecord, rules: Rules, ids: Ids, now: float) -> Change:
    """Continues the tests: gives up an overdue one, waits for the next round, or starts the next test."""
    probation = record.decision.probation or Probation(begun=now)
    commands: tuple[QuarantineCommand, ...] = ()
    if probation.test is not None and (_is_due(probation.overdue_at, now) or not record.is_online):
        probation = _between_rounds(
            probation, now, rules, trouble="the last test did not report", passed=probation.passed
        )
    is_between_rounds = probation.test is None and now < probation.next_at
    wants_more = probation.passed < rules.rounds(record.state) or _is_in_doubt(record)
    if probation.test is None and not is_between_rounds and record.is_online and wants_more:
        probation, commands = _start_next(record, probation, rules, ids, now)
    moments = (probation.overdue_at if probation.test is not None else None, probation.next_at)
    look_again_at = tuple(moment for moment in moments if moment is not None and moment > now)
    return Change(record.with_decision(probation=probation), commands, look_again_at=look_again_at)


def _start_next(
    record: QuarantineRecord, probation: Probation, rules: Rules, ids: Ids, now: float
) -> tuple[Probation, tuple[QuarantineCommand, ...]]:
    waiting = probation.waiting or _tests_of(record, rules)
    if not waiting:  # no check can test it
        return probation.model_copy(update={"passed": rules.rounds(record.state)}), ()
    test, name = waiting[0], ids.new("p")
    overdue_at = _overdue_at(record, test.check, now)
    update = {"waiting": waiting, "test": name, "overdue_at": overdue_at, "trouble": ""}
    return probation.model_copy(update=update), (_start(record, name, test, rules),)


def _tests_of(record: QuarantineRecord, rules: Rules) -> tuple[ProbationTest, ...]:
    tests = {test.check: ProbationTest(check=test.check, params=dict(test.params), strict=True) for test in rules.tests}
    for check in record.decision.retest_checks:
        tests.setdefault(check, ProbationTest(check=check, strict=True))
    for check in record.evidence.own_checks:
        tests.setdefault(check, ProbationTest(check=check))
    if rules.returning.partners and record.state is ServiceState.PROBATION:
        sweep = rules.returning.sweep
        tests.setdefault(sweep, ProbationTest(check=sweep, strict=True))
    return tuple(tests.values())


def _is_in_doubt(record: QuarantineRecord) -> bool:
    """Whether a node that passed its tests still may not return: further tests show when that is over."""
    is_unfit = record.state is ServiceState.ACCEPTING and not record.evidence.is_fit
    return record.decision.requirement is not None or is_unfit


def after_test(record: QuarantineRecord, event: TestEnded, rules: Rules, now: float) -> Change:
    """The record after a test or a second opinion ended. A node that fails in PROBATION is cordoned again."""
    probation, verdict = record.decision.probation, event.verdict
    if probation is None or probation.test != event.test:
        return _after_opinion(record, event.test, verdict, now)
    check = probation.waiting[0].check
    story = note(record, "test", f"{check}: {verdict}", event.test)
    may_fail = record.state is ServiceState.PROBATION and record.left_alone_because is None
    if verdict is Verdict.FAIL and may_fail:
        return Change(record, (story,), step=StateStep.FAIL, reason=f"failed {check}")
    rounds = rules.rounds(record.state)
    after = _after_verdict(probation, verdict, rules, rounds, now)
    notes = [story]
    if probation.passed < after.passed <= rounds:
        notes.append(note(record, "test", f"{after.passed} of {rounds} rounds passed", event.test))
    return Change(record.with_decision(probation=after), tuple(notes))


def _after_verdict(probation: Probation, verdict: Verdict, rules: Rules, rounds: int, now: float) -> Probation:
    test, *later = probation.waiting
    if verdict is Verdict.FAIL or (verdict not in PASSED and (test.strict or verdict is Verdict.UNKNOWN)):
        return _between_rounds(probation, now, rules, trouble=f"{test.check} reported {verdict}", passed=0)
    if later:
        return probation.model_copy(update={"waiting": tuple(later), "test": None})
    trouble = "" if probation.passed < rounds else "all tests passed, but not all faults have cleared"
    return _between_rounds(probation, now, rules, trouble=trouble, passed=probation.passed + 1)


def _between_rounds(probation: Probation, now: float, rules: Rules, *, trouble: str, passed: int) -> Probation:
    pause_s = rules.returning.pause_s
    if trouble:
        pause_s = _doubled(pause_s, probation.fruitless, LONGEST_PAUSE_S)
    return probation.model_copy(
        update={
            "waiting": (),
            "test": None,
            "passed": passed,
            "next_at": now + pause_s,
            "trouble": trouble,
            "fruitless": probation.fruitless + 1 if trouble else 0,
        }
    )


def second_opinions(record: QuarantineRecord, rules: Rules, ids: Ids, now: float) -> Change:
    """Starts each check whose finding must be confirmed: once for each run, and again when it did not report.

    No check can confirm that a node is silent.
    """
    requirement = record.decision.requirement
    is_asked = rules.decides and record.is_online and record.state in _IN_SERVICE and record.left_alone_because is None
    if requirement is None or not is_asked:
        return Change(record)
    commands: list[QuarantineCommand] = []
    look_again_at: list[float] = []
    for check in requirement.unproven:
        run = next((finding.run for finding in record.evidence.findings if finding.check == check), None)
        if run is None:
            continue
        opinions = record.decision.second_opinions
        opinion = opinions.get(check)
        if _may_ask(record, check, run, now):
            opinion = _next_opinion(record, opinion, check, run, ids.new("o"), now=now)
            record = record.with_decision(second_opinions={**opinions, check: opinion})
            commands.append(note(record, "second_opinion", f"{check} runs again as a second opinion", run))
            commands.append(_start(record, opinion.test, ProbationTest(check=check), rules))
        if opinion is not None and opinion.again_at is not None:
            look_again_at.append(opinion.again_at)
    return Change(record, tuple(commands), look_again_at=tuple(look_again_at))


_IN_SERVICE = frozenset({ServiceState.ACCEPTING, ServiceState.IN_SERVICE, ServiceState.HELD})


def _may_ask(record: QuarantineRecord, check: str, run: str, now: float) -> bool:
    """Whether a second opinion about a run may start now.

    A check of the node alone may start after each run that found something. A sweep takes the time of other nodes, and
    a node that finds something new with every run would keep them all busy. So only one sweep runs at a time, and the
    next starts only after a while.
    """
    opinions = record.decision.second_opinions
    opinion = opinions.get(check)
    is_sweep = _overdue_at(record, check, now) is None
    if is_sweep and any(other.again_at is None for other in opinions.values()):
        return False
    if opinion is None or _is_due(opinion.again_at, now):
        return True
    return opinion.run != run and not is_sweep


def _next_opinion(
    record: QuarantineRecord, before: SecondOpinion | None, check: str, run: str, test: Name, *, now: float
) -> SecondOpinion:
    times = before.times if before is not None and before.run == run else 0
    overdue_at = _overdue_at(record, check, now)
    again_at = None if overdue_at is None else now + _doubled(overdue_at - now, times, LONGEST_SILENCE_S)
    return SecondOpinion(run=run, test=test, times=times + 1, again_at=again_at)


def _after_opinion(record: QuarantineRecord, test: Name, verdict: Verdict, now: float) -> Change:
    """The record after a second opinion ended. A confirmed finding arrives as evidence."""
    opinions = record.decision.second_opinions
    check, opinion = next((check, opinion) for check, opinion in opinions.items() if opinion.test == test)
    story = note(record, "second_opinion", f"{check} did not confirm it: {verdict}", test)
    notes = () if verdict is Verdict.FAIL else (story,)
    again_at = now + LONGEST_SILENCE_S if opinion.again_at is None else opinion.again_at
    answered = opinion.model_copy(update={"again_at": again_at})
    return Change(record.with_decision(second_opinions={**opinions, check: answered}), notes)


def after_restart(record: QuarantineRecord) -> QuarantineRecord:
    """The record after a restart. Tests from before it report nothing: the round and the sweeps start again."""
    opinions = {
        check: opinion for check, opinion in record.decision.second_opinions.items() if opinion.again_at is not None
    }
    probation = record.decision.probation
    if probation is not None:
        probation = probation.model_copy(update={"waiting": (), "test": None})
    return record.with_decision(second_opinions=opinions, probation=probation)


def _start(record: QuarantineRecord, name: Name, test: ProbationTest, rules: Rules) -> StartTest:
    partners = max(LEAST_PARTNERS, rules.returning.partners)
    return StartTest(node=record.node, test=name, check=test.check, params=test.params, partners=partners)


def _overdue_at(record: QuarantineRecord, check: str, now: float) -> float | None:
    """When a run of this check that starts now is overdue; None for a sweep."""
    silent_after_s = record.evidence.silent_after_s.get(check)
    return None if silent_after_s is None else now + silent_after_s


def _is_due(moment: float | None, now: float) -> bool:
    return moment is not None and now >= moment


def _doubled(seconds: float, times: int, longest_s: float) -> float:
    return max(seconds, backoff_s(times + 1, seconds, longest_s))
