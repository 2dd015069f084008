"""The counts of a fleet, counted node by node."""

from collections import Counter

from muster_coordinator.evidence.node_counts import Tally
from muster_coordinator.fleet import Fleet


def recounted(fleet: Fleet, now: float) -> Tally:
    """What `Fleet.tally` has to be."""
    views = [view for name in fleet.names if (view := fleet.node(name, now)) is not None]
    comparisons = [node.evidence.comparisons for node in fleet._registry.nodes.values()]
    found = (finding for by_subject in comparisons for findings in by_subject.values() for finding in findings)
    return Tally(
        health=Counter(view.health for view in views),
        service=Counter(view.service for view in views),
        both=Counter((view.health, view.service) for view in views),
        lost=tuple(view.name for view in views if view.lost and not view.left),
        compared=Counter(finding.code for finding in found),
        waiting_runs=sum(node.outbox for node in fleet._registry.nodes.values()),
    )


def assert_counts(fleet: Fleet, now: float) -> None:
    """All counts that change with the nodes are those of counting again."""
    counts, nodes = fleet._registry.counts, fleet._registry.nodes.values()
    assert fleet.tally(now) == recounted(fleet, now)
    assert counts.machine_types == Counter(node.inventory.machine_type for node in nodes)
    latest = [found for name in fleet.names if (found := fleet.latest_transition(name)) is not None]
    failing = Counter(actor for record in latest for actor in record.failed)
    assert {actor: number for actor, number in fleet.failing.items() if number} == failing
