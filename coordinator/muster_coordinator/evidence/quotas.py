"""Quotas of each node: the number of runs a second, and the number of stored bytes a day.

The coordinator takes a run while the node has any quota left, even if the run is larger than that. It does not
acknowledge a run that it does not take. An honest agent keeps that run and sends it again later. A run that changes a
node's evidence is also written into the node's story and its quarantine record, with all findings that stand against
the node; the node is charged for these bytes, too. It is also charged for its other changes: when it goes and comes
back, when its inventory changes, when its clock turns wrong or right.

Both quotas refill at a constant rate. Example: with 128 MB a day, an empty quota has room again after one second, and
refills by 1.5 kB a second. Each step takes constant time.
"""

from dataclasses import dataclass

from muster.token_bucket import TokenBucket
from muster_coordinator.evidence.node import Node
from muster_coordinator.model.finding_size import size_of

DAY_S = 86_400.0

RUNS_BURST, RUNS_PER_S = 2_000.0, 20.0
"""A run that changes a node's evidence costs the coordinator about 1 ms. 20 runs a second cost 2 % of its time. An
agent makes one run in two seconds. The 10,000 runs of a full outbox take 7 minutes."""

BYTES_OF_A_RUN = 2048
"""A larger run counts as several. Most runs are smaller. One of 100 KiB with thousands of numbers takes 50 ms."""

FINDINGS_OF_A_RUN, SHOWN_BYTES_OF_A_RUN = 20, 20_000
"""Every change of a node checks all its standing findings and announces them, with its inventory, to all listeners. A
change with this many findings, or this many bytes of both, costs as much as another run.
"""

BYTES_OF_A_CHANGE = 1024
"""Bytes charged for each changed thing: a step of the node's story, its record, its case, a decision."""


@dataclass(frozen=True, slots=True)
class _Quota:
    """The remaining quotas of a node."""

    runs: TokenBucket
    stored_bytes: TokenBucket


class Quotas:
    """The remaining quotas of every node. `bytes_a_day` is the quota of stored bytes."""

    def __init__(self, bytes_a_day: float) -> None:
        self._bytes_a_day = bytes_a_day
        self._quotas: dict[str, _Quota] = {}

    def has_room(self, node: str, now: float) -> bool:
        """Whether the coordinator may take a report of the node now."""
        quota = self._quotas.get(node)
        if quota is None:
            stored_bytes = TokenBucket(self._bytes_a_day, self._bytes_a_day / DAY_S)
            quota = self._quotas[node] = _Quota(TokenBucket(RUNS_BURST, RUNS_PER_S), stored_bytes)
        return quota.runs.left(now) > 0 and quota.stored_bytes.left(now) > 0

    def charge(self, node: str, *, runs: float = 0.0, stored_bytes: float = 0.0) -> None:
        """Charges a node for taken runs and bytes; `has_room` must have been called before."""
        quota = self._quotas[node]
        quota.runs.spend(runs)
        quota.stored_bytes.spend(stored_bytes)

    def charge_changes(self, node: Node, things: int) -> float:
        """Charges a node for changed things and returns the cost in runs; `has_room` must have been called before."""
        if not things:
            return 0.0
        findings = node.evidence.findings
        cost = len(findings) / FINDINGS_OF_A_RUN + (node.inventory_bytes + size_of(findings)) / SHOWN_BYTES_OF_A_RUN
        self.charge(node.name, runs=cost, stored_bytes=things * BYTES_OF_A_CHANGE)
        return cost

    def forget(self, node: str) -> None:
        """Forgets a node that has left."""
        self._quotas.pop(node, None)
