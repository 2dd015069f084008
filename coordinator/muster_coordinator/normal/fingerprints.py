"""Whether devices of the same model compute the same bits with the same software and parameters.

The idea: a majority of devices decides which result is right. A device with another result makes its node a suspect. It
is no proof, because muster does not know everything that determines the bits. If many nodes differ, the cause is
common, and no node is suspected. A node counts with at most the usual number of devices, even if it announces more: see
`shares`.

Example: 199 devices report hash `ab12` and one reports `9f03`. `ab12` has the majority, and the one device has a
finding. If 100 devices report each, no result has the majority, and nobody is suspected.

A run takes time in proportion to its devices. All results are counted again only when the usual number of devices
changes.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Set
from itertools import islice
from typing import NamedTuple

from muster.model import Action, Finding, Severity
from muster_coordinator.model.baselines import FingerprintRecord, FleetFinding, ResultsRecord
from muster_coordinator.normal.normality import LEAST_PEERS, are_enough
from muster_coordinator.normal.readings import DeviceIndex, device_index, device_name
from muster_coordinator.normal.shares import Shares
from muster_coordinator.normal.suspects import FoundByNode, NodeStanding, Suspects


class ComparedResults(NamedTuple):
    """The result of a run: findings that stand against nodes now, and the records to store."""

    held: FoundByNode
    fingerprint: FingerprintRecord | None
    results: tuple[ResultsRecord, ...]


class Fingerprints:
    """The results of one computation, by node and device."""

    def __init__(self, *, id: str, subject: str, check: str, name: str) -> None:
        self.id = id
        self.subject = subject
        self.check = check
        self.devices = 0
        self._name = name
        self._founder = ""
        self._nodes: dict[str, dict[DeviceIndex, str]] = {}
        self._noted: dict[str, float] = {}  # when each node last measured something new or was out of line
        self._alike = 0
        self._shares = Shares()
        self._counting = 0  # devices that count
        self._counts: Counter[str] = Counter()  # how many devices that count have each result
        self._leader = ""  # the most frequent result; exact as soon as one has the majority
        self._suspects = Suspects()

    def restore(self, stored: FingerprintRecord, results: Iterable[ResultsRecord]) -> None:
        """Restores the stored records, before the first result."""
        self._founder = stored.founder
        standings: list[tuple[str, float, NodeStanding]] = []
        for record in sorted(results, key=lambda record: record.at):
            kept = {device_index(name): sys.intern(result) for name, result in record.results.items()}
            self._nodes[record.node] = kept
            self._noted[record.node] = record.at
            self.devices += len(kept)
            self._shares.replace(0, len(kept))
            standings.append((record.node, record.at, NodeStanding(record.out_of_line, record.held)))
        self._suspects.restore(stored.since, standings)
        self._count_again()

    def take(
        self,
        node: str,
        results: Iterable[tuple[DeviceIndex, str]],
        present: Set[DeviceIndex],
        now: float,
        *,
        alike: int,
        founder: str,
    ) -> ComparedResults:
        """Adds the results of one run. Returns the findings that stand against nodes now.

        `present` are the devices of the node, empty when unknown; `alike` nodes have the node's machine type. `founder`
        is the only node that has measured, or empty.
        """
        stored_before, had = self._stored_state, {**self._nodes.get(node, {})}
        self._founder = founder
        held = self._take(node, results, present, now, alike=alike)
        changed = self._suspects.take_changed() & self._nodes.keys()
        if self._nodes[node] != had or self._suspects.standing(node).out_of_line:
            changed.add(node)
            self._noted[node] = now
        record = self.record() if self._stored_state != stored_before else None
        return ComparedResults(held, record, tuple(map(self.results, sorted(changed))))

    def _take(
        self,
        node: str,
        results: Iterable[tuple[DeviceIndex, str]],
        present: Set[DeviceIndex],
        now: float,
        *,
        alike: int,
    ) -> FoundByNode:
        self._alike = alike
        before = self._withdraw(node)
        if present:
            self._drop(node, [device for device in self._nodes.get(node, ()) if device not in {None, *present}])
        kept = self._nodes.setdefault(node, {})
        self.devices -= len(kept)
        kept.update((device, sys.intern(result)) for device, result in results)  # nearly all are the same text
        self.devices += len(kept)
        self._enter(node, before)
        found = tuple(self._differs(device) for device, bits in self._nodes[node].items() if self._is_odd(bits))
        return self._suspects.take(node, found, at=now, nodes=len(self._nodes), shifted=False, now=now)

    def forget(self, node: str) -> None:
        """Forgets a node that has left."""
        before = self._withdraw(node)
        self._drop(node, [*self._nodes.get(node, ())])
        self._enter(node, before)
        self._nodes.pop(node, None)
        self._noted.pop(node, None)
        self._suspects.forget(node)

    def release(self) -> FoundByNode:
        """Withdraws all findings. Returns the nodes, each without findings."""
        return self._suspects.release()

    @property
    def measured(self) -> list[str]:
        """The nodes with results."""
        return [*self._nodes]

    @property
    def nodes(self) -> int:
        """Number of nodes with results."""
        return len(self._nodes)

    @property
    def last_at(self) -> float:
        """When a node last measured something new or was out of line; 0 if none has results."""
        return max(self._noted.values(), default=0.0)

    @property
    def _stored_state(self) -> tuple[object, ...]:
        """What the stored comparison has that changes."""
        return self._suspects.since, self._founder

    def record(self) -> FingerprintRecord:
        """The comparison as it is stored."""
        return FingerprintRecord(
            id=self.id,
            subject=self.subject,
            check=self.check,
            name=self._name,
            founder=self._founder,
            since=self._suspects.since,
        )

    def results(self, node: str) -> ResultsRecord:
        """The results of a node as they are stored."""
        standing = self._suspects.standing(node)
        return ResultsRecord(
            fingerprint=self.id,
            node=node,
            results={device_name(device): result for device, result in self._nodes[node].items()},
            at=self._noted.get(node, 0.0),
            out_of_line=standing.out_of_line,
            held=standing.held,
        )

    def fleet_finding(self) -> FleetFinding | None:
        """The finding that many nodes differ; None if they do not."""
        if self._suspects.since is None:
            return None
        out, nodes = len(self._suspects.out_of_line), len(self._nodes)
        return FleetFinding(
            code="baseline.disagreement",
            summary=f"{self.check} {self._name}: {out} of {nodes} nodes compute other results than most devices of "
            "their model: look for what they have in common",
            severity=Severity.WARNING,
            evidence={"results": len(self._counts), "out_of_line": out, "nodes": nodes},
            check=self.check,
            baseline=self.id,
            since=self._suspects.since,
        )

    def _drop(self, node: str, devices: Iterable[DeviceIndex]) -> None:
        """Forgets the results of devices."""
        for device in devices:
            del self._nodes[node][device]
            self.devices -= 1

    def _counted(self, node: str) -> list[str]:
        """The results of a node that count."""
        return [*islice(self._nodes.get(node, {}).values(), self._shares.each)]

    def _withdraw(self, node: str) -> int:
        """Takes the results of a node out of the counts; returns how many devices the node has."""
        results = self._counted(node)
        self._counting -= len(results)
        for result in results:
            self._counts[result] -= 1
            if not self._counts[result]:
                del self._counts[result]
        return len(self._nodes.get(node, ()))

    def _enter(self, node: str, before: int) -> None:
        """Counts the results of a node again. `before` is what `_withdraw` returned."""
        if self._shares.replace(before, len(self._nodes.get(node, ()))):
            self._count_again()
            return
        for result in self._counted(node):
            self._counting += 1
            self._counts[result] += 1
            if self._counts[result] > self._counts[self._leader]:
                self._leader = result

    def _count_again(self) -> None:
        """Counts the results of all nodes again, in time proportional to their number."""
        self._counts = Counter(result for node in self._nodes for result in self._counted(node))
        self._counting = self._counts.total()
        self._leader = max(self._counts, key=self._counts.__getitem__, default="")

    def _is_odd(self, result: str) -> bool:
        leading = self._counts[self._leader]
        most = leading >= LEAST_PEERS and 2 * leading > self._counting
        return result != self._leader and most and are_enough(self.nodes, self._alike)

    def _differs(self, device: DeviceIndex) -> Finding:
        alike = self._counts[self._leader]
        return Finding(
            code="baseline.fingerprint",
            summary=f"{self._name}: other bits than {alike} of {self._counting} devices of its model with "
            "the same software: silent corruption suspected",
            severity=Severity.ERROR,
            device=device,
            action=Action.INSPECT_HARDWARE,
            evidence={"name": self._name, "majority": self._leader, "alike": alike, "devices": self._counting},
        )
