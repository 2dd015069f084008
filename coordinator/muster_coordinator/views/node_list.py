"""The list of nodes as text, in lines that fit a terminal; nodes with faults come first.

It reads the API's JSON directly and imports none of the models: their import takes several times as long as the whole
of `muster node list`. A node is a `NodeSummary`, or from an older coordinator a `NodeView`, which has each device by
itself. A field with a default in the models may be missing.
"""

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from muster.table import GAP, table
from muster.terminal import in_one_line

JsonObject = Mapping[str, Any]
Columns = Mapping[str, list[str]]
"""The cells of each column, by its header."""

_LEAST_NAME, _LEAST_DEVICES, _LEAST_FINDINGS = 24, 10, 8
"""Minimum widths of columns that are cut. A name of 24 characters has room for the address in the name of a cloud
instance, and for the random end of the name of a Kubernetes node."""

HEALTH_ORDER = ("FAILED", "SUSPECT", "DEGRADED", "UNKNOWN", "HEALTHY")
SERVICE_ORDER = ("CORDONED", "HELD", "PROBATION", "ACCEPTING", "IN_SERVICE")
SEVERITY_ORDER = ("ERROR", "WARNING", "UNKNOWN", "INFO", "SKIPPED")
"""From nodes that need attention first to healthy ones; a test compares them with the models."""

MOST_FINE = 20
"""Fine nodes that a terminal shows one by one."""

EARLY_DAYS = 3
"""As `store.disk_budget` has it, which warns in the log; a test compares them."""

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))

_NEEDED = frozenset(("name", "health", "lost", "service", "last_seen", "devices", "findings"))

_DRY_RUN_NOTE = "* dry run: nothing was changed in any scheduler"


def listed_node(answer: Any) -> JsonObject:
    """A node from the API's answer. Raises ValueError if it lacks a field that the list needs."""
    if not isinstance(answer, Mapping) or not answer.keys() >= _NEEDED:
        raise ValueError("not a node")
    return answer


def node_list(
    nodes: Iterable[JsonObject], now: float, width: int | None, *, is_sorted: bool = False, shows_all: bool = True
) -> str:
    """A line for each node, the worst first; cut to `width` characters, or as long as they are if that is None.

    Nodes that are sorted keep their order. Without `shows_all`, many fine nodes are counted instead.
    """
    ordered = list(nodes) if is_sorted else sorted(nodes, key=_urgency)
    if not shows_all and (fine := sum(map(_is_fine, ordered))) > MOST_FINE:
        ordered = [node for node in ordered if not _is_fine(node)]
        note = f"{fine} nodes are HEALTHY and IN_SERVICE; --all lists them"
        return f"{_lines(ordered, now, width)}\n{note}" if ordered else note
    return _lines(ordered, now, width)


def _is_fine(node: JsonObject) -> bool:
    is_fit = node["health"] == "HEALTHY" and node["service"] == "IN_SERVICE"
    return is_fit and not (node["lost"] or node.get("left") or node["findings"])


def _lines(ordered: Sequence[JsonObject], now: float, width: int | None) -> str:
    columns = _columns(ordered, now)
    if width is not None:
        columns = _fitted(columns, _worst_findings(ordered), width)
    rows = zip(*columns.values(), strict=True)
    text = table(tuple(columns), rows, width=width, shrinkable={"FINDINGS": _LEAST_FINDINGS})
    if width is not None:  # a terminal may be narrower than the least widths together
        text = "\n".join(line[:width] for line in text.splitlines())
    return f"{text}\n{_DRY_RUN_NOTE}" if any(node.get("dry_run") for node in ordered) else text


def _columns(nodes: Sequence[JsonObject], now: float) -> Columns:
    columns = {
        "NODE": [node["name"] for node in nodes],
        "HEALTH": [health(node) for node in nodes],
        "SERVICE": [f"{node['service']}{'*' if node.get('dry_run') else ''}" for node in nodes],
        "SEEN": [seen(node, now) for node in nodes],
        "DEVICES": [devices(node) for node in nodes],
        "FINDINGS": [", ".join(_labels(node)) or "-" for node in nodes],
    }
    return {header: [in_one_line(cell) for cell in cells] for header, cells in columns.items()}


def _worst_findings(nodes: Iterable[JsonObject]) -> list[str]:
    """The least that FINDINGS must show: the worst finding of each node, and that there are more."""
    labels = [[in_one_line(label) for label in _labels(node)] for node in nodes]
    return [f"{found[0]},…" if len(found) > 1 else "".join(found) for found in labels]


