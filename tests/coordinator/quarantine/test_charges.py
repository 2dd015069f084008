"""What stands against a node, and how well founded it is."""

import pytest

from muster.model import Finding, Run, Severity, Verdict
from muster_coordinator.health import Evidence
from muster_coordinator.quarantine.charge import Proof
from muster_coordinator.quarantine.charges import charges_of
from muster_coordinator.records import NodeFinding

SEVERITIES = {"FAIL": Severity.ERROR, "WARN": Severity.WARNING, "UNKNOWN": Severity.UNKNOWN}


def run(word, at):
    found = (Finding(code="gemm.slow", summary="slow", severity=SEVERITIES[word]),) if word in SEVERITIES else ()
    return Run(
        id=f"r{at}",
        node="n1",
        check="gemm",
        verdict=Verdict(word),
        findings=found,
        started_at=float(at),
        duration_s=1.0,
    )


def stands(code, **said):
    return NodeFinding(
        code=code, summary="slow", severity=Severity.ERROR, check="gemm", run="s1", since=1.0, seen=2.0, **said
    )


@pytest.mark.parametrize(
    ("words", "proofs"),
    [
        ("PASS", []),
        ("FAIL", [Proof.ONCE]),
        ("FAIL FAIL", [Proof.TWICE]),
        ("FAIL PASS", [Proof.ONCE]),
        ("FAIL PASS FAIL", [Proof.ONCE]),
        ("FAIL PASS FAIL FAIL", [Proof.TWICE]),
        ("FAIL PASS PASS", []),
        ("FAIL FAIL PASS", [Proof.TWICE]),
        ("WARN", [Proof.ONCE]),
        ("WARN WARN", [Proof.TWICE]),
        ("WARN PASS WARN", [Proof.ONCE]),
        ("UNKNOWN UNKNOWN", [Proof.ONCE]),
    ],
)
def test_how_often_runs_must_find_something(words, proofs):
    """Twice, and no two passes in a row between, or for a warning none."""
    evidence = Evidence()
    for at, word in enumerate(words.split()):
        evidence.add(run(word, at))
    assert [charge.proof for charge in charges_of(evidence)] == proofs


def test_convictions_go_first_and_comparisons_last():
    """Each says what it is, and carries its evidence."""
    evidence = Evidence()
    evidence.compare("tflops", (stands("baseline.drift"),))
    evidence.add(run("FAIL", 1))
    evidence.convict(stands("gemm.failed", evidence={"confidence": 0.9}))
    found = charges_of(evidence)
    assert [(charge.code, charge.proof) for charge in found] == [
        ("gemm.failed", Proof.LOCALISED),
        ("gemm.slow", Proof.ONCE),
        ("baseline.drift", Proof.COMPARED),
    ]
    assert (found[0].evidence, found[0].since, found[0].seen) == ({"confidence": 0.9}, 1.0, 2.0)
