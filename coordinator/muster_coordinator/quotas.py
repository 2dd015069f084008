"""How much is taken of what a node says: so many runs a second, and so many bytes a day in the database.

A run is taken as long as anything is left, and may go beyond it once. One that is not taken is not acknowledged, so
that an agent that means well keeps it and sends it again later. What changes a node's evidence is written into its
story, its case and the log of decisions as well, with all that stands against it, and counts for that. So does what
changes a node in another way: that it goes and comes back, what it is made of, what its clock says.
"""

from dataclasses import dataclass

from muster_coordinator.finding_size import size_of
from muster_coordinator.node import Node

DAY_S = 86_400.0

RUNS_BURST, RUNS_PER_S = 2_000.0, 20.0
"""A run that changes what is known of its node takes the coordinator about a millisecond, so that one node keeps it
busy for 2 % of the time at most. An agent makes one run in two seconds; 10,000 in its outbox take it 7 minutes."""

BYTES_OF_A_RUN = 2048
"""A larger run counts as several: most have less, and one of 100 KiB with thousands of numbers takes 50 ms."""

FINDINGS_OF_A_RUN, SHOWN_BYTES_OF_A_RUN = 20, 20_000
"""So many findings that stand against a node, and so many bytes of what it is made of, make every change as dear as
another run does: all of it is looked at, and announced with the change to everybody who listens."""

BYTES_OF_A_CHANGE = 1024
"""What is stored for each thing that changes: a step of its node's story, the node, its case, a decision."""


@dataclass(slots=True)
class _Left:
    at: float
    runs: float
    bytes: float


class Quotas:
    """What is left to every node, of `bytes_a_day` and of its runs."""

    def __init__(self, bytes_a_day: float) -> None:
        self._bytes_a_day = bytes_a_day
        self._left: dict[str, _Left] = {}

    def has_room(self, node: str, now: float) -> bool:
        """Whether a report of the node may be taken now."""
        left = self._refilled(node, now)
        return left.runs > 0 and left.bytes > 0

    def charge(self, node: str, *, runs: float = 0.0, stored_bytes: float = 0.0) -> None:
        """Counts what was taken, after `has_room`."""
        left = self._left[node]
        left.runs -= runs
        left.bytes -= stored_bytes

    def charge_changes(self, node: Node, things: int) -> float:
        """Counts so many things that have changed, after `has_room`; the share of that which counts as runs."""
        if not things:
            return 0.0
        findings = node.evidence.findings
        cost = len(findings) / FINDINGS_OF_A_RUN + (node.inventory_bytes + size_of(findings)) / SHOWN_BYTES_OF_A_RUN
        self.charge(node.name, runs=cost, stored_bytes=things * BYTES_OF_A_CHANGE)
        return cost

    def forget(self, node: str) -> None:
        """Remembers nothing of a node that has left."""
        self._left.pop(node, None)

    def _refilled(self, node: str, now: float) -> _Left:
        left = self._left.get(node)
        if left is None:
            left = self._left[node] = _Left(now, RUNS_BURST, self._bytes_a_day)
        passed_s, left.at = max(0.0, now - left.at), now
        left.runs = min(RUNS_BURST, left.runs + passed_s * RUNS_PER_S)
        left.bytes = min(self._bytes_a_day, left.bytes + passed_s * self._bytes_a_day / DAY_S)
        return left
