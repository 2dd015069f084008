"""Counts of nodes by health and service state. Every scrape of metrics counts up to ten thousand nodes."""

from collections import Counter
from dataclasses import dataclass

from muster.model import Health, ServiceState
from muster_coordinator.evidence.health import present_health
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.model.load import CoordinatorLoad
from muster_coordinator.model.nodes import FleetView


@dataclass(frozen=True, slots=True)
class Tally:
    """Numbers of nodes by health, by service state and by both, the `lost` nodes, and findings of comparisons by code.

    Nodes that have left the fleet are not among the lost ones.
    """

    health: Counter[Health]
    service: Counter[ServiceState]
    both: Counter[tuple[Health, ServiceState]]
    lost: tuple[str, ...]
    compared: Counter[str]


def tally(registry: NodeRegistry, now: float) -> Tally:
    """The counts over the nodes of `registry` at `now`."""
    nodes = registry.nodes.values()
    silent = {node.name for node in nodes if registry.heartbeats.is_lost(node.name, now)}
    compared = (found for node in nodes for findings in node.evidence.comparisons.values() for found in findings)
    health = {node.name: present_health(node.health, lost=node.name in silent) for node in nodes}
    return Tally(
        health=Counter(health.values()),
        service=Counter(node.service for node in nodes),
        both=Counter((health[node.name], node.service) for node in nodes),
        lost=tuple(sorted(node.name for node in nodes if not node.left and node.name in silent)),
        compared=Counter(finding.code for finding in compared),
    )


def fleet_view(name: str, registry: NodeRegistry, load: CoordinatorLoad, now: float) -> FleetView:
    """The fleet `name` as a whole."""
    counted = tally(registry, now)
    return FleetView(
        name=name,
        nodes=len(registry.nodes),
        health=counted.health,
        service=counted.service,
        lost=counted.lost,
        findings=registry.baselines.findings(),
        load=load.model_copy(update={"waiting_runs": sum(node.outbox for node in registry.nodes.values())}),
    )
