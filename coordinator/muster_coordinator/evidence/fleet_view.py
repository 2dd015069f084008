"""The fleet as a whole, for people."""

from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.model.load import CoordinatorLoad
from muster_coordinator.model.nodes import FleetView


def fleet_view(name: str, registry: NodeRegistry, load: CoordinatorLoad, now: float) -> FleetView:
    """The fleet `name` as a whole."""
    counted = registry.counts.tally(now)
    return FleetView(
        name=name,
        nodes=len(registry.nodes),
        health=counted.health,
        service=counted.service,
        lost=counted.lost,
        findings=registry.baselines.findings(),
        load=load.model_copy(update={"waiting_runs": registry.counts.waiting_runs}),
    )
