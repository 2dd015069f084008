"""The list of nodes as text: what is wrong comes first, in lines that fit a terminal.

It reads the API's JSON as it is and imports none of the models: they take several times as long to import as the whole
of `muster node list` takes to run.
"""

import textwrap
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from muster.table import table
from muster.terminal import in_one_line

Json = Mapping[str, Any]

_HEADER = ("NODE", "HEALTH", "SERVICE", "SEEN", "DEVICES", "FINDINGS")

_SHRINKABLE = {"DEVICES": 10, "FINDINGS": 12}
"""The columns that may be cut, the least important first, and how much of each is left. Names of nodes never are."""

HEALTH_ORDER = ("FAILED", "SUSPECT", "DEGRADED", "UNKNOWN", "HEALTHY")
SERVICE_ORDER = ("CORDONED", "HELD", "PROBATION", "ACCEPTING", "IN_SERVICE")
SEVERITY_ORDER = ("ERROR", "WARNING", "UNKNOWN", "INFO", "SKIPPED")
"""From what needs attention first to what is as it should be; a test holds them against the models."""

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))

_DRY_RUN_NOTE = "* dry run: no actor has been told"


def node_list(nodes: Iterable[Json], now: float, width: int | None) -> str:
    """A line for each node, the worst first; cut to `width` characters, or as long as they are if that is None."""
    ordered = sorted(nodes, key=_urgency)
    text = table(_HEADER, (_row(node, now) for node in ordered), width=width, shrinkable=_SHRINKABLE)
    return f"{text}\n{_DRY_RUN_NOTE}" if any(node["dry_run"] for node in ordered) else text


def fleet_findings(findings: Iterable[Json], width: int | None) -> str:
    """What is wrong with many nodes at once, one paragraph each."""
    lines = [f"{finding['code']}: {in_one_line(finding['summary'])}" for finding in findings]
    wrapped = lines if width is None else [textwrap.fill(line, width, subsequent_indent="  ") for line in lines]
    return "\n".join(wrapped)


def _urgency(node: Json) -> tuple[bool, int, bool, int, str]:
    """Sorts by health; of equal health a node that is lost comes first, then one that is out of service.

    A lost node counts as UNKNOWN at best, because its health is of a time when it still reported. Nodes that have left
    the fleet come last.
    """
    health = HEALTH_ORDER.index(node["health"])
    if node["lost"]:
        health = min(health, HEALTH_ORDER.index("UNKNOWN"))
    return node["left"], health, not node["lost"], SERVICE_ORDER.index(node["service"]), node["name"]


def _row(node: Json, now: float) -> tuple[str, ...]:
    service = f"{node['service']}{'*' if node['dry_run'] else ''}"
    return node["name"], node["health"], service, seen(node, now), devices(node), _findings(node["findings"]) or "-"


def seen(node: Json, now: float) -> str:
    """How long ago a node was heard, and whether it has left the fleet or is lost."""
    ago = _duration(max(0.0, now - datetime.fromisoformat(node["last_seen"]).timestamp()))
    return f"left {ago}" if node["left"] else f"lost {ago}" if node["lost"] else ago


def _duration(seconds: float) -> str:
    for length, unit in _UNITS:
        if seconds >= 2 * length:  # "90 s" says more than "1 min"
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def devices(node: Json) -> str:
    """How many devices of which model; simulated ones say so."""
    names = [_model(device) for device in node["devices"]]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)) or "none"


def _model(device: Json) -> str:
    model = str(device["model"]).removeprefix("NVIDIA ")
    return f"{model} (simulated)" if device["simulated"] and not model.endswith("(simulated)") else model


def _findings(findings: Iterable[Json]) -> str:
    """The codes, the worst first, each once; an XID with its number."""
    ordered = sorted(findings, key=lambda finding: SEVERITY_ORDER.index(finding["severity"]))
    return ", ".join(dict.fromkeys(_code(finding) for finding in ordered))


def _code(finding: Json) -> str:
    xid = finding["evidence"].get("xid")
    return finding["code"] if xid is None else f"{finding['code']} {xid}"
