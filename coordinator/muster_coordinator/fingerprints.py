"""Whether all devices come to the same result where they must: same model, same software, same parameters.

A result that differs from that of most devices is no proof, because muster does not know everything that decides about
bits; it makes the node a suspect. Many that differ have a common cause, and then it is held against none of them.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Set

from muster.model import Action, Finding, Severity
from muster_coordinator.normality import LEAST_PEERS
from muster_coordinator.readings import Device
from muster_coordinator.records import FleetFinding
from muster_coordinator.suspects import Held, Suspects


class Fingerprints:
    """The results of one computation, by node and device."""

    def __init__(self, id: str, subject: str, check: str, name: str) -> None:
        self.id = id
        self.subject = subject
        self.check = check
        self.devices = 0
        self._name = name
        self._nodes: dict[str, dict[Device, str]] = {}
        self._counts: Counter[str] = Counter()
        self._leader = ""  # the most frequent result; exact as soon as one has the majority
        self._suspects = Suspects()

    def take(self, node: str, results: Iterable[tuple[Device, str]], present: Set[Device], now: float) -> Held:
        """Notes the results of one run; what is held against nodes now.

        `present` are the devices that the node has, none when that is not known.
        """
        if present:
            self._drop(node, [device for device in self._nodes.get(node, ()) if device not in {None, *present}])
        for device, result in results:
            self._note(node, device, result)
        found = tuple(self._differs(device) for device, bits in self._nodes[node].items() if self._is_odd(bits))
        return self._suspects.take(node, found, at=now, nodes=len(self._nodes), shifted=False, now=now)

    def forget(self, node: str) -> None:
        """Does without a node that has left."""
        self._drop(node, [*self._nodes.get(node, ())])
        self._nodes.pop(node, None)
        self._suspects.forget(node)

    def release(self) -> Held:
        """Takes back what is held against anybody."""
        return self._suspects.release()

    def fleet_finding(self) -> FleetFinding | None:
        """That many devices differ, if so."""
        if self._suspects.since is None:
            return None
        out, nodes = len(self._suspects.out_of_line), len(self._nodes)
        return FleetFinding(
            code="baseline.disagreement",
            summary=f"{self.check} {self._name}: {out} of {nodes} nodes come to other results than most devices of "
            "their model: look for what they have in common",
            severity=Severity.WARNING,
            evidence={"results": len(self._counts), "out_of_line": out, "nodes": nodes},
            check=self.check,
            baseline=self.id,
            since=self._suspects.since,
        )

    def _note(self, node: str, device: Device, result: str) -> None:
        results = self._nodes.setdefault(node, {})
        if device in results:
            self._drop(node, [device])
        results[device] = sys.intern(result)  # nearly all are the same
        self.devices += 1
        self._counts[result] += 1
        if self._counts[result] > self._counts[self._leader]:
            self._leader = result

    def _drop(self, node: str, devices: Iterable[Device]) -> None:
        """Forgets the results of devices."""
        for device in devices:
            before = self._nodes[node].pop(device)
            self.devices -= 1
            self._counts[before] -= 1
            if not self._counts[before]:
                del self._counts[before]

    def _is_odd(self, result: str) -> bool:
        alike = self._counts[self._leader]
        return result != self._leader and alike >= LEAST_PEERS and 2 * alike > self.devices

    def _differs(self, device: Device) -> Finding:
        alike = self._counts[self._leader]
        return Finding(
            code="baseline.fingerprint",
            summary=f"{self._name}: other bits than {alike} of {self.devices} devices of its model with "
            "the same software: silent corruption suspected",
            severity=Severity.ERROR,
            device=device,
            action=Action.INSPECT_HARDWARE,
            evidence={"name": self._name, "majority": self._leader, "alike": alike, "devices": self.devices},
        )
