"""Convictions of nodes by sweeps: the finding that stands against the node, and the good runs that remove it.

The idea: a persistent fault shows in every run, so one good run shows that it is gone. A fault that comes and goes also
has good runs while it is there, so only several of them do.

Example: a sweep convicts n7, which was bad in three of eight runs. It passes in the sweeps of the next nights, one run
each. Nine nights later the conviction is removed; after `muster sweep start --passes 9`, it is removed at once.
"""

from muster.model import Action, Json, Severity
from muster.nouns import count
from muster_coordinator.model.nodes import NodeFinding
from muster_coordinator.model.sweep_records import FailedNode, SweepRecord

GOOD_RUNS_OF_INTERMITTENT = 9
"""A fault that shows in 30 % of the runs stays hidden in nine of them with probability 0.04; one that shows in half of
the runs, with 0.002."""

GOOD_RUNS_MISSING = "good_runs_missing"
"""The key of their number in the evidence of a conviction."""


def conviction(failed: FailedNode, sweep: SweepRecord, at: float) -> NodeFinding:
    """The finding for a node that a sweep has convicted; the sweep ended `at`."""
    evidence: Json = {"sweep": sweep.id, "confidence": failed.confidence}
    if failed.intermittent:
        evidence[GOOD_RUNS_MISSING] = GOOD_RUNS_OF_INTERMITTENT
    return NodeFinding(
        code=failed.code,
        summary="; ".join(failed.reasons),
        severity=Severity.ERROR,
        action=Action.INSPECT_HARDWARE,
        evidence=evidence,
        check=sweep.check,
        run=sweep.id,
        since=at,
        seen=at,
    )


def after_good_runs(finding: NodeFinding, good_runs: int) -> NodeFinding | None:
    """The conviction after a number of good runs in one sweep; None if they remove it."""
    missing = _good_runs_missing(finding) - good_runs
    if missing <= 0:
        return None
    evidence: Json = {**finding.evidence, GOOD_RUNS_MISSING: missing}
    return finding.model_copy(update={"evidence": evidence})


def clearance_in_words(check: str, stands: NodeFinding | None) -> str:
    """What a sweep with good runs of the node says about it, if this conviction still stands."""
    if stands is None:
        return f"cleared by a sweep with {check}"
    more = count(_good_runs_missing(stands), "more good run")
    return f"passed a sweep with {check}; its fault comes and goes, so {more} must follow before it is cleared"


def _good_runs_missing(finding: NodeFinding) -> int:
    missing = finding.evidence.get(GOOD_RUNS_MISSING)
    return missing if isinstance(missing, int) else 1
