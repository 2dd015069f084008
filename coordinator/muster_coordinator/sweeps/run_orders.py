"""Orders to run a check of a node now."""

from muster.wire.messages import RunCheck
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.model.events import Command, RunRequested
from muster_coordinator.model.orders import RUN_TTL_S, Orders
from muster_coordinator.sweeps.requests import check_run


def order_run(event: RunRequested, registry: NodeRegistry, orders: Orders, now: float) -> list[Command]:
    """The order for a run that is asked for; Refused when node, check or parameters are not valid."""
    check_run(event, registry.nodes)
    content = {"run": event.run, "check": event.check, "params": event.params}
    order = orders.send(event.node, RunCheck, now, ttl_s=RUN_TTL_S, cause=event.run, **content)
    return [registry.story.tell(event.node, "run_requested", f"asked to run {event.check}", event.run, now), order]
