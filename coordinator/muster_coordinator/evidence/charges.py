"""The charges against a node, as its evidence has them."""

from collections.abc import Iterator

from muster.model import Health, Severity
from muster_coordinator.evidence.health import HEALTH, CheckEvidence, Evidence
from muster_coordinator.model.charge import Charge, Proof
from muster_coordinator.model.nodes import NodeFinding


def charges_of(evidence: Evidence) -> tuple[Charge, ...]:
    """Everything that stands against a node, with how well founded it is, convictions first."""
    convicted = (_charge(finding, Proof.LOCALISED) for finding in evidence.convictions.values())
    own = (charge for check in evidence.checks.values() for charge in _own(check))
    compared = (_charge(finding, Proof.COMPARED) for found in evidence.comparisons.values() for finding in found)
    conduct = (_charge(finding, Proof.ONCE) for finding in evidence.conduct.values())
    return (*convicted, *own, *compared, *conduct)


def _own(check: CheckEvidence) -> Iterator[Charge]:
    """What the check has found; a warning never makes it FAILED, and is gone as soon as a run does not warn."""
    confirmed = HEALTH[check.standing] is Health.FAILED
    for finding in check.findings:
        twice = finding.runs > 1 and (confirmed or finding.severity is Severity.WARNING)
        yield _charge(finding, Proof.TWICE if twice else Proof.ONCE)


def _charge(finding: NodeFinding, proof: Proof) -> Charge:
    return Charge(proof=proof, **{name: getattr(finding, name) for name in Charge.model_fields if name != "proof"})
