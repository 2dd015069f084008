"""Which runs of the outbox are sent at once, and which wait for others."""

import math
from itertools import count

from tests.cases import cases

from muster.model import Finding, Run, Severity, Verdict
from muster_agent.decide.report_timing import STEADY_RUNS, ReportTiming

NUMBERS = count(1)


def run(verdict: Verdict = Verdict.PASS, *codes: str, cause: str = "schedule", check: str = "nvml") -> Run:
    findings = tuple(Finding(code=code, summary="", severity=Severity.INFO) for code in codes)
    return Run(
        id="r",
        node="n",
        check=check,
        verdict=verdict,
        findings=findings,
        started_at=1.0,
        duration_s=0.1,
        seq=next(NUMBERS),
        cause=cause,
    )


def steady(hold_s: float = 45.0) -> ReportTiming:
    """One whose check nvml has passed so often that its next pass may wait."""
    timing = ReportTiming(0)
    timing.hold_s = hold_s
    for _ in range(STEADY_RUNS):
        released = run()
        timing.appended(released, 0.0)
        assert timing.released_through == released.seq
    return timing


def test_the_first_runs_go_at_once_and_the_others_wait_together() -> None:
    """From the first that waits, so that each waits for a bounded time."""
    timing = steady()
    before = timing.released_through
    for now in (10.0, 25.0):
        last = run()
        timing.appended(last, now)
    assert (timing.released_through, timing.next_due()) == (before, 55.0)
    timing.tick(54.9)
    assert timing.released_through == before
    timing.tick(55.0)
    assert (timing.released_through, timing.next_due()) == (last.seq, math.inf)


def test_without_a_word_of_the_coordinator_nothing_waits() -> None:
    """As for a coordinator of an earlier version, or of a small fleet."""
    timing = steady(hold_s=0.0)
    last = run()
    timing.appended(last, 10.0)
    assert timing.released_through == last.seq


URGENT = {
    "another verdict": run(Verdict.FAIL, "nvml.ecc"),
    "a warning": run(Verdict.WARN, "nvml.hot"),
    "another finding": run(Verdict.PASS, "nvml.note"),
    "somebody has asked": run(cause="1790000000-7"),
    "a check that has just begun": run(check="host"),
}


@cases("urgent", URGENT.values(), URGENT)
def test_it_releases_itself_and_all_that_wait(urgent: Run) -> None:
    """Nothing that somebody waits for is held, and the order stays."""
    timing = steady()
    timing.appended(run(), 10.0)
    numbered = urgent.model_copy(update={"seq": next(NUMBERS)})
    timing.appended(numbered, 11.0)
    assert (timing.released_through, timing.next_due()) == (numbered.seq, math.inf)


@cases(
    ("verdict", "waits"),
    [(Verdict.PASS, True), (Verdict.SKIPPED, True), (Verdict.FAIL, False), (Verdict.UNKNOWN, False)],
)
def test_a_run_of_a_group_waits_unless_it_found_something(verdict: Verdict, waits: bool) -> None:
    """The reply to its sweep says what it has measured; the others that wait are not released by it."""
    timing = steady()
    before = timing.released_through
    timing.appended(run(), 10.0)
    timing.appended(run(verdict, cause="sweep", check="collective").model_copy(update={"group": "s-1"}), 11.0)
    assert (timing.released_through == before) is waits


def test_passes_after_a_failure_do_not_wait_until_the_failure_is_cleared() -> None:
    """Two passes in a row clear it."""
    timing = steady()
    timing.appended(run(Verdict.FAIL, "nvml.ecc"), 10.0)
    for _ in range(2):
        last = run()
        timing.appended(last, 20.0)
        assert timing.released_through == last.seq


def test_a_warning_that_stays_does_not_wait() -> None:
    """Only what finds nothing does."""
    timing = steady()
    for _ in range(STEADY_RUNS + 2):
        last = run(Verdict.WARN, "nvml.hot")
        timing.appended(last, 10.0)
    assert timing.released_through == last.seq


def test_a_new_failure_is_urgent_until_it_has_come_often_enough() -> None:
    """An overloaded coordinator takes it first; a failure that stands for long is no news."""
    timing = steady()
    assert timing.urgent_through == 0
    for _ in range(STEADY_RUNS):
        failed = run(Verdict.FAIL, "nvml.xid")
        timing.appended(failed, 0.0)
        assert timing.urgent_through == failed.seq
    timing.appended(run(Verdict.FAIL, "nvml.xid"), 0.0)
    timing.appended(run(Verdict.PASS), 0.0)
    assert timing.urgent_through == failed.seq
    another = run(Verdict.FAIL, "nvml.ecc")
    timing.appended(another, 0.0)
    assert timing.urgent_through == another.seq
