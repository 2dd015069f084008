"""What ended sweeps know for the next one, and which nodes are no good partners."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import replace

from muster.model import Severity
from muster_coordinator.evidence.node import Node
from muster_coordinator.localize.evidence.prior import MOST_SWEEPS, PastSweep, SweepPrior
from muster_coordinator.localize.likelihood.track_records import MOST_AGE_S
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.sweep_records import SweepRecord

MOST_CHECKS_SWEPT = 8
"""Maximum number of checks whose sweeps are remembered; the one that was swept least recently goes first. Few checks
measure groups."""


FEWEST_COMMON, SHARE_COMMON = 4, 0.25
"""A finding that more nodes than these, and more than this share of the fleet, have says nothing about one of them."""


class SweepHistory:
    """The last ended sweeps of each check, the latest first. Bounded in sweeps and checks."""

    def __init__(self) -> None:
        self._by_check: dict[str, deque[PastSweep]] = {}

    def note(self, record: SweepRecord) -> None:
        """Remembers a sweep that has ended. Sweeps of single nodes say nothing about partners."""
        if record.strategy == Strategy.SINGLE or record.ended_at is None:
            return
        sweeps = self._by_check.pop(record.check, deque[PastSweep](maxlen=MOST_SWEEPS))
        sweeps.appendleft(_past(record, record.ended_at))
        self._by_check[record.check] = sweeps
        if len(self._by_check) > MOST_CHECKS_SWEPT:
            del self._by_check[next(iter(self._by_check))]

    def prior(self, check: str, nodes: Iterable[Node], now: float) -> SweepPrior:
        """What is known before a sweep of these nodes that begins now."""
        members = {node.name: node for node in nodes}
        recent = (sweep for sweep in self._by_check.get(check, ()) if sweep.ended_at > now - MOST_AGE_S)
        return SweepPrior(tuple(_about(members, sweep) for sweep in recent), doubted_nodes(members.values()), now)


def doubted_nodes(nodes: Iterable[Node]) -> frozenset[str]:
    """The nodes with an open finding that few nodes have. A finding that many have says something about the fleet.

    Prevents: every node warns of an old driver. No node would be a partner.
    """
    codes = {node.name: _codes(node) for node in nodes}
    nodes_with = Counter(code for found in codes.values() for code in found)
    common = max(FEWEST_COMMON, SHARE_COMMON * len(codes))
    rare = {code for code, count in nodes_with.items() if count <= common}
    return frozenset(node for node, found in codes.items() if not rare.isdisjoint(found))


def _about(nodes: Mapping[str, Node], sweep: PastSweep) -> PastSweep:
    """The sweep without suspicions of other nodes, and of earlier machines with the name of one of these nodes."""
    known = {
        name: suspicion
        for name, suspicion in sweep.suspicions.items()
        if name in nodes and nodes[name].first_seen < sweep.ended_at
    }
    return replace(sweep, suspicions=known)


def _codes(node: Node) -> frozenset[str]:
    findings = node.evidence.findings
    return frozenset(found.code for found in findings if found.severity in (Severity.WARNING, Severity.ERROR))


def _past(record: SweepRecord, ended_at: float) -> PastSweep:
    """The part of a sweep's record that counts."""
    return PastSweep(
        id=record.id,
        ended_at=ended_at,
        passes=record.least_runs,
        cleared=frozenset(record.cleared_nodes),
        convicted=frozenset(failed.node for failed in record.failed_nodes),
        suspicions={suspicion.node: suspicion for suspicion in record.suspicions},
    )
