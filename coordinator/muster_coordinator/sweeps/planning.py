"""From a request to the plan of a sweep. Refused says what is wrong and what would be valid."""

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from muster.check import CheckInfo, Scope
from muster.errors import Refused, unknown
from muster.model import Topology, format_instant
from muster.params_schema import require_fit
from muster_coordinator.evidence.definitions import are_alike, different, usual_check
from muster_coordinator.evidence.node import Node
from muster_coordinator.localize.strategies.pairs import Pairing
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.events import SweepRequested
from muster_coordinator.model.probes import CheckAbilities, Site
from muster_coordinator.model.sweep_records import SweepRecord, SweepRequest
from muster_coordinator.sweeps.formation import GroupTask
from muster_coordinator.sweeps.plan import SweepLimits, SweepPlan
from muster_coordinator.sweeps.requests import check_limits, known
from muster_coordinator.topology.selection import parse_selection

START_UP_S = 20.0
"""Seconds from an invitation to the first exchange: taking leases and, for most of the time, importing torch."""

USUAL_RUN_S = 15.0
"""Duration of a run whose check announces none."""


ChoiceT = TypeVar("ChoiceT", bound=StrEnum)


def plan_sweep(event: SweepRequested, nodes: Mapping[str, Node], declared: Mapping[str, Topology]) -> SweepPlan:
    """The plan for a request. `declared` says where the topology file places nodes."""
    request = event.request
    check_limits(request)
    if not nodes:
        raise Refused("there are no nodes yet: start an agent on each with `muster agent`")
    offered = offered_checks(nodes.values())
    if request.check not in offered:
        raise Refused(unknown("check", request.check, offered))
    meant = _meant(request, nodes, declared)
    there = in_topology_order(nodes[name] for name, obstacle in meant.items() if obstacle is None)
    having = (node for node in nodes.values() if request.check in node.checks)
    check = usual_check(request.check, there or having, nodes.values())
    strategy = _strategy(request, check)
    others = _different_nodes(check, there)
    members = [node for node in there if node.name not in others]
    if len(members) < least_nodes(strategy):
        raise Refused(
            f"strategy {strategy} needs at least {least_nodes(strategy)} nodes that are online and have the check"
            f" {request.check!r}; there are {len(members)}"
        )
    if check.scope is Scope.NODE and strategy is not Strategy.SINGLE:
        raise Refused(f"check {request.check!r} measures one node by itself: its only valid strategy is single")
    require_fit(check.name, check.params, request.params)
    absent = {name: obstacle for name, obstacle in meant.items() if obstacle is not None}
    return _plan(event, check, strategy, members, absent | others)


def offered_checks(nodes: Iterable[Node]) -> set[str]:
    """The checks that at least one of the nodes has."""
    announced = {id(node.announced): node.announced for node in nodes}  # most nodes have the same
    return {check for each in announced.values() for check in each.by_name}


def plan_again(record: SweepRecord, nodes: Mapping[str, Node]) -> SweepPlan:
    """The plan of a sweep that an earlier coordinator began, with the nodes in their present state."""
    request = record.asked or SweepRequest(check=record.check, params=record.params)
    members = [known(name, nodes) for name in record.nodes]
    having = [node for node in members if record.check in node.checks]
    if not having:
        raise Refused(f"none of its nodes has check {record.check!r} any more")
    check = usual_check(record.check, having, nodes.values())
    without = {node.name: f"does not have check {record.check!r} any more" for node in members if node not in having}
    asked = SweepRequested(record.id, request, record.origin, record.requested_by)
    absent = {**without, **_different_nodes(check, having), **record.absent}
    return _plan(asked, check, Strategy(record.strategy), members, absent)


def _different_nodes(check: CheckInfo, nodes: Iterable[Node]) -> dict[str, str]:
    """The nodes with another definition of the check, each with the reason why it cannot take part."""
    others = (node.name for node in nodes if not are_alike(node.checks[check.name], check))
    return dict.fromkeys(others, different(check.name))


def _plan(
    event: SweepRequested, check: CheckInfo, strategy: Strategy, members: list[Node], absent: Mapping[str, str]
) -> SweepPlan:
    request = event.request
    abilities = _abilities(members, by_rail=check.by_rail is not None)
    group_s = expected_s(check)
    return SweepPlan(
        id=event.sweep,
        asked=request,
        origin=event.origin,
        requested_by=event.by,
        strategy=strategy,
        pairing=_pairing(request, strategy, abilities),
        passes=request.passes,
        task=GroupTask(
            check=request.check,
            params=request.params,
            timeout_s=check.timeout_s,
            objective=check.objective,
            rail_metric=check.by_rail,
            expected_s=group_s,
            scope=check.scope,
            judged_metric=check.objective if check.objective in check.judged else None,
            cause=event.sweep,
        ),
        nodes=tuple(node.name for node in members),
        sites=tuple(map(_site, members)),
        absent=absent,
        most_ranks={node.name: max(len(node.inventory.devices), 1) for node in members},
        abilities=abilities,
        limits=_limits(request, strategy, len(members), group_s),
        priority=request.priority,
    )


def expected_s(check: CheckInfo) -> float:
    """Expected duration of a group in seconds, before any group has finished."""
    return START_UP_S + (USUAL_RUN_S if check.cost_s is None else check.cost_s)


def _abilities(members: Iterable[Node], *, by_rail: bool) -> CheckAbilities:
    """What the check can measure on these nodes. A run alone, and rails, need several devices in a node.

    The most frequent number of devices counts. Prevents: one node of 32 has one device, and no node is tried alone.
    """
    usual = statistics.mode(len(node.inventory.devices) for node in members)
    return CheckAbilities(alone=usual > 1, by_rail=by_rail and usual > 1)


