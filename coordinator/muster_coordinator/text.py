"""The fleet's records as text for people: the same words in every command."""

import time
from collections.abc import Iterable

from muster.model import Device, format_instant
from muster.table import table
from muster_coordinator.history import HistoryPoint
from muster_coordinator.records import BaselineView, NodeView
from muster_coordinator.sweep_records import GroupRecord, GroupState, SweepRecord


def node_table(nodes: Iterable[NodeView]) -> str:
    """A line for every node."""
    return table(("NODE", "HEALTH", "SERVICE", "SEEN", "DEVICES", "FINDINGS"), map(_node_row, nodes))


def _node_row(node: NodeView) -> tuple[str, ...]:
    codes = ", ".join(dict.fromkeys(finding.code for finding in node.findings))
    return node.name, node.health, node.service, seen(node), devices(node), codes or "-"


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
    """How long ago a node was heard of, and whether it is lost."""
    return f"{max(0.0, time.time() - node.last_seen):.0f} s ago{' (lost)' if node.lost else ''}"


def devices(node: NodeView) -> str:
    """How many devices of which model; simulated ones say so."""
    names = [_model(device) for device in node.devices]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)) or "none"


def _model(device: Device) -> str:
    says_so = device.model.endswith("(simulated)")
    return f"{device.model} (simulated)" if device.simulated and not says_so else device.model


def sweep_news(sweep: SweepRecord, told: set[str]) -> list[str]:
    """A line for every group that has ended and is not in `told`, which it joins."""
    lines = []
    for it in sweep.rounds:
        news = [group for group in it.groups if group.state is GroupState.ENDED and group.id not in told]
        before = sum(group.id in told for group in it.groups)
        for number, group in enumerate(news, before + 1):
            lines.append(f"round {it.number} ({number} of {len(it.groups)}): {group_line(group)}")
        told.update(group.id for group in news)
    return lines


def sweep_report(sweep: SweepRecord) -> str:
    """What came of a sweep: who failed and why, which links, who is cleared, who is left open."""
    rounds = f"{len(sweep.rounds)} round{'' if len(sweep.rounds) == 1 else 's'}"
    lines = [
        f"sweep {sweep.id} {sweep.state}: {sweep.verdict or 'no verdict yet'} "
        f"({sweep.check}, {sweep.strategy}, {len(sweep.nodes)} nodes, {rounds})"
    ]
    if sweep.reason:
        lines.append(f"  {sweep.reason}")
    for failed in sweep.failed_nodes:
        lines += [f"failed node {failed.node} (confidence {failed.confidence:.2f})", *indented(failed.reasons)]
    for link in sweep.failed_links:
        lines += [f"failed link {' - '.join(link.between)} (confidence {link.confidence:.2f})", *indented(link.reasons)]
    for part in sweep.failed_fabric:
        where = f"leaf {part.leaves[0]}" if len(part.leaves) == 1 else f"path {' - '.join(part.leaves)}"
        lines += [f"failed {where} (confidence {part.confidence:.2f})", *indented(part.reasons)]
    for word, names in (("suspects", sweep.suspects), ("inconclusive", sweep.inconclusive)):
        if names:
            lines.append(f"{word}: {', '.join(names)}")
    lines.append(f"cleared: {len(sweep.cleared_nodes)} of {len(sweep.nodes)} nodes")
    return "\n".join(lines)


def sweep_rounds(sweep: SweepRecord) -> str:
    """Every group of every round."""
    lines = []
    for it in sweep.rounds:
        lines += ["", f"round {it.number}", *indented(map(group_line, it.groups))]
    return "\n".join(lines)


def group_line(group: GroupRecord) -> str:
    """One line: the members in rank order, what came of them, the number they are compared by."""
    outcome = group.verdict or group.ending or group.state
    objective = "" if group.objective is None else f" {group.objective:.4g}"
    blamed = "".join(f"; {blame.node}: {blame.reason} {blame.detail}".rstrip() for blame in group.blamed)
    return f"{' + '.join(group.members)}: {outcome}{objective}{blamed}"


def indented(lines: Iterable[str]) -> list[str]:
    """The lines, two spaces further to the right."""
    return [f"  {line}" for line in lines]
