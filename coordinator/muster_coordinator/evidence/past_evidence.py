"""Past evidence about nodes, rebuilt from stored runs and from the results of sweeps."""

from collections import defaultdict

from muster.model import Health, Name, Run
from muster_coordinator.evidence.health import Evidence
from muster_coordinator.evidence.standing_findings import standing_findings_of
from muster_coordinator.model.nodes import NodeFinding
from muster_coordinator.model.quarantine_events import EvidenceChanged


class PastEvidence:
    """The evidence about each node. It takes events in their order, and returns what changed."""

    def __init__(self) -> None:
        self._by_node: defaultdict[str, Evidence] = defaultdict(Evidence)

    def take_run(self, run: Run) -> EvidenceChanged | None:
        """The changes by a run; None if it changed nothing."""
        return self._changed(run.node) if self._by_node[run.node].add(run) else None

    def convict(self, node: Name, finding: NodeFinding) -> EvidenceChanged:
        """The changes by a conviction of the node in a sweep."""
        self._by_node[node].convict(finding)
        return self._changed(node)

    def clear(self, node: Name, check: Name, good_runs: int) -> EvidenceChanged | None:
        """The changes by a sweep with `check` in which the node had this many good runs; None if nothing changed."""
        return self._changed(node) if self._by_node[node].clear(check, good_runs) else None

    def _changed(self, node: Name) -> EvidenceChanged:
        evidence = self._by_node[node]
        is_fit = evidence.health is Health.HEALTHY
        return EvidenceChanged(node=node, findings=standing_findings_of(evidence), is_fit=is_fit)
