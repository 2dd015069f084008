"""The record of the evidence about a node, as it is stored."""

from enum import StrEnum

from muster.model import Data, Name, Verdict
from muster_coordinator.model.nodes import NodeFinding


class CheckStanding(StrEnum):
    """The result of all runs of one check so far."""

    UNSURE = "UNSURE"
    GOOD = "GOOD"
    DEGRADED = "DEGRADED"
    SUSPECT = "SUSPECT"
    SUSPECT_PASSED = "SUSPECT_PASSED"
    FAILED = "FAILED"
    FAILED_PASSED = "FAILED_PASSED"


class EvidenceRecord(Data):
    """The evidence about a node: all that follows from its runs, so that a restart need not read them.

    By check: the standing, its `findings` if there are any, and the last verdict. PASS may stand for SKIPPED and the
    reverse, because a check may alternate between them all day. `comparisons` are by subject. `others` are checks with
    stored runs that are no evidence.

    The convictions by sweeps are in the record of the node. Misconduct of the agent is not stored: it shows again.
    """

    node: Name
    standings: dict[str, CheckStanding] = {}
    findings: dict[str, tuple[NodeFinding, ...]] = {}
    verdicts: dict[str, Verdict] = {}
    comparisons: dict[str, tuple[NodeFinding, ...]] = {}
    others: tuple[str, ...] = ()
