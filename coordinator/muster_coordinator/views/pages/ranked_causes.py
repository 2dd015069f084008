"""What is wrong in the fleet, by cause: how many nodes have it, and since when."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muster.model import Action, Severity
from muster.transition import Cause
from muster_coordinator.model.findings import cause_label
from muster_coordinator.model.nodes import NodeFinding
from muster_coordinator.model.quarantine import MassEvent
from muster_coordinator.views.pages.bounded import Bounded, bounded
from muster_coordinator.views.pages.gist import gist
from muster_coordinator.views.pages.page_row import SELECTIONS, PageRow, RowCondition

SILENT = "silent"
"""The cause of nodes whose heartbeat has stopped; no check has it as a finding."""

MOST_NODES = 8
MOST_CAUSES = 20

MOST_SELECTION = 500
"""Longest selection that the table takes; a test compares it with `web.requests`."""

_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.UNKNOWN)
_ACTIONS = tuple(Action)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCause:
    """A cause: `label` is an XID or a code, `summary` the gist of the first node's. `action` is the strongest one.

    `select` finds the nodes in the table; None if there are too many for a selection. `is_mass_event`: so many nodes
    have it that draining is frozen.
    """

    label: str
    code: str
    summary: str
    severity: Severity
    action: Action
    nodes: Bounded[str]
    select: str | None
    first_seen: float
    is_mass_event: bool = False

    @property
    def rank(self) -> tuple[bool, int, int, float]:
        return not self.is_mass_event, _SEVERITIES.index(self.severity), -self.nodes.total, self.first_seen


def ranked_causes(rows: Iterable[PageRow], frozen: Iterable[MassEvent]) -> Bounded[RankedCause]:
    """The causes: mass events first, then by severity, number of nodes and age. Nodes that have left do not count."""
    found: dict[str, list[tuple[PageRow, NodeFinding]]] = {}
    silent: list[PageRow] = []
    for row in rows:
        if row.left:
            continue
        if row.condition is RowCondition.SILENT or row.lost:
            silent.append(row)
        for finding in row.findings:
            found.setdefault(Cause.of(finding, finding.check).label, []).append((row, finding))
    mass = {cause_label(event.cause): event for event in frozen}
    mass |= {event.cause: event for event in frozen}
    causes = [_cause(label, pairs, mass) for label, pairs in found.items()]
    if silent:
        causes.append(_silent(silent))
    return bounded(sorted(causes, key=lambda cause: cause.rank), MOST_CAUSES)


def _cause(label: str, pairs: list[tuple[PageRow, NodeFinding]], mass: Mapping[str, MassEvent]) -> RankedCause:
    names = sorted({row.name for row, _ in pairs})
    first = min((finding for _, finding in pairs), key=lambda finding: finding.since)
    return RankedCause(
        label=label,
        code=first.code,
        summary=gist(first.summary),
        severity=min((finding.severity for _, finding in pairs), key=_SEVERITIES.index),
        action=max((finding.action for _, finding in pairs), key=_ACTIONS.index),
        nodes=bounded(names, MOST_NODES),
        select=_selection_of(names),
        first_seen=first.since,
        is_mass_event=label in mass,
    )


def _silent(rows: list[PageRow]) -> RankedCause:
    return RankedCause(
        label=SILENT,
        code=SILENT,
        summary="The heartbeat has stopped: the node, its network or its agent is down",
        severity=Severity.UNKNOWN,
        action=Action.NONE,
        nodes=bounded(sorted(row.name for row in rows), MOST_NODES),
        select=SELECTIONS[RowCondition.SILENT],
        first_seen=min((row.last_seen for row in rows if row.last_seen is not None), default=0.0),
    )


def _selection_of(names: list[str]) -> str | None:
    """The selection of these nodes; None if it is too long."""
    text = ",".join(names)
    return text if len(text) <= MOST_SELECTION else None
