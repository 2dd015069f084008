"""The fleet's records as text for people: the same words in every command."""

import time
from collections.abc import Iterable

from muster.model import Device, format_instant
from muster.table import table
from muster_coordinator.model.baselines import BaselineView
from muster_coordinator.model.history import HistoryPoint
from muster_coordinator.model.nodes import NodeView
from muster_coordinator.views.quarantine_text import state


def node_table(nodes: Iterable[NodeView]) -> str:
    """A line for every node."""
    return table(("NODE", "HEALTH", "SERVICE", "SEEN", "DEVICES", "FINDINGS"), map(_node_row, nodes))


def _node_row(node: NodeView) -> tuple[str, ...]:
    codes = ", ".join(dict.fromkeys(finding.code for finding in node.findings))
    service = state(node.service, node.dry_run)
    return node.name, node.health, service, seen(node), devices(node), codes or "-"


def history_table(points: Iterable[HistoryPoint]) -> str:
    """A line for every run or hour: what was measured on each device, of several runs with the range."""
    return table(("TIME", "CHECK", "VERDICTS", "VALUES"), map(_history_row, points))


def _history_row(point: HistoryPoint) -> tuple[str, ...]:
    verdicts = [f"{verdict}" if count == 1 else f"{count} x {verdict}" for verdict, count in point.verdicts.items()]
    values = [_history_value(point, name) for name in point.values]
    return format_instant(point.at), point.check, ", ".join(verdicts), "  ".join(values)


def _history_value(point: HistoryPoint, name: str) -> str:
    value = f"{point.values[name]:.4g}"
    if point.least is not None and point.most is not None and point.least[name] != point.most[name]:
        value += f" ({point.least[name]:.4g} to {point.most[name]:.4g})"
    return f"{name}: {value}" if name else value


def baseline_table(baselines: Iterable[BaselineView]) -> str:
    """A line for every baseline."""
    header = ("BASELINE", "CHECK", "METRIC", "NORMAL", "NOW", "DEVICES", "NODES", "OUT OF LINE", "SHIFT")
    return table(header, map(_baseline_row, baselines))


def _baseline_row(it: BaselineView) -> tuple[str, ...]:
    normal = "-" if it.anchor is None else f"{it.anchor.centre:.4g} +- {it.anchor.spread:.2g}"
    now = "-" if it.centre is None else f"{it.centre:.4g}"
    shift = "-" if it.shift is None else f"since {format_instant(it.shift.since)}"
    counts = (str(it.devices), str(it.nodes), str(len(it.out_of_line)))
    return it.id, it.check, it.metric, normal, now, *counts, shift


def seen(node: NodeView) -> str:
    """How long ago a node was heard of, and whether it has left the fleet or is lost."""
    note = " (left)" if node.left else " (lost)" if node.lost else ""
    return f"{max(0.0, time.time() - node.last_seen):.0f} s ago{note}"


def devices(node: NodeView) -> str:
    """How many devices of which model; simulated ones say so."""
    names = [_model(device) for device in node.devices]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)) or "none"


def _model(device: Device) -> str:
    says_so = device.model.endswith("(simulated)")
    return f"{device.model} (simulated)" if device.simulated and not says_so else device.model
