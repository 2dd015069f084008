"""A node as pages that show many nodes have it: its place, and the one condition that counts most for an operator."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from muster.model import Health, ServiceState, Severity, Topology
from muster_coordinator.model.nodes import NodeFinding, NodeView
from muster_coordinator.model.quarantine import OUT
from muster_coordinator.topology.selection_term import Candidate
from muster_coordinator.views.quarantine_text import DRY_RUN


class RowCondition(StrEnum):
    """The condition of a node, from the worst to the best.

    SILENT: its heartbeat has stopped. UNKNOWN: no evidence yet, or the coordinator hears no node. OUT: it is healthy,
    and muster has taken it out of service. NEW: it is healthy, and not yet accepted.
    """

    FAILED = "failed"
    SUSPECT = "suspect"
    SILENT = "silent"
    DEGRADED = "degraded"
    UNKNOWN = "unknown"
    OUT = "out"
    NEW = "new"
    HEALTHY = "healthy"


WORST_FIRST = tuple(RowCondition)

BAD = frozenset({RowCondition.FAILED, RowCondition.SUSPECT, RowCondition.SILENT, RowCondition.DEGRADED})
"""The conditions of nodes that something is wrong with."""

SELECTIONS = {
    RowCondition.FAILED: "health=FAILED",
    RowCondition.SUSPECT: "health=SUSPECT",
    RowCondition.SILENT: "health=LOST",
    RowCondition.DEGRADED: "health=DEGRADED",
    RowCondition.UNKNOWN: "health=UNKNOWN",
    RowCondition.OUT: "health=HEALTHY service=CORDONED,PROBATION",
    RowCondition.NEW: "health=HEALTHY service=ACCEPTING",
    RowCondition.HEALTHY: "health=HEALTHY",
}
"""By condition, the selection that finds its nodes in the table, and maybe some in a similar one."""

_OF_HEALTH = {
    Health.FAILED: RowCondition.FAILED,
    Health.SUSPECT: RowCondition.SUSPECT,
    Health.DEGRADED: RowCondition.DEGRADED,
    Health.UNKNOWN: RowCondition.UNKNOWN,
}

_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.UNKNOWN)

_PLAIN_SERVICES = frozenset({ServiceState.IN_SERVICE, ServiceState.ACCEPTING})


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRow:
    """One node. `is_away`: it gives no capacity, whatever the reason. `findings` are the worst first.

    `out_since`: since when it has its service state, if muster has taken it out of service. `is_simulated`: it has
    simulated devices.
    """

    name: str
    place: Topology
    health: Health
    service: ServiceState
    condition: RowCondition
    is_away: bool = False
    dry_run: bool = False
    lost: bool = False
    left: bool = False
    last_seen: float | None = None
    out_since: float | None = None
    is_simulated: bool = False
    findings: tuple[NodeFinding, ...] = ()

    @property
    def is_out(self) -> bool:
        return self.service in OUT

    @property
    def is_usable(self) -> bool:
        """Whether it is accepted, gets work, and may be trusted with it."""
        is_faulty = self.health in (Health.FAILED, Health.SUSPECT)
        return not (self.left or self.is_away or is_faulty or self.service is ServiceState.ACCEPTING)

    @property
    def service_text(self) -> str:
        """The service state, with a mark if the node is out in a dry run only."""
        is_pretended = self.dry_run and self.service is not ServiceState.IN_SERVICE
        return f"{self.service}{DRY_RUN if is_pretended else ''}"

    @property
    def state_text(self) -> str:
        """The condition, and the service state where that adds something: `failed, CORDONED (dry run)`."""
        parts = [str(self.condition)]  # `value` takes a hundred times as long
        if self.lost and self.condition is not RowCondition.SILENT:
            parts.append("silent")
        if self.service is not ServiceState.IN_SERVICE:
            parts.append(self.service_text)
        if self.left:
            parts.append("left the fleet")
        return ", ".join(parts)


def needs_view(candidate: Candidate) -> bool:
    """Whether a row needs more than the candidate has: findings, the dry run, or the time when it was heard."""
    is_plain = candidate.health is Health.HEALTHY and not candidate.lost and candidate.service in _PLAIN_SERVICES
    return not is_plain


def row_of_candidate(candidate: Candidate, *, is_away: bool) -> PageRow:
    """The row of a node for which `needs_view` is false: most nodes, and a view of each takes much longer."""
    health, service = _states(candidate)
    return PageRow(
        name=candidate.name,
        place=candidate.topology,
        health=health,
        service=service,
        condition=_condition(health, service, lost=candidate.lost),
        is_away=is_away,
        lost=candidate.lost,
        is_simulated=candidate.is_simulated,
    )


def row_of_view(view: NodeView, *, is_away: bool, out_since: float | None = None) -> PageRow:
    """The row of any node."""
    return PageRow(
        name=view.name,
        place=view.topology,
        health=view.health,
        service=view.service,
        condition=_condition(view.health, view.service, lost=view.lost),
        is_away=is_away,
        dry_run=view.dry_run,
        lost=view.lost,
        left=view.left,
        last_seen=view.last_seen,
        out_since=out_since,
        is_simulated=any(device.simulated for device in view.devices),
        findings=worst_first(view.findings),
    )


def worst_first(findings: tuple[NodeFinding, ...]) -> tuple[NodeFinding, ...]:
    """The findings in the order of their severity."""
    return tuple(sorted(findings, key=lambda finding: _SEVERITIES.index(finding.severity)))


def as_stale(row: PageRow) -> PageRow:
    """The row while the coordinator hears no node: faults stand, and nothing else is known."""
    return replace(row, condition=_stale(row.condition))


def condition_counts(nodes: Iterable[Candidate], *, is_current: bool) -> Mapping[RowCondition, int]:
    """How many of the nodes that have not left have each condition, the worst first.

    While the coordinator hears no node, they are not current, and counted as `as_stale` has them.
    """
    found = (_condition(*_states(node), lost=node.lost) for node in nodes if not node.left)
    counts = Counter(found if is_current else map(_stale, found))
    return {condition: counts[condition] for condition in WORST_FIRST if counts[condition]}


def _stale(condition: RowCondition) -> RowCondition:
    return condition if condition in BAD else RowCondition.UNKNOWN


def _states(candidate: Candidate) -> tuple[Health, ServiceState]:
    return candidate.health or Health.UNKNOWN, candidate.service or ServiceState.ACCEPTING


def _condition(health: Health, service: ServiceState, *, lost: bool) -> RowCondition:
    found = _OF_HEALTH.get(health)
    if found in (RowCondition.FAILED, RowCondition.SUSPECT):
        return found
    if lost:
        return RowCondition.SILENT
    if found is not None:
        return found
    if service in OUT:
        return RowCondition.OUT
    return RowCondition.NEW if service is ServiceState.ACCEPTING else RowCondition.HEALTHY
