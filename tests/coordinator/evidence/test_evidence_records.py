"""When the evidence about a node is stored, and that a restart makes the same of it."""

from tests.coordinator.fleets import fleet, presence, report, run

from muster.model import Finding, Severity, Verdict
from muster_coordinator.evidence.evidence_records import evidence_of, record_of
from muster_coordinator.evidence.health import GOOD, Evidence
from muster_coordinator.model.events import FleetCommand, SaveEvidence, StoreRuns
from muster_coordinator.model.evidence_record import EvidenceRecord
from muster_coordinator.model.quarantine_events import NodeForgotten

WARNING = Finding(code="gemm.slow", summary="slow", severity=Severity.WARNING)


def saved(commands: list[FleetCommand]) -> list[EvidenceRecord]:
    """The evidence that these commands store."""
    return [command.record for command in commands if isinstance(command, SaveEvidence)]


def test_runs_that_change_nothing_store_no_evidence():
    """Not even if the check is skipped now and then; the first run does, and each that warns."""
    made, counts = fleet("a"), []
    verdicts = ["PASS", "PASS", "SKIPPED", "PASS", "SKIPPED", "WARN", "WARN", "PASS", "PASS"]
    for seq, verdict in enumerate(verdicts, 1):
        found = (WARNING,) if verdict == "WARN" else ()
        each = run(seq).model_copy(update={"verdict": Verdict(verdict), "findings": found})
        counts.append(len(saved(made.handle(report(each, after=seq - 1), 10.0 * seq))))
    assert counts == [1, 0, 0, 0, 0, 1, 1, 1, 0]


def test_evidence_is_stored_with_the_run_that_changed_it():
    """In the same commands, and so in the same transaction."""
    commands = fleet("a").handle(report(run(1)), 1.0)
    assert [type(command) for command in commands if isinstance(command, StoreRuns | SaveEvidence)] == [
        StoreRuns,
        SaveEvidence,
    ]


def test_a_record_reads_back():
    """Standings, findings, last verdicts and comparisons, in their order; a good check is the one object for all."""
    evidence = Evidence()
    evidence.add(run(1))
    evidence.add(run(2).model_copy(update={"check": "nvml", "verdict": Verdict.WARN, "findings": (WARNING,)}))
    evidence.compare("speed", evidence.checks["nvml"].findings)
    record = EvidenceRecord.model_validate_json(record_of("a", evidence, {"gemm", "old"}).model_dump_json())
    assert record.others == ("old",)
    again = evidence_of(record, ())
    assert again == evidence
    assert again.checks[run(1).check] is GOOD


def test_a_node_that_has_left_keeps_only_the_names_of_its_checks():
    """So it cannot make the coordinator store ever more checks; its evidence does not come back with a restart."""
    made = fleet("a")
    made.handle(report(run(1)), 1.0)
    made.handle(presence("a", online=False), 1.5)
    (record,) = saved(made.handle(NodeForgotten(node="a", by="ada", reason="gone"), 2.0))
    assert record == EvidenceRecord(node="a", others=(run(1).check,))
