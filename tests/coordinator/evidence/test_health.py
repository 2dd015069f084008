"""What evidence says about a node."""

import pytest
from tests.cases import cases

from muster.model import Action, Finding, Health, Run, Severity, Verdict
from muster_coordinator.evidence.health import HEALTH, MOVES, Evidence, HealthOutcome
from muster_coordinator.model.evidence_record import CheckStanding
from muster_coordinator.model.nodes import NodeFinding

_SEVERITY = {Verdict.WARN: Severity.WARNING, Verdict.FAIL: Severity.ERROR, Verdict.UNKNOWN: Severity.UNKNOWN}


def run(word: str, number: int = 1, *, check: str = "gemm", group: str | None = None) -> Run:
    """A run that says `word`; BROKEN is a FAIL that asks for hands on the hardware."""
    verdict = Verdict.FAIL if word == "BROKEN" else Verdict(word)
    action = Action.REPLACE if word == "BROKEN" else Action.NONE
    findings: tuple[Finding, ...] = ()
    if verdict in _SEVERITY:
        findings = (Finding(code=f"{check}.{word}", summary=word, severity=_SEVERITY[verdict], action=action),)
    return Run(
        id=f"r{number}",
        node="n",
        check=check,
        verdict=verdict,
        findings=findings,
        started_at=float(number),
        duration_s=0.1,
        group=group,
    )


def after(*words: str) -> Evidence:
    evidence = Evidence()
    for number, word in enumerate(words, start=1):
        evidence.add(run(word, number))
    return evidence


@cases(
    ("words", "health"),
    [
        ("", Health.UNKNOWN),
        ("SKIPPED", Health.UNKNOWN),
        ("UNKNOWN", Health.UNKNOWN),
        ("PASS", Health.HEALTHY),
        ("PASS SKIPPED", Health.HEALTHY),
        ("PASS UNKNOWN", Health.UNKNOWN),
        ("PASS WARN", Health.DEGRADED),
        ("WARN UNKNOWN", Health.DEGRADED),
        ("WARN PASS", Health.HEALTHY),
        ("PASS FAIL", Health.SUSPECT),
        ("FAIL WARN", Health.SUSPECT),
        ("FAIL PASS", Health.SUSPECT),
        ("FAIL PASS UNKNOWN PASS", Health.SUSPECT),
        ("FAIL PASS PASS", Health.HEALTHY),
        ("FAIL PASS FAIL", Health.SUSPECT),
        ("BROKEN PASS BROKEN", Health.FAILED),
        ("BROKEN", Health.SUSPECT),
        ("FAIL FAIL", Health.FAILED),
        ("FAIL SKIPPED FAIL", Health.FAILED),
        ("FAIL UNKNOWN FAIL", Health.FAILED),
        ("FAIL FAIL PASS", Health.FAILED),
        ("FAIL FAIL PASS SKIPPED PASS", Health.HEALTHY),
        ("FAIL FAIL PASS FAIL PASS", Health.FAILED),
        ("FAIL FAIL UNKNOWN UNKNOWN", Health.FAILED),
    ],
)
def test_runs_move_health_with_hysteresis(words: str, health: Health) -> None:
    """One failure makes suspect, two make failed, two passes in a row heal; SKIPPED says nothing."""
    assert after(*words.split()).health is health


def test_the_table_is_complete() -> None:
    """Every standing has a move for every outcome."""
    assert set(MOVES) == {(standing, outcome) for standing in CheckStanding for outcome in HealthOutcome}
    assert set(HEALTH) == set(CheckStanding)


@cases(("standing", "outcome"), MOVES)
def test_no_move_breaks_the_rules(standing: CheckStanding, outcome: HealthOutcome) -> None:
    """UNKNOWN never improves, failures never improve, and PASS never worsens."""
    order = (Health.HEALTHY, Health.UNKNOWN, Health.DEGRADED, Health.SUSPECT, Health.FAILED)
    before, now = order.index(HEALTH[standing]), order.index(HEALTH[MOVES[standing, outcome]])
    if outcome is HealthOutcome.PASS:
        assert now <= before
    else:
        assert now >= before


