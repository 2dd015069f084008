"""The evidence about nodes as records: what is stored of it, and what a restart makes of that.

The idea: a run that changes nothing is stored alone. Whatever changes the evidence about a node makes its record due,
and the record is stored together with the runs behind it. So a restart reads one record for each node and no run.

Example: nvml passes every 15 seconds for months: one record, when it first passed. Then it warns: one record for the
first warning, and one for each further one, because the finding counts its runs.

A verdict that changes between PASS and SKIPPED makes no record due: only the last verdict of the check shows it, and
the next run corrects it. Making a record takes time in proportion to the checks and findings of the node.
"""

from collections.abc import Iterable, Mapping, Set

from muster.model import Run, Verdict
from muster_coordinator.evidence.health import GOOD, CheckEvidence, Evidence
from muster_coordinator.evidence.node import Node
from muster_coordinator.evidence.stored_checks import StoredChecks
from muster_coordinator.model.events import SaveEvidence
from muster_coordinator.model.evidence_record import CheckStanding, EvidenceRecord
from muster_coordinator.model.nodes import NodeFinding

_ALTERNATING = frozenset({Verdict.PASS, Verdict.SKIPPED})
"""The verdicts between which a healthy check changes all the time."""


def evidence_of(record: EvidenceRecord, convictions: Iterable[NodeFinding]) -> Evidence:
    """The evidence that was stored, and the convictions, which are in the record of the node."""
    checks = {name: _check_of(standing, record.findings.get(name, ())) for name, standing in record.standings.items()}
    return Evidence(
        checks=checks,
        verdicts={**record.verdicts},
        convictions={finding.check: finding for finding in convictions},
        comparisons={**record.comparisons},
    )


def _check_of(standing: CheckStanding, findings: tuple[NodeFinding, ...]) -> CheckEvidence:
    return GOOD if standing is CheckStanding.GOOD and not findings else CheckEvidence(standing, findings)


def record_of(node: str, evidence: Evidence, stored_checks: Iterable[str]) -> EvidenceRecord:
    """What is stored of the evidence about a node with stored runs of these checks."""
    return EvidenceRecord(
        node=node,
        standings={name: check.standing for name, check in evidence.checks.items()},
        findings={name: check.findings for name, check in evidence.checks.items() if check.findings},
        verdicts=evidence.verdicts,
        comparisons=evidence.comparisons,
        others=tuple(name for name in sorted(stored_checks) if name not in evidence.verdicts),
    )


class DueRecords:
    """The nodes whose evidence has changed since it was stored, and the checks of all nodes with stored runs."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.stored_checks = StoredChecks()
        self._nodes = nodes
        self._due: set[str] = set()

    def restore(self, stored: Iterable[EvidenceRecord]) -> set[str]:
        """Restores the stored evidence. Returns the names of its nodes."""
        names = set()
        for record in stored:
            names.add(record.node)
            self.stored_checks.restore(record.node, (*record.verdicts, *record.others))
            if (node := self._nodes.get(record.node)) is not None:
                node.evidence = evidence_of(record, node.evidence.convictions.values())
        return names

    def note_rebuilt(self, due: Set[str], runs: Iterable[Run]) -> None:
        """Notes nodes whose evidence was rebuilt from these runs."""
        self._due |= due
        for run in runs:
            self.stored_checks.restore(run.node, (run.check,))

    def note(self, node: str) -> None:
        """Notes that the evidence about a node has changed."""
        self._due.add(node)

    def note_verdicts(self, node: str, before: Verdict | None, after: Verdict | None) -> None:
        """Notes the last verdict of a check before and after a run that changed nothing else."""
        if before is not after and not {before, after} <= _ALTERNATING:
            self._due.add(node)

    def erase(self, node: str) -> None:
        """Notes that nothing about a node is kept any more."""
        self.stored_checks.forget(node)
        self._due.discard(node)

    def take(self) -> list[SaveEvidence]:
        """The commands that store what has changed since the last call; little of a node that has left."""
        due, self._due = self._due | self.stored_checks.take_changed(), set()
        return [SaveEvidence(self._record(name)) for name in sorted(due)]

    def _record(self, name: str) -> EvidenceRecord:
        node = self._nodes.get(name)
        return record_of(name, Evidence() if node is None else node.evidence, self.stored_checks.of(name))
