"""Whether a request can be carried out as it was put. Refused says why not and what would be valid."""

import re
from collections.abc import Iterable, Mapping

import jsonschema
from referencing import Registry
from referencing.exceptions import Unresolvable

from muster.check import CheckInfo, Scope
from muster.errors import Refused, unknown
from muster.model import Json, format_instant
from muster_coordinator.events import RunRequested, SweepRequested
from muster_coordinator.localize.probe import Abilities, Site
from muster_coordinator.node import Node
from muster_coordinator.sweeps.formation import Plan, Strategy
from muster_coordinator.sweeps.group import Task

MIN_NODES = {Strategy.SINGLE: 1, Strategy.PAIRS: 2, Strategy.WHOLE: 2, Strategy.ADAPTIVE: 2}


def check_run(request: RunRequested, nodes: Mapping[str, Node]) -> None:
    """Refuses a run that its node could not do now."""
    node = _known(request.node, nodes)
    if not node.online:
        raise Refused(f"node {node.name!r} is lost: last heard of at {format_instant(node.last_seen)}")
    if (check := node.checks.get(request.check)) is None:
        raise Refused(unknown(f"check of node {node.name!r}:", request.check, node.checks))
    if check.scope is Scope.GROUP:
        raise Refused(f"check {check.name!r} is run by groups: start a sweep, with strategy single for one node alone")
    check_params(check, request.params)


def plan_sweep(request: SweepRequested, nodes: Mapping[str, Node], busy: Mapping[str, str]) -> Plan:
    """The sweep that is asked for; `busy` maps the nodes that take part in another one to its id."""
    if request.strategy not in list(Strategy):
        raise Refused(unknown("strategy", request.strategy, Strategy))
    strategy = Strategy(request.strategy)
    offered = {check for node in nodes.values() for check in node.checks}
    if request.check not in offered:
        raise Refused(unknown("check", request.check, offered))
    members = in_topology_order(_members(request, nodes, busy))
    if len(members) < MIN_NODES[strategy]:
        raise Refused(
            f"strategy {strategy} needs at least {MIN_NODES[strategy]} nodes that are online, free and have the check"
            f" {request.check!r}; there are {len(members)}"
        )
    checks = [node.checks[request.check] for node in members]
    if checks[0].scope is Scope.NODE and strategy is not Strategy.SINGLE:
        raise Refused(f"check {request.check!r} measures one node by itself: its only valid strategy is single")
    check_params(checks[0], request.params)
    task = Task(
        check=request.check,
        params=request.params,
        timeout_s=max(check.timeout_s for check in checks),
        objective=checks[0].objective,
        cause=request.sweep,
    )
    return Plan(
        id=request.sweep,
        strategy=strategy,
        task=task,
        nodes=tuple(node.name for node in members),
        sites=tuple(map(_site, members)),
        abilities=Abilities(alone=all(len(node.inventory.devices) > 1 for node in members), by_rail=False),
    )


def _site(node: Node) -> Site:
    where = node.inventory.topology
    return Site(node.name, where.rack, where.leaf)


def check_params(check: CheckInfo, params: Json) -> None:
    """Refuses parameters that do not fit the schema that the check's node has announced."""
    valid = check.params.get("properties")
    names = list(valid) if isinstance(valid, dict) else []
    for name in params:
        if name not in names:
            raise Refused(unknown(f"parameter of {check.name!r}:", name, names))
    # A registry of its own: a schema from a node shall not make the coordinator fetch anything.
    validator = jsonschema.Draft202012Validator(check.params, registry=Registry())
    try:
        validator.check_schema(check.params)
        error = jsonschema.exceptions.best_match(validator.iter_errors(params))
    except (Unresolvable, jsonschema.exceptions.SchemaError, re.error) as problem:
        raise Refused(f"check {check.name!r}: the node has announced a broken schema: {problem}") from None
    if error is not None:
        raise Refused(f"parameter {error.json_path.removeprefix('$.')!r} of check {check.name!r}: {_why(error)}")


def _why(error: jsonschema.ValidationError) -> str:
    """What is wrong; of several alternatives that a value may fit, why it fits none."""
    return " and ".join(dict.fromkeys(map(_why, error.context or ()))) or error.message


def in_topology_order(nodes: Iterable[Node]) -> list[Node]:
    """Neighbours next to each other: by block, rack, leaf, host and name."""
    return sorted(nodes, key=_place)


def _place(node: Node) -> tuple[str, ...]:
    where = node.inventory.topology
    return (where.block or "", where.rack or "", where.leaf or "", where.host or "", node.name)


def _members(request: SweepRequested, nodes: Mapping[str, Node], busy: Mapping[str, str]) -> list[Node]:
    """Those that were named, Refused when one cannot take part; without names, all that can."""
    if request.nodes is None:
        return [node for node in nodes.values() if _obstacle(node, request.check, busy) is None]
    named = [_known(name, nodes) for name in dict.fromkeys(request.nodes)]
    for node in named:
        if obstacle := _obstacle(node, request.check, busy):
            raise Refused(f"node {node.name!r} {obstacle}")
    return named


def _obstacle(node: Node, check: str, busy: Mapping[str, str]) -> str | None:
    """Why a node cannot take part in a sweep."""
    if not node.online:
        return f"is lost: last heard of at {format_instant(node.last_seen)}"
    if node.name in busy:
        return f"takes part in sweep {busy[node.name]} already"
    if check not in node.checks:
        return f"does not have check {check!r} (it has: {', '.join(sorted(node.checks)) or 'none'})"
    return None


def _known(name: str, nodes: Mapping[str, Node]) -> Node:
    if (node := nodes.get(name)) is None:
        raise Refused(unknown("node", name, nodes))
    return node