def test_the_worst_check_counts() -> None:
    """A node is as healthy as its worst check; a check that cannot tell counts only when nothing is worse."""
    evidence = after("PASS")
    seen = []
    for word, check in (("UNKNOWN", "nvml"), ("WARN", "training"), ("FAIL", "disk")):
        evidence.add(run(word, check=check))
        seen.append(evidence.health)
    assert seen == [Health.UNKNOWN, Health.DEGRADED, Health.SUSPECT]


def test_a_groups_failure_indicts_nobody() -> None:
    """Runs in a group leave health as it is."""
    evidence = after("PASS")
    assert not evidence.add(run("FAIL", 2, check="collective", group="g"))
    assert evidence.health is Health.HEALTHY
    assert evidence.verdicts["collective"] is Verdict.FAIL


def test_a_conviction_stands_until_a_sweep_clears_it() -> None:
    """Runs of the node alone do not clear what a sweep has found; a sweep with the same check does."""
    evidence = after("PASS")
    finding = NodeFinding(
        code="collective.slow", summary="slow", severity=Severity.ERROR, check="collective", run="s1", since=1.0
    )
    evidence.convict(finding)
    evidence.add(run("PASS", 2))
    assert (evidence.health, evidence.findings, evidence.reasons) == (Health.FAILED, (finding,), ("slow",))
    assert not evidence.clear("gemm", 1)
    assert evidence.clear("collective", 1)
    assert evidence.health is Health.HEALTHY


def test_findings_stand_as_long_as_the_failure_does() -> None:
    """A failed check keeps its findings, with the time they first came, until it has healed."""
    evidence = after("FAIL", "FAIL", "UNKNOWN", "PASS")
    assert {(f.code, f.run, f.since) for f in evidence.findings} == {
        ("gemm.FAIL", "r2", 1.0),
        ("gemm.UNKNOWN", "r3", 3.0),
    }
    evidence.add(run("PASS", 5))
    assert evidence.findings == ()


def test_only_news_counts_as_change() -> None:
    """Another PASS of a good check changes nothing."""
    evidence = after("PASS")
    assert not evidence.add(run("PASS", 2))
    assert evidence.add(run("WARN", 3))


def test_reasons_say_why() -> None:
    """Every check that is not good gives a reason; a node without evidence says so."""
    assert after().reasons == ("nothing has been measured yet",)
    assert after("PASS").reasons == ()
    assert after("FAIL").reasons == ("gemm failed; a second failure confirms it, two passes in a row clear it",)


def compared(severity: Severity, since: float = 1.0, runs: int = 1) -> NodeFinding:
    return NodeFinding(
        code="baseline.outlier",
        summary="slow",
        severity=severity,
        device=3,
        check="gemm",
        run="r",
        since=since,
        runs=runs,
    )


@pytest.mark.parametrize(
    ("words", "severity", "health"),
    [
        ("PASS", Severity.WARNING, Health.DEGRADED),
        ("PASS", Severity.ERROR, Health.SUSPECT),
        ("FAIL FAIL", Severity.WARNING, Health.FAILED),
        ("UNKNOWN", Severity.WARNING, Health.DEGRADED),
    ],
)
def test_what_comparing_finds_counts_as_health(words: str, severity: Severity, health: Health) -> None:
    """It degrades or makes suspect, never fails, never lessens a failure, and is gone when it finds nothing more."""
    evidence = after(*words.split())
    before = evidence.health
    for since in (1.0, 2.0, 3.0):
        evidence.compare("b", (compared(severity, since=since),))
    assert evidence.health is health
    assert evidence.findings[-1] == compared(severity, since=1.0, runs=3)
    assert "slow" in evidence.reasons
    assert evidence.compare("b", ()) == (compared(severity, since=1.0, runs=3),)
    assert evidence.health is before
    assert evidence.compare("b", ()) is None
