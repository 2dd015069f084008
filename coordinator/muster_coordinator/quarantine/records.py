"""All records, with the indexes that follow from them.

No index holds a decision. Each is a function of the records and can be rebuilt from them: the census (how many nodes
are away), the nodes that wait to be cordoned (the worst first), the nodes that share a cause, and when to look at which
node again.
"""

import heapq
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from muster.errors import Refused, unknown
from muster_coordinator.model.quarantine import QuarantineRecord
from muster_coordinator.quarantine.budget import Census

Rank = tuple[int, float, str]
"""Sorts waiting nodes: the most urgent first, then the one for which draining was required first, then by name."""


def rank(record: QuarantineRecord) -> Rank:
    """A node's place among those that wait."""
    decision = record.decision
    urgency = 0 if decision.requirement is None else decision.requirement.urgency
    return -urgency, decision.required_since or 0.0, record.node


class Records:
    """The records by node. `version` grows with every change."""

    def __init__(self) -> None:
        self.by_node: dict[str, QuarantineRecord] = {}
        self.census = Census()
        self.nodes_by_cause: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self.version = 0
        self._waiting: list[Rank] = []
        self._look_at: dict[str, float] = {}
        self._deadlines: list[tuple[float, str]] = []
        self._changed: dict[str, None] = {}

    def known(self, node: str) -> QuarantineRecord:
        """The record of a node by its name; Refused when there is none."""
        if node not in self.by_node:
            raise Refused(unknown("node", node, self.by_node))
        return self.by_node[node]

    def restore(self, records: Iterable[QuarantineRecord]) -> None:
        """Takes over stored records."""
        for record in records:
            self.put(record)
        self._changed.clear()

    def put(self, record: QuarantineRecord) -> QuarantineRecord:
        """Replaces a node's record."""
        before = self.by_node.get(record.node)
        if before is record or before == record:
            return record
        if before is not None:
            self._count(before, -1)
        self._count(record, 1)
        self.by_node[record.node] = record
        self._changed[record.node] = None
        self.version += 1
        return record

    def remove(self, node: str) -> None:
        """Forgets a record."""
        self._count(self.by_node.pop(node), -1)
        self._look_at.pop(node, None)
        self._changed.pop(node, None)
        self.version += 1

    def take_changed(self) -> list[QuarantineRecord]:
        """The records that changed since the last call."""
        nodes, self._changed = self._changed, {}
        return [self.by_node[node] for node in nodes]

    @property
    def waiting(self) -> int:
        """How many nodes wait to be cordoned."""
        return len(self._waiting)

    def in_order(self) -> Iterator[QuarantineRecord]:
        """The nodes that wait to be cordoned, in their order; they may change meanwhile."""
        return (self.by_node[node] for *_, node in tuple(self._waiting))

    def before(self, record: QuarantineRecord) -> Iterator[QuarantineRecord]:
        """The waiting nodes that come before this one."""
        end = bisect_left(self._waiting, rank(record))
        return (self.by_node[node] for *_, node in self._waiting[:end])

    def nodes_with(self, cause: str) -> Mapping[str, float]:
        """The nodes with this cause, and since when each has it."""
        return self.nodes_by_cause.get(cause, {})

    def look_at(self, node: str, moment: float | None) -> None:
        """Schedules a look at a node for this moment, unless there is an earlier one."""
        if moment is not None and moment < self._look_at.get(node, float("inf")):
            self._look_at[node] = moment
            heapq.heappush(self._deadlines, (moment, node))

    @property
    def next_deadline(self) -> float | None:
        """The earliest scheduled look; None when there is none."""
        return self._deadlines[0][0] if self._deadlines else None

    def take_due(self, now: float) -> list[str]:
        """The nodes whose scheduled look is due, by name. A deadline that an earlier one replaced is dropped."""
        due = []
        while self._deadlines and self._deadlines[0][0] <= now:
            moment, node = heapq.heappop(self._deadlines)
            if self._look_at.get(node) == moment:
                del self._look_at[node]
                due.append(node)
        return sorted(due)

    def _count(self, record: QuarantineRecord, by: int) -> None:
        """Counts a record in (1) or out (-1) of every index."""
        self.census.count(record, by)
        decision = record.decision
        if decision.waits_for is not None:
            if by > 0:
                insort(self._waiting, rank(record))
            else:
                del self._waiting[bisect_left(self._waiting, rank(record))]
        if decision.requirement is None or decision.cause_since is None:
            return
        nodes = self.nodes_by_cause[decision.requirement.cause]
        if by > 0:
            nodes[record.node] = decision.cause_since
        else:
            del nodes[record.node]
            if not nodes:
                del self.nodes_by_cause[decision.requirement.cause]
