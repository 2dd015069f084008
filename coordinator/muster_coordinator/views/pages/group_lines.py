"""The lines of groups in the table of nodes: how many nodes each has by condition, those with the most faults first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.errors import Refused
from muster_coordinator.topology.selection_term import KEYS, LABEL, Candidate
from muster_coordinator.views.node_order import NAME, members_by
from muster_coordinator.views.pages.page_row import WORST_FIRST, RowCondition, condition_counts
from muster_coordinator.views.pages.selection_link import selection

MOST_LABELS = 50
"""Names of labels that the page suggests. A node of Kubernetes has about as many."""


@dataclass(frozen=True, slots=True)
class GroupLine:
    """The nodes that have the same value; None for those that have none.

    `select` finds them among all nodes; None if no selection can. `counts` have the worst condition first and omit
    nodes that have left.
    """

    value: str | None
    select: str | None
    nodes: int
    counts: Mapping[RowCondition, int]

    @property
    def urgency(self) -> tuple[Any, ...]:
        """Sort key: by the number of nodes in the worst condition, then in the next one, and so on."""
        return (*(-self.counts.get(condition, 0) for condition in WORST_FIRST[:-1]), self.value or "")


def group_lines(nodes: Iterable[Candidate], by: str, select: str | None, *, is_current: bool) -> list[GroupLine]:
    """A line for each value that nodes of the selection `select` have for a key; Refused for an unknown key."""
    try:
        groups = members_by(nodes, by)
    except Refused as error:
        raise Refused(f"group: {error}") from None
    lines = (
        GroupLine(
            value=value,
            select=_within(select, by, value),
            nodes=len(members),
            counts=condition_counts(members, is_current=is_current),
        )
        for value, members in groups.items()
    )
    return sorted(lines, key=lambda line: line.urgency)


def _within(select: str | None, by: str, value: str | None) -> str | None:
    term = selection(**{by: value})
    return term if select is None or term is None else f"{select} {term}"


def group_keys(nodes: Iterable[Candidate]) -> tuple[str, ...]:
    """Keys that these nodes can be grouped by: places, models and states, and the first of their labels."""
    labels = sorted({label for node in nodes for label in node.labels})
    return (*(key for key in KEYS if key != NAME), *(f"{LABEL}{label}" for label in labels[:MOST_LABELS]))
