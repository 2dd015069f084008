"""Checks requests for runs and sweeps, and writes the order for a run. Refused says what would be valid."""

from collections.abc import Mapping

from muster.check import Scope
from muster.errors import Refused, unknown
from muster.model import format_instant
from muster.params_schema import require_fit
from muster.wire.messages import RunCheck
from muster_coordinator.evidence.node import Node
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.events import FleetCommand, RunRequested
from muster_coordinator.model.orders import RUN_TTL_S, Orders
from muster_coordinator.model.sweep_records import SweepRequest


def check_run(request: RunRequested, nodes: Mapping[str, Node]) -> None:
    """Raises Refused for a run that the node cannot do now."""
    node = known(request.node, nodes)
    if not node.online:
        raise Refused(f"node {node.name!r} is lost: last heard at {format_instant(node.last_seen)}")
    if (check := node.checks.get(request.check)) is None:
        raise Refused(unknown(f"check of node {node.name!r}:", request.check, node.checks))
    if check.scope is Scope.GROUP:
        raise Refused(f"check {check.name!r} is run by groups: start a sweep, with strategy single for one node alone")
    require_fit(check.name, check.params, request.params)


def order_run(event: RunRequested, registry: NodeRegistry, orders: Orders, now: float) -> list[FleetCommand]:
    """The order for a requested run. Raises Refused if node, check or parameters are not valid."""
    check_run(event, registry.nodes)
    content = {"run": event.run, "check": event.check, "params": event.params}
    order = orders.send(event.node, RunCheck, now, ttl_s=RUN_TTL_S, cause=event.run, **content)
    text = f"asked to run {event.check}{f' by {event.by}' if event.by else ''}"
    return [registry.story.tell(event.node, "run_requested", text, event.run, now), order]


def check_limits(request: SweepRequest) -> None:
    """Raises Refused for limits that contradict the request in every fleet."""
    passes, rounds, share = request.passes, request.max_rounds, (request.max_parallel or "").strip()
    if rounds is not None and rounds < passes and request.strategy != Strategy.ROUND_ROBIN:
        raise Refused(f"max_rounds {rounds} contradicts passes {passes}: every pass takes a round")
    if request.strategy == Strategy.WHOLE and share.endswith("%") and share != "100%":
        raise Refused(f"max_parallel {share} contradicts strategy whole, which takes all nodes at once: set it to 100%")


def known(name: str, nodes: Mapping[str, Node]) -> Node:
    """The node of this name. Raises Refused with similar names if there is none."""
    if (node := nodes.get(name)) is None:
        raise Refused(unknown("node", name, nodes))
    return node