def _strategy(request: SweepRequest, check: CheckInfo) -> Strategy:
    if request.strategy is not None:
        return _choice(Strategy, "strategy", request.strategy)
    return Strategy.SINGLE if check.scope is Scope.NODE else Strategy.ADAPTIVE


def least_nodes(strategy: Strategy) -> int:
    """The lowest number of nodes that can form a group."""
    return 1 if strategy is Strategy.SINGLE else 2


def _pairing(request: SweepRequest, strategy: Strategy, abilities: CheckAbilities) -> Pairing:
    if request.pairing is None:
        return Pairing.RANDOM
    if strategy is not Strategy.PAIRS:
        raise Refused(f"pairing {request.pairing!r} is for strategy pairs; this sweep's strategy is {strategy}")
    pairing = _choice(Pairing, "pairing", request.pairing)
    if pairing is Pairing.RAIL and not abilities.by_rail:
        raise Refused(
            f"pairing rail needs a check that measures each rail, and two or more devices on most nodes;"
            f" {request.check!r} on these nodes lacks one of them"
        )
    return pairing


def _choice(kind: type[ChoiceT], what: str, name: str) -> ChoiceT:
    if name not in list(kind):
        raise Refused(unknown(what, name, kind))
    return kind(name)


# Limits


def _limits(request: SweepRequest, strategy: Strategy, count: int, run_s: float) -> SweepLimits:
    """The limits as numbers. Raises Refused if no group fits into them. A group takes `run_s` seconds."""
    least = least_nodes(strategy)
    smallest = count if strategy is Strategy.WHOLE else least
    parallel = None if request.max_parallel is None else _parallel(request.max_parallel, count, least)
    if parallel is not None and parallel < least:
        raise Refused(f"max_parallel {request.max_parallel} is too few: {strategy} needs {least} nodes at once")
    if parallel is not None and parallel < smallest:
        raise Refused(f"max_parallel {request.max_parallel} contradicts strategy {strategy}: its groups are larger")
    if request.max_node_s is not None and request.max_node_s < smallest * run_s:
        raise Refused(
            f"max_node_s {request.max_node_s:g} is less than the {smallest * run_s:g} node-seconds that one group of"
            f" {smallest} takes"
        )
    return SweepLimits(nodes=parallel, rounds=request.max_rounds, node_s=request.max_node_s)


def _parallel(text: str, count: int, least: int) -> int:
    """`25%` or `40` as a number of nodes; a share is at least one group."""
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*(%?)\s*", text)
    number = float(match[1]) if match else 0.0
    is_share = match is not None and match[2] == "%"
    if number <= 0 or (is_share and number > 100) or not (is_share or number.is_integer()):
        raise Refused(f"max_parallel {text!r} is neither a number of nodes, such as 40, nor a share, such as 25%")
    return max(int(count * number / 100), least) if is_share else int(number)


# Nodes


def in_topology_order(nodes: Iterable[Node]) -> list[Node]:
    """Neighbours next to each other: by block, rack, leaf, host and name."""
    return sorted(nodes, key=_place)


def _place(node: Node) -> tuple[str, ...]:
    where = node.topology
    return (where.block or "", where.rack or "", where.leaf or "", where.host or "", node.name)


def _site(node: Node) -> Site:
    where, kind = node.topology, str(node.hardware_kind) or None
    places_itself = where.leaf not in (node.declared.leaf, node.scheduled.leaf, node.learned_leaf)
    return Site(node.name, where.rack, where.leaf, kind, len(node.inventory.devices), places_itself)


def _meant(request: SweepRequest, nodes: Mapping[str, Node], declared: Mapping[str, Topology]) -> dict[str, str | None]:
    """The selected nodes, each with the reason why it cannot take part. Raises Refused if a named node cannot."""
    if request.nodes is not None and request.select is not None:
        raise Refused("nodes and select contradict each other: give one of them")
    if request.nodes is not None:
        return _named([known(name, nodes) for name in request.nodes], request.check)
    if request.select is not None:
        return _selected(request.select, request.check, nodes, declared)
    having = (node for node in nodes.values() if request.check in node.checks)
    return {node.name: _obstacle(node, request.check) for node in having}


def _named(nodes: Sequence[Node], check: str) -> dict[str, str | None]:
    for node in nodes:
        if obstacle := _obstacle(node, check):
            raise Refused(f"node {node.name!r} {obstacle}")
    return {node.name: None for node in nodes}


def _selected(
    text: str, check: str, nodes: Mapping[str, Node], declared: Mapping[str, Topology]
) -> dict[str, str | None]:
    selection = parse_selection(text)
    chosen = selection.choose([node.candidate for node in nodes.values()], declared)
    literal = {value for term in selection.terms if term.key == "name" and not term.excludes for value in term.values}
    _named([nodes[name] for name in chosen.nodes if name in literal], check)
    strangers = dict.fromkeys(chosen.never_heard_of, "no agent has reported from there yet")
    return {name: _obstacle(nodes[name], check) for name in chosen.nodes} | strangers


def _obstacle(node: Node, check: str) -> str | None:
    """Why a node cannot take part in a sweep."""
    if not node.online:
        return f"is lost: last heard at {format_instant(node.last_seen)}"
    if check not in node.checks:
        return f"does not have check {check!r} (it has: {', '.join(sorted(node.checks)) or 'none'})"
    return None
