"""The findings that stand against a node, from its evidence."""

from collections.abc import Iterator

from muster.model import Health, Severity
from muster_coordinator.evidence.health import HEALTH, CheckEvidence, Evidence
from muster_coordinator.model.findings import Proof, StandingFinding
from muster_coordinator.model.nodes import NodeFinding

_OF_A_NODE_FINDING = frozenset(StandingFinding.model_fields) & frozenset(NodeFinding.model_fields)


def standing_findings_of(evidence: Evidence) -> tuple[StandingFinding, ...]:
    """All findings that stand against a node, each with its proof, convictions first."""
    convicted = ((finding, Proof.LOCALISED) for finding in evidence.convictions.values())
    own = (founded for check in evidence.checks.values() for founded in _own(check))
    compared = ((finding, Proof.COMPARED) for found in evidence.comparisons.values() for finding in found)
    conduct = ((finding, Proof.ONCE) for finding in evidence.conduct.values())
    return tuple(_standing(*founded) for founded in (*convicted, *own, *compared, *conduct))


def _own(check: CheckEvidence) -> Iterator[tuple[NodeFinding, Proof]]:
    """A finding of the check; a warning never makes it FAILED, and ends as soon as a run does not warn."""
    confirmed = HEALTH[check.standing] is Health.FAILED
    for finding in check.findings:
        twice = finding.runs > 1 and (confirmed or finding.severity is Severity.WARNING)
        yield finding, Proof.TWICE if twice else Proof.ONCE


def _standing(finding: NodeFinding, proof: Proof) -> StandingFinding:
    return StandingFinding(proof=proof, **{name: getattr(finding, name) for name in _OF_A_NODE_FINDING})
