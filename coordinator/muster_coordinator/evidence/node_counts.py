"""Counts of nodes: by health and service state, the lost ones, by machine type.

The idea: each node has one row of what is counted about it, and the counts are numbers of equal rows. When a node
changes, it is counted again: its old row goes, its new one comes. So a change takes constant time, and reading the
counts takes time in proportion to the different rows and the lost nodes, not to all nodes.

Example: 10,000 nodes are healthy and in service, which is one row. One fails: two rows, of 9,999 nodes and of one. A
scrape of the metrics adds up these two.

A node whose heartbeat has stopped is silent before the next tick gives it up. Such nodes are the first of `heartbeats`,
so reading the counts finds them without looking at the others.
"""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from muster.model import Health, ServiceState
from muster_coordinator.evidence.health import present_health
from muster_coordinator.evidence.heartbeats import Heartbeats
from muster_coordinator.evidence.node import Node


@dataclass(frozen=True, slots=True)
class Tally:
    """Numbers of nodes by health, by service state and by both, the `lost` nodes, and findings of comparisons by code.

    Nodes that have left the fleet are not among the lost ones. `waiting_runs` are in the outboxes of all agents, as of
    their last heartbeats.
    """

    health: Counter[Health]
    service: Counter[ServiceState]
    both: Counter[tuple[Health, ServiceState]]
    lost: tuple[str, ...]
    compared: Counter[str]
    waiting_runs: int


class _Row(NamedTuple):
    """What is counted about a node; `compared` are the codes of the findings of comparisons."""

    health: Health
    service: ServiceState
    is_online: bool
    has_left: bool
    compared: tuple[str, ...]
    machine_type: str | None

    def both(self, *, lost: bool) -> tuple[Health, ServiceState]:
        return present_health(self.health, lost=lost), self.service


class NodeCounts:
    """The counts over all nodes that were counted. A node must be counted again after each change."""

    def __init__(self, heartbeats: Heartbeats) -> None:
        self.machine_types: Counter[str | None] = Counter()
        self.waiting_runs = 0
        self._heartbeats = heartbeats
        self._rows: dict[str, _Row] = {}
        self._numbers: Counter[_Row] = Counter()
        self._given_up: set[str] = set()  # the lost nodes that have not left
        self._outboxes: dict[str, int] = {}  # the runs that wait at a node, if any do

    def count(self, node: Node) -> None:
        """Counts a node again, or for the first time."""
        comparisons = node.evidence.comparisons
        codes = tuple(finding.code for findings in comparisons.values() for finding in findings) if comparisons else ()
        row = _Row(node.health, node.service, node.online, node.left, codes, node.inventory.machine_type)
        if row != self._rows.get(node.name):
            self._drop_row(node.name)
            self._add_row(node.name, row)
        self.count_outbox(node)

    def count_outbox(self, node: Node) -> None:
        """Counts the runs that wait at a node again."""
        self.waiting_runs += node.outbox - self._outboxes.pop(node.name, 0)
        if node.outbox:
            self._outboxes[node.name] = node.outbox

    def drop(self, name: str) -> None:
        """Counts a node no longer."""
        self._drop_row(name)
        self.waiting_runs -= self._outboxes.pop(name, 0)

    def tally(self, now: float) -> Tally:
        """The counts at `now`."""
        both: Counter[tuple[Health, ServiceState]] = Counter()
        compared: Counter[str] = Counter()
        for row, number in self._numbers.items():
            both[row.both(lost=not row.is_online)] += number
            for code in row.compared:
                compared[code] += number
        lost = set(self._given_up)
        for name in self._heartbeats.overdue(now):
            row = self._rows[name]
            both[row.both(lost=False)] -= 1
            both[row.both(lost=True)] += 1
            if not row.has_left:
                lost.add(name)
        health: Counter[Health] = Counter()
        service: Counter[ServiceState] = Counter()
        for (of_health, of_service), number in (both := +both).items():
            health[of_health] += number
            service[of_service] += number
        return Tally(health, service, both, tuple(sorted(lost)), compared, self.waiting_runs)

    def _add_row(self, name: str, row: _Row) -> None:
        self._rows[name] = row
        self._numbers[row] += 1
        self.machine_types[row.machine_type] += 1
        if not row.is_online and not row.has_left:
            self._given_up.add(name)

    def _drop_row(self, name: str) -> None:
        row = self._rows.pop(name, None)
        if row is None:
            return
        self._numbers[row] -= 1
        if not self._numbers[row]:
            del self._numbers[row]
        self.machine_types[row.machine_type] -= 1
        if not self.machine_types[row.machine_type]:
            del self.machine_types[row.machine_type]
        self._given_up.discard(name)
