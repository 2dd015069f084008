"""How a node's tests go on: one after the other, as often as it must pass them."""

from collections.abc import Iterable, Mapping

from muster.model import Name, Verdict
from muster.quarantine_settings import AcceptanceTest
from muster_coordinator.model.case import Case, Question, Test, Trial

LONGEST_PAUSE_S = 3600.0
"""Rounds that bring a node no further come ever more rarely: it may work for hours still, or wait for its repair."""

LONGEST_SILENCE_S = 1800.0
"""A second opinion that has not come is asked for again ever more rarely: a node is asked in vain while it is busy.

So long after its end, a sweep that could not tell is begun once more.
"""

PASSED = (Verdict.PASS, Verdict.WARN)


def tests_of(case: Case, wanted: Iterable[AcceptanceTest], sweep: Name | None) -> tuple[Test, ...]:
    """What a node is tested with: what is wanted, what it failed, what it runs by itself, and at last the sweep."""
    tests = {test.check: Test(check=test.check, params=dict(test.params), strict=True) for test in wanted}
    for check in case.accusers:
        tests.setdefault(check, Test(check=check, strict=True))
    for check in case.own_checks:
        tests.setdefault(check, Test(check=check))
    if sweep is not None:
        tests.setdefault(sweep, Test(check=sweep, strict=True))
    return tuple(tests.values())


def overdue_at(case: Case, check: str, now: float) -> float | None:
    """Until when a node that is asked for this check now must have said something; None for a sweep."""
    patience_s = case.patience_s.get(check)
    return None if patience_s is None else now + patience_s


def next_test(trial: Trial, name: str, overdue_at: float | None) -> Trial:
    """The trial with the next of its tests under way, under this id."""
    return trial.model_copy(update={"test": name, "overdue_at": overdue_at, "trouble": ""})


def after_test(trial: Trial, verdict: Verdict, now: float, *, pause_s: float, wanted: int) -> Trial:
    """The trial after its test has said this; `wanted` are the rounds that the node must pass in a row."""
    test, *later = trial.waiting
    if verdict is Verdict.FAIL or (verdict not in PASSED and (test.strict or verdict is Verdict.UNKNOWN)):
        return _between_rounds(trial, now, pause_s, trouble=f"{test.check} said {verdict}", passed=0)
    if later:
        return trial.model_copy(update={"waiting": tuple(later), "test": None})
    trouble = "" if trial.passed < wanted else "it has passed all its tests, and still something stands against it"
    return _between_rounds(trial, now, pause_s, trouble=trouble, passed=trial.passed + 1)


def interrupted(trial: Trial, now: float, pause_s: float) -> Trial:
    """The trial when the test that was under way will say nothing: its round begins again."""
    return _between_rounds(trial, now, pause_s, trouble="the last test has said nothing", passed=trial.passed)


def resumed(trial: Trial) -> Trial:
    """The trial after a restart, which nobody tells of the test that was under way: its round begins again."""
    return trial.model_copy(update={"waiting": (), "test": None})


def next_question(before: Question | None, run: str, test: str, now: float, overdue_at: float | None) -> Question:
    """A second opinion about this run, asked for now as `test`."""
    times = before.times if before is not None and before.run == run else 0
    again_at = None if overdue_at is None else now + _doubled(overdue_at - now, times, LONGEST_SILENCE_S)
    return Question(run=run, test=test, times=times + 1, again_at=again_at)


def answered(question: Question, now: float) -> Question:
    """The question when what was asked has ended."""
    again_at = now + LONGEST_SILENCE_S if question.again_at is None else question.again_at
    return question.model_copy(update={"again_at": again_at})


def still_open(asked: Mapping[Name, Question]) -> dict[Name, Question]:
    """What was asked, by check, after a restart: nobody tells of the sweeps, so that those are asked for anew."""
    return {check: question for check, question in asked.items() if question.again_at is not None}


def _between_rounds(trial: Trial, now: float, pause_s: float, *, trouble: str, passed: int) -> Trial:
    pause_s = _doubled(pause_s, trial.fruitless, LONGEST_PAUSE_S) if trouble else pause_s
    return trial.model_copy(
        update={
            "waiting": (),
            "test": None,
            "passed": passed,
            "next_at": now + pause_s,
            "trouble": trouble,
            "fruitless": trial.fruitless + 1 if trouble else 0,
        }
    )


def _doubled(seconds: float, times: int, longest_s: float) -> float:
    return max(seconds, min(seconds * 2.0 ** min(times, 30), longest_s))
