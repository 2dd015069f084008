"""What stands against a node, as its evidence has it."""

from collections.abc import Iterator

from muster.model import Health, Severity
from muster_coordinator.evidence.health import HEALTH, CheckEvidence, Evidence
from muster_coordinator.model.findings import Proof, StandingFinding
from muster_coordinator.model.nodes import NodeFinding


def standing_findings_of(evidence: Evidence) -> tuple[StandingFinding, ...]:
    """Everything that stands against a node, with how well founded it is, convictions first."""
    convicted = (_standing(finding, Proof.LOCALISED) for finding in evidence.convictions.values())
    own = (finding for check in evidence.checks.values() for finding in _own(check))
    compared = (_standing(finding, Proof.COMPARED) for found in evidence.comparisons.values() for finding in found)
    conduct = (_standing(finding, Proof.ONCE) for finding in evidence.conduct.values())
    return (*convicted, *own, *compared, *conduct)


def _own(check: CheckEvidence) -> Iterator[StandingFinding]:
    """What the check has found; a warning never makes it FAILED, and is gone as soon as a run does not warn."""
    confirmed = HEALTH[check.standing] is Health.FAILED
    for finding in check.findings:
        twice = finding.runs > 1 and (confirmed or finding.severity is Severity.WARNING)
        yield _standing(finding, Proof.TWICE if twice else Proof.ONCE)


def _standing(finding: NodeFinding, proof: Proof) -> StandingFinding:
    return StandingFinding(
        proof=proof, **{name: getattr(finding, name) for name in StandingFinding.model_fields if name != "proof"}
    )
