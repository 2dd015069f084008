"""The list of nodes as text, in lines that fit a terminal; nodes with faults come first.

It reads the API's JSON directly and imports none of the models: their import takes several times as long as the whole
of `muster node list`. A field with a default in the models may be missing, for example in the answer of an older
coordinator.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from muster.table import table
from muster.terminal import in_one_line

JsonObject = Mapping[str, Any]

_HEADER = ("NODE", "HEALTH", "SERVICE", "SEEN", "DEVICES", "FINDINGS")

_SHRINKABLE = {"DEVICES": 10, "FINDINGS": 8, "HEALTH": 8}
"""The columns that may be cut, the least important first, and their minimum widths. Names are never cut."""

_DISPENSABLE = _HEADER.index("DEVICES")
"""The column that is left out if cutting is not enough."""

HEALTH_ORDER = ("FAILED", "SUSPECT", "DEGRADED", "UNKNOWN", "HEALTHY")
SERVICE_ORDER = ("CORDONED", "HELD", "PROBATION", "ACCEPTING", "IN_SERVICE")
SEVERITY_ORDER = ("ERROR", "WARNING", "UNKNOWN", "INFO", "SKIPPED")
"""From nodes that need attention first to healthy ones; a test compares them with the models."""

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))

_NEEDED = frozenset(("name", "health", "lost", "service", "last_seen", "devices", "findings"))

_DRY_RUN_NOTE = "* dry run: nothing was changed in any scheduler"


def listed_node(answer: Any) -> JsonObject:
    """A node from the API's answer. Raises ValueError if it lacks a field that the list needs."""
    if not isinstance(answer, Mapping) or not answer.keys() >= _NEEDED:
        raise ValueError("not a node")
    return answer


def node_list(nodes: Iterable[JsonObject], now: float, width: int | None) -> str:
    """A line for each node, the worst first; cut to `width` characters, or as long as they are if that is None."""
    ordered = sorted(nodes, key=_urgency)
    text = _fitted([_row(node, now) for node in ordered], width)
    return f"{text}\n{_DRY_RUN_NOTE}" if any(node.get("dry_run") for node in ordered) else text


def _fitted(rows: Sequence[tuple[str, ...]], width: int | None) -> str:
    text = table(_HEADER, rows, width=width, shrinkable=_SHRINKABLE)
    if width is None or max(map(len, text.splitlines())) <= width:
        return text
    header, *shorter = ((*row[:_DISPENSABLE], *row[_DISPENSABLE + 1 :]) for row in (_HEADER, *rows))
    kept = {name: least for name, least in _SHRINKABLE.items() if name in header}
    return table(header, shorter, width=width, shrinkable=kept)


def fleet_findings(findings: Iterable[JsonObject], width: int | None) -> str:
    """Findings about many nodes at once, one paragraph each."""
    lines = [f"{finding['code']}: {in_one_line(finding['summary'])}" for finding in findings]
    wrapped = lines if width is None else [textwrap.fill(line, width, subsequent_indent="  ") for line in lines]
    return "\n".join(wrapped)


def _urgency(node: JsonObject) -> tuple[bool, int, bool, int, str]:
    """Sort key: by health; of equal health lost nodes come first, then nodes out of service.

    A lost node counts as UNKNOWN at best, because its health is from the time when it still reported. Nodes that have
    left the fleet come last.
    """
    urgency = HEALTH_ORDER.index(node["health"])
    if node["lost"]:
        urgency = min(urgency, HEALTH_ORDER.index("UNKNOWN"))
    return bool(node.get("left")), urgency, not node["lost"], SERVICE_ORDER.index(node["service"]), node["name"]


def _row(node: JsonObject, now: float) -> tuple[str, ...]:
    service = f"{node['service']}{'*' if node.get('dry_run') else ''}"
    return node["name"], health(node), service, seen(node, now), devices(node), _findings(node["findings"]) or "-"


def health(node: JsonObject) -> str:
    """The health of a node; for a silent node, that it is lost, and its health when it last reported."""
    return f"LOST (was {node['health']})" if node["lost"] else str(node["health"])


def seen(node: JsonObject, now: float) -> str:
    """How long ago a node was heard, and whether it has left the fleet."""
    ago = _duration(max(0.0, now - datetime.fromisoformat(node["last_seen"]).timestamp()))
    return f"left {ago}" if node.get("left") else ago


def _duration(seconds: float) -> str:
    for length, unit in _UNITS:
        if seconds >= 2 * length:  # "90 s" is more precise than "1 min"
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def devices(node: JsonObject) -> str:
    """The number and model of the devices; simulated ones are marked."""
    names = [_model(device) for device in node["devices"]]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)) or "none"


def _model(device: JsonObject) -> str:
    model = str(device["model"]).removeprefix("NVIDIA ")
    return f"{model} (simulated)" if device.get("simulated") and not model.endswith("(simulated)") else model


def _findings(findings: Iterable[JsonObject]) -> str:
    """The codes, the worst first, each once; an XID with its number and its GPU."""
    ordered = sorted(findings, key=lambda finding: SEVERITY_ORDER.index(finding["severity"]))
    return ", ".join(dict.fromkeys(_code(finding) for finding in ordered))


def _code(finding: JsonObject) -> str:
    xid, gpu = finding.get("evidence", {}).get("xid"), finding.get("device")
    if xid is None:
        return str(finding["code"])
    return f"{finding['code']} {xid}" if gpu is None else f"{finding['code']} {xid} GPU {gpu}"
