"""The counts of a fleet, counted node by node."""

from collections import Counter

from muster.model import Health
from muster_coordinator.evidence.node import Node
from muster_coordinator.evidence.node_counts import MOST_NAMED
from muster_coordinator.evidence.node_tally import GpuLoss, NamedNode, NodeKind, Tally, hour_of
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.nodes import NodeView

WORST_FIRST = [Health.FAILED, Health.SUSPECT, Health.DEGRADED, Health.UNKNOWN, Health.HEALTHY]


def recounted(fleet: Fleet, now: float) -> Tally:
    """What `Fleet.tally` has to be."""
    nodes = fleet._registry.nodes
    views = [view for name in fleet.names if (view := fleet.node(name, now)) is not None]
    present = [view for view in views if not view.left]
    comparisons = [node.evidence.comparisons for node in nodes.values()]
    found = (finding for by_subject in comparisons for findings in by_subject.values() for finding in findings)
    lost = [(reason, len(view.devices)) for view in present if (reason := _loss(view)) is not None]
    bad = [view for view in present if view.health != "HEALTHY" or view.service not in ("ACCEPTING", "IN_SERVICE")]
    bad.sort(key=lambda view: (WORST_FIRST.index(view.health), view.name))
    times = (max(node.tested_at, node.first_seen, node.forgotten_at) for node in nodes.values() if not node.left)
    return Tally(
        health=Counter(view.health for view in views),
        service=Counter(view.service for view in views),
        both=Counter((view.health, view.service) for view in views),
        lost=tuple(view.name for view in views if view.lost and not view.left),
        compared=Counter(finding.code for finding in found),
        places=Counter((*_place(nodes[view.name]), view.health, view.service) for view in present),
        gpus=sum(len(view.devices) for view in present),
        gpus_lost=Counter(reason for reason, gpus in lost for _ in range(gpus)),
        codes=Counter(code for view in present for code in {finding.code for finding in view.findings}),
        numbers=Counter(xid for view in present for xid in _xids(view)),
        tested=Counter(map(hour_of, times)),
        named=tuple(NamedNode(view.name, _kind(nodes[view.name], view)) for view in bad[:MOST_NAMED]),
        unnamed=max(0, len(bad) - MOST_NAMED),
        waiting_runs=sum(node.outbox for node in nodes.values()),
    )


def _loss(view: NodeView) -> GpuLoss | None:
    if view.service in ("CORDONED", "PROBATION") and not view.dry_run:
        return GpuLoss.DRAINED
    if view.health == "FAILED":
        return GpuLoss.FAILED
    return GpuLoss.LOST if view.lost else None


def _place(node: Node) -> tuple[str, str]:
    return node.topology.block or "", node.topology.rack or ""


def _xids(view: NodeView) -> set[tuple[str, int]]:
    found = ((name, finding.evidence.get(name)) for finding in view.findings for name in ("xid", "sxid"))
    return {(name, number) for name, number in found if isinstance(number, int)}


def _kind(node: Node, view: NodeView) -> NodeKind:
    return NodeKind(node.health, view.service, view.dry_run, not view.lost, view.left, *_place(node))


def assert_counts(fleet: Fleet, now: float) -> None:
    """All counts that change with the nodes are those of counting again."""
    counts, nodes = fleet._registry.counts, fleet._registry.nodes.values()
    assert fleet.tally(now) == recounted(fleet, now)
    assert counts.hardware_kinds == Counter(node.hardware_kind for node in nodes)
    latest = [found for name in fleet.names if (found := fleet.latest_transition(name)) is not None]
    failing = Counter(actor for record in latest for actor in record.failed)
    assert {actor: number for actor, number in fleet.failing.items() if number} == failing
    assert fleet.pending == sum(bool(record.failed) or not record.told for record in latest)
