"""Groups of nodes as text, those with faults first. It reads the API's JSON directly, as `node_list` does."""

from collections.abc import Iterable
from typing import Any

from muster.nouns import count
from muster.table import table
from muster_coordinator.views.node_list import HEALTH_ORDER, MOST_FINE, SERVICE_ORDER, JsonObject

_NEEDED = frozenset(("value", "nodes", "health", "service", "lost"))


def listed_group(answer: Any) -> JsonObject:
    """A group from the API's answer. Raises ValueError if it lacks a field that the list needs."""
    if not isinstance(answer, dict) or not answer.keys() >= _NEEDED:
        raise ValueError("not a group of nodes")
    return answer


def group_list(groups: Iterable[JsonObject], by: str, *, shows_all: bool) -> str:
    """A line for each group, those with the most faulty nodes first; without `shows_all`, many fine ones are counted.

    There is a column for each health and service state that some node has.
    """
    ordered = sorted(groups, key=_urgency)
    fine = [group for group in ordered if _is_fine(group)]
    is_folded = not shows_all and len(fine) > MOST_FINE
    shown = [group for group in ordered if not (is_folded and _is_fine(group))]
    columns = [*(("health", name) for name in HEALTH_ORDER), *(("service", name) for name in SERVICE_ORDER)]
    used = [(kind, name) for kind, name in columns if any(group[kind].get(name) for group in shown)]
    has_lost = any(group["lost"] for group in shown)
    header = [by.upper(), "NODES", *(name for _, name in used), *(["LOST"] if has_lost else [])]
    rows = (
        [
            group["value"] or "-",
            str(group["nodes"]),
            *(str(group[kind].get(name, 0)) for kind, name in used),
            *([str(group["lost"])] if has_lost else []),
        ]
        for group in shown
    )
    lines = [table(header, rows)] if shown else []
    if is_folded:
        nodes = count(sum(group["nodes"] for group in fine), "node")
        lines.append(f"{len(fine)} groups with {nodes} are HEALTHY and IN_SERVICE; --all lists them")
    return "\n".join(lines)


def _is_fine(group: JsonObject) -> bool:
    nodes = group["nodes"]
    return not group["lost"] and group["health"].get("HEALTHY") == nodes == group["service"].get("IN_SERVICE")


def _urgency(group: JsonObject) -> tuple[object, ...]:
    """By the number of failed nodes, then of suspect ones and so on, of lost ones, and of those out of service."""
    faulty = (-group["health"].get(name, 0) for name in HEALTH_ORDER if name != "HEALTHY")
    away = group["service"].get("IN_SERVICE", 0) - group["nodes"]
    return (*faulty, -group["lost"], away, group["value"] or "")