def _fitted(columns: Columns, worst: list[str], width: int) -> Columns:
    """The columns after those have given way that say least about what is wrong.

    First DEVICES and the former health of lost nodes make room for all findings; then SEEN and the middle of names for
    the worst ones. FINDINGS is cut last, by `table`.
    """
    if excess := _excess(columns, width):
        least = max(_LEAST_DEVICES, _widest(columns["DEVICES"]) - excess)
        columns = {**columns, "DEVICES": [_cut_end(cell, least) for cell in columns["DEVICES"]]}
    if _excess(columns, width):
        columns = _without(columns, "DEVICES")
    if _excess(columns, width):
        columns = {**columns, "HEALTH": [cell.partition(" ")[0] for cell in columns["HEALTH"]]}
    if _excess({**columns, "FINDINGS": worst}, width):
        columns = _without(columns, "SEEN")
    if excess := _excess({**columns, "FINDINGS": worst}, width):
        least = max(_LEAST_NAME, _widest(columns["NODE"]) - excess)
        columns = {**columns, "NODE": [_cut_middle(name, least) for name in columns["NODE"]]}
    return columns


def _excess(columns: Columns, width: int) -> int:
    """How many characters the lines are too long."""
    widths = [max(map(len, (header, *cells))) for header, cells in columns.items()]
    return max(0, sum(widths) + len(GAP) * (len(widths) - 1) - width)


def _widest(cells: Sequence[str]) -> int:
    return max(map(len, cells), default=0)


def _without(columns: Columns, header: str) -> Columns:
    return {name: cells for name, cells in columns.items() if name != header}


def _cut_end(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _cut_middle(name: str, most: int) -> str:
    """Two thirds of what fits from the beginning and a third from the end, where names of nodes differ."""
    end = most // 3
    return name if len(name) <= most else f"{name[: most - 1 - end]}…{name[-end:]}"


def fleet_findings(findings: Iterable[JsonObject], width: int | None) -> str:
    """Findings about many nodes at once, one paragraph each."""
    lines = [f"{finding['code']}: {in_one_line(finding['summary'])}" for finding in findings]
    wrapped = lines if width is None else [textwrap.fill(line, width, subsequent_indent="  ") for line in lines]
    return "\n".join(wrapped)


def database_warning(fleet: JsonObject, width: int | None) -> str:
    """That the coordinator's database is nearly full; empty if it is not, or an older coordinator does not say."""
    use = fleet.get("database") or {}
    days = use.get("days_left")
    if days is None or days >= EARLY_DAYS:
        return ""
    text = (
        f"database: reaches {use['max_gb']:g} GB in {days:.1f} days; then the oldest detail goes: set store.max_gb "
        "higher, or run checks less often"
    )
    return text if width is None else textwrap.fill(text, width, subsequent_indent="  ")


def load_warning(fleet: JsonObject, width: int | None) -> str:
    """That the coordinator is overloaded; empty if it is not, or an older coordinator does not say."""
    advice = (fleet.get("load") or {}).get("advice")
    if not advice:
        return ""
    text = f"coordinator: overloaded. {advice}"
    return text if width is None else textwrap.fill(text, width, subsequent_indent="  ")


def _urgency(node: JsonObject) -> tuple[bool, int, bool, int, str]:
    """Sort key: by health; of equal health lost nodes come first, then nodes out of service.

    Nodes that have left the fleet come last.
    """
    urgency = HEALTH_ORDER.index(node["health"])
    if node["lost"]:  # for an older coordinator, which serves its last health
        urgency = min(urgency, HEALTH_ORDER.index("UNKNOWN"))
    return bool(node.get("left")), urgency, not node["lost"], SERVICE_ORDER.index(node["service"]), node["name"]


def health(node: JsonObject) -> str:
    """The health of a node; for a silent node, that it is lost, and its health when it last reported."""
    if not node["lost"]:
        return str(node["health"])
    return f"LOST (was {node.get('last_health') or node['health']})"  # an older coordinator has only `health`


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
    counts: Counter[str] = Counter()
    for device in node["devices"]:
        counts[_model(device)] += device.get("count", 1)
    return ", ".join(f"{count} x {name}" for name, count in counts.items()) or "none"


def _model(device: JsonObject) -> str:
    model = str(device["model"]).removeprefix("NVIDIA ")
    return f"{model} (simulated)" if device.get("simulated") and not model.endswith("(simulated)") else model


def _labels(node: JsonObject) -> list[str]:
    """The findings of a node, the worst first, each once with all its GPUs: `XID 79 GPU3`, `gemm.slow GPU0,1`."""
    gpus: dict[tuple[str, bool], dict[str, None]] = {}
    for finding in sorted(node["findings"], key=lambda finding: SEVERITY_ORDER.index(finding["severity"])):
        gpu = finding.get("device")
        indexes = gpus.setdefault((_label(finding), gpu is None), {})
        if gpu is not None:
            indexes[str(gpu)] = None
    return [f"{label} GPU{','.join(indexes)}" if indexes else label for (label, _), indexes in gpus.items()]


def _label(finding: JsonObject) -> str:
    """The number of the driver's error as `muster.transition.Cause` writes it; a test compares them.

    Other findings have their whole code here, because no summary follows that explains it.
    """
    for name in ("xid", "sxid"):
        if isinstance(number := finding.get("evidence", {}).get(name), int):
            return f"{name.upper()} {number}"
    return str(finding["code"])
