"""Statements of a topology file in any format, and the position of each node that follows from all of them."""

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.hostlist import expand
from muster.model import Topology

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]*")


@dataclass(frozen=True, slots=True)
class Statement:
    """The position of some nodes. `origin` is the place in the file, such as `line 3`."""

    origin: str
    nodes: Sequence[str]
    topology: Topology


def names_in(text: str) -> list[str]:
    """The names of nodes or switches in a list. Raises ValueError with an invalid one."""
    names = expand(text)
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a name: it needs letters, digits and . _ - : @ / + only")
    return names


def places(statements: Iterable[Statement]) -> tuple[dict[str, Topology], list[str]]:
    """The position of each node, and contradictions between statements, one line each."""
    origins: dict[tuple[str, str], tuple[str, str]] = {}
    disputes: dict[tuple[str, ...], list[str]] = {}
    for statement in statements:
        said = {level: place for level, place in statement.topology if place is not None}
        for node, (level, place) in itertools.product(statement.nodes, said.items()):
            first, origin = origins.setdefault((node, level), (place, statement.origin))
            if first != place:
                disputes.setdefault((level, first, origin, place, statement.origin), []).append(node)
    found: dict[str, dict[str, str]] = {}
    for (node, level), (place, _) in origins.items():
        found.setdefault(node, {})[level] = place
    return {node: Topology(**levels) for node, levels in found.items()}, [*map(_dispute, disputes, disputes.values())]


def _dispute(dispute: tuple[str, ...], nodes: Sequence[str]) -> str:
    level, first, origin, second, other_origin = dispute
    who = f"node {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes ({nodes[0]} to {nodes[-1]})"
    return f"{other_origin}: {who} in {level} {second} here, in {level} {first} by {origin}: a node has one {level}"
