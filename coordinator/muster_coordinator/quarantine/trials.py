"""How a node's tests go on: one after the other, as often as it must pass them."""

from collections.abc import Iterable

from muster.model import Name, Verdict
from muster.quarantine_settings import AcceptanceTest
from muster_coordinator.quarantine.case import Case, Question, Test, Trial

PATIENCE_S = 7200.0
"""A test that has said nothing for so long will say nothing: the node was lost, or never got the order."""

LONGEST_PAUSE_S = 3600.0
"""Rounds that bring a node no further come ever more rarely: it may work for hours still, or wait for its repair."""

ASK_AGAIN_S, LONGEST_SILENCE_S = 900.0, 14_400.0
"""When a second opinion that has not come is asked for again: a node is asked in vain as long as it is busy."""

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


def next_test(trial: Trial, name: str, now: float) -> Trial:
    """The trial with the next of its tests under way, under this id."""
    return trial.model_copy(update={"test": name, "asked_at": now, "trouble": ""})


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


def overdue_at(trial: Trial) -> float:
    """When the test that is under way will say nothing any more."""
    return trial.asked_at + PATIENCE_S


def next_question(before: Question | None, run: str, now: float) -> Question:
    """A second opinion about this run, asked for now."""
    times = before.times if before is not None and before.run == run else 0
    return Question(run=run, at=now, times=times + 1)


def ask_again_at(question: Question) -> float:
    """When a second opinion that has not come until then is asked for again."""
    return question.at + _doubled(ASK_AGAIN_S, question.times - 1, LONGEST_SILENCE_S)


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
