"""What stands against a node, and how well founded it is."""

import pytest

from muster.model import Finding, Run, Severity, Verdict
from muster_coordinator.evidence.health import Evidence
from muster_coordinator.evidence.standing_findings import standing_findings_of
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.nodes import NodeFinding

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
    assert [finding.proof for finding in standing_findings_of(evidence)] == proofs


def test_convictions_go_first_and_comparisons_last():
    """Each says what it is, and carries its evidence."""
    evidence = Evidence()
    evidence.compare("tflops", (stands("baseline.drift"),))
    evidence.add(run("FAIL", 1))
    evidence.convict(stands("gemm.failed", evidence={"confidence": 0.9}))
    found = standing_findings_of(evidence)
    assert [(finding.code, finding.proof) for finding in found] == [
        ("gemm.failed", Proof.LOCALISED),
        ("gemm.slow", Proof.ONCE),
        ("baseline.drift", Proof.COMPARED),
    ]
    assert (found[0].evidence, found[0].since, found[0].seen) == ({"confidence": 0.9}, 1.0, 2.0)


def test_a_finding_about_a_device_has_its_uuid():
    """As the inventory has it; one about the node, and one about a device that it does not have, have none."""
    evidence = Evidence()
    evidence.compare("tflops", tuple(stands(f"gemm.{device}", device=device) for device in (3, 5, None)))
    assert [it.uuid for it in standing_findings_of(evidence, {0: "GPU-0", 3: "GPU-3"})] == ["GPU-3", "", ""]


def xids(word, at, *numbers):
    """A run in which the driver reports these about the same GPU."""
    found = tuple(
        Finding(code="nvml.xid", device=0, summary="", severity=SEVERITIES[word], evidence={"xid": number})
        for number in numbers
    )
    return Run(
        id=f"r{at}",
        node="n1",
        check="nvml",
        verdict=Verdict(word),
        findings=found,
        started_at=float(at),
        duration_s=1.0,
    )


def test_of_one_code_each_number_must_be_found_by_itself():
    """An XID that comes after another one of the same GPU is not confirmed by it, and stands since it came itself."""
    evidence = Evidence()
    evidence.add(xids("FAIL", 1, 31))
    evidence.add(xids("FAIL", 2, 31, 62))
    assert [(it.cause, it.since, it.proof) for it in standing_findings_of(evidence)] == [
        ("nvml.xid 31", 1.0, Proof.TWICE),
        ("nvml.xid 62", 2.0, Proof.ONCE),
    ]
    evidence.date_as(standing_findings_of(evidence))
    assert [it.since for it in standing_findings_of(evidence)] == [1.0, 2.0]


def test_a_number_that_is_not_found_again_stands_until_the_check_passes():
    """Also when another number of the same code is found meanwhile."""
    evidence = Evidence()
    evidence.add(xids("FAIL", 1, 62))
    evidence.add(xids("WARN", 2, 31))
    assert {it.cause for it in standing_findings_of(evidence)} == {"nvml.xid 31", "nvml.xid 62"}
