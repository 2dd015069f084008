"""Counts of nodes: by health, service state and place, their GPUs and findings, the lost ones, by kind of hardware.

The idea: each node has one row of what is counted about it. The counts are numbers of nodes of the same kind, and of
nodes with the same finding. When a node changes, it is counted again: its old row goes, its new one comes. So a change
takes constant time, and reading the counts takes time in proportion to the racks, the kinds of nodes in them, and the
lost nodes, not to all nodes.

Example: 10,000 nodes in 600 racks are healthy and in service, which is 600 kinds. One fails: its rack has two kinds. A
scrape of the metrics adds up these 601.

A node whose heartbeat has stopped is silent before the next tick gives it up. Such nodes are the first of `heartbeats`,
so reading the counts finds them without looking at the others.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import nsmallest
from typing import NamedTuple, TypeVar

from muster.model import Health, ServiceState
from muster_coordinator.evidence.heartbeats import Heartbeats
from muster_coordinator.evidence.node import Node
from muster_coordinator.evidence.node_tally import NamedNode, NodeKind, Tally, hour_of, lost_gpus, sums_by_kind
from muster_coordinator.model.findings import NUMBERS
from muster_coordinator.model.hardware_kind import HardwareKind
from muster_coordinator.model.nodes import NodeFinding

MOST_NAMED = 200
"""Maximum number of nodes that a tally names: more than a person reads, and few beside 10,000 nodes."""

_WORST_FIRST = (Health.FAILED, Health.SUSPECT, Health.DEGRADED, Health.UNKNOWN, Health.HEALTHY)

CountedT = TypeVar("CountedT")


class _Row(NamedTuple):
    """What is counted about a node; `compared` are the codes of the findings of comparisons."""

    kind: NodeKind
    gpus: int
    compared: tuple[str, ...]
    codes: tuple[str, ...]
    numbers: tuple[tuple[str, int], ...]
    tested_hour: int
    hardware_kind: HardwareKind


class NodeCounts:
    """The counts over all nodes that were counted. A node must be counted again after each change."""

    def __init__(self, heartbeats: Heartbeats) -> None:
        self.hardware_kinds: Counter[HardwareKind] = Counter()
        self.waiting_runs = 0
        self._heartbeats = heartbeats
        self._rows: dict[str, _Row] = {}
        self._kinds: Counter[NodeKind] = Counter()
        self._gpus: Counter[NodeKind] = Counter()
        self._compared: Counter[str] = Counter()
        self._codes: Counter[str] = Counter()
        self._numbers: Counter[tuple[str, int]] = Counter()
        self._tested: Counter[int] = Counter()
        self._given_up: set[str] = set()  # the lost nodes that have not left
        self._named: dict[Health, set[str]] = {health: set() for health in _WORST_FIRST}
        self._outboxes: dict[str, int] = {}  # the runs that wait at a node, if any do

    def count(self, node: Node) -> None:
        """Counts a node again, or for the first time."""
        row = _row_of(node)
        if row != self._rows.get(node.name):
            self._drop_row(node.name)
            self._rows[node.name] = row
            self._count_row(node.name, row, 1)
        self.count_outbox(node)

    def note_tested(self, node: Node, now: float) -> None:
        """Notes that a sweep has cleared or convicted a node that was counted: all nodes of a sweep at once."""
        node.tested_at = now
        row, hour = self._rows[node.name], hour_of(now)
        self._rows[node.name] = row._replace(tested_hour=hour)
        if not node.left:
            _add(self._tested, row.tested_hour, -1)
            _add(self._tested, hour, 1)

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
        kinds, gpus, silent = self._kinds.copy(), self._gpus.copy(), {}
        for name in self._heartbeats.overdue(now):
            kind, number = self._rows[name].kind, self._rows[name].gpus
            as_lost = kind._replace(is_online=False)
            for counter, amount in ((kinds, 1), (gpus, 0 if kind.has_left else number)):
                _add(counter, kind, -amount)
                _add(counter, as_lost, amount)
            if not kind.has_left:
                silent[name] = as_lost
        both, places = sums_by_kind(kinds)
        health: Counter[Health] = Counter()
        service: Counter[ServiceState] = Counter()
        for (of_health, of_service), number in both.items():
            health[of_health] += number
            service[of_service] += number
        named, unnamed = self._worst(silent)
        return Tally(
            health=health,
            service=service,
            both=both,
            lost=tuple(sorted(self._given_up | silent.keys())),
            compared=self._compared.copy(),
            places=places,
            gpus=gpus.total(),
            gpus_lost=lost_gpus(gpus),
            codes=self._codes.copy(),
            numbers=self._numbers.copy(),
            tested=self._tested.copy(),
            named=named,
            unnamed=unnamed,
            waiting_runs=self.waiting_runs,
        )

    def _worst(self, silent: Mapping[str, NodeKind]) -> tuple[tuple[NamedNode, ...], int]:
        """The worst nodes that are to be named, of the same health by name, and how many others there are.

        `silent` are nodes that are lost and have not been given up yet.
        """
        found: list[NamedNode] = []
        total = 0
        for health in _WORST_FIRST:
            names = self._named[health]
            if silent:
                names = (names - silent.keys()) | {name for name, kind in silent.items() if kind.shown_health is health}
            total += len(names)
            worst = nsmallest(MOST_NAMED - len(found), names)
            found += (NamedNode(name, silent.get(name) or self._rows[name].kind) for name in worst)
        return tuple(found), total - len(found)

    def _drop_row(self, name: str) -> None:
        row = self._rows.pop(name, None)
        if row is not None:
            self._count_row(name, row, -1)

    def _count_row(self, name: str, row: _Row, by: int) -> None:
        """Counts a row in (1) or out (-1)."""
        kind = row.kind
        _add(self._kinds, kind, by)
        _add(self.hardware_kinds, row.hardware_kind, by)
        _add_all(self._compared, row.compared, by)
        if kind.has_left:
            return
        _add(self._gpus, kind, by * row.gpus)
        _add_all(self._codes, row.codes, by)
        _add_all(self._numbers, row.numbers, by)
        _add(self._tested, row.tested_hour, by)
        if not kind.is_online:
            _enter(self._given_up, name, by)
        if kind.is_named:
            _enter(self._named[kind.shown_health], name, by)


def _row_of(node: Node) -> _Row:
    evidence, topology = node.evidence, node.topology
    findings = node.findings
    kind = NodeKind(
        health=node.health,
        service=node.service,
        dry_run=node.dry_run,
        is_online=node.online,
        has_left=node.left,
        block=topology.block or "",
        rack=topology.rack or "",
    )
    return _Row(
        kind=kind,
        gpus=len(node.inventory.devices),
        compared=tuple(finding.code for found in evidence.comparisons.values() for finding in found),
        codes=tuple(sorted({finding.code for finding in findings})),
        numbers=tuple(sorted({*_numbers_of(findings)})),
        tested_hour=hour_of(max(node.tested_at, node.first_seen, node.forgotten_at)),
        hardware_kind=node.hardware_kind,
    )


def _numbers_of(findings: Iterable[NodeFinding]) -> Iterator[tuple[str, int]]:
    """The numbers of the driver's errors among these findings."""
    for finding in findings:
        for name in NUMBERS:
            if isinstance(number := finding.evidence.get(name), int):
                yield name, number


def _add(counter: Counter[CountedT], key: CountedT, number: int) -> None:
    """Adds a number; a key with 0 goes."""
    counter[key] += number
    if not counter[key]:
        del counter[key]


def _add_all(counter: Counter[CountedT], keys: Iterable[CountedT], by: int) -> None:
    for key in keys:
        _add(counter, key, by)


def _enter(names: set[str], name: str, by: int) -> None:
    """Puts a name in (1) or takes it out (-1)."""
    if by > 0:
        names.add(name)
    else:
        names.remove(name)
