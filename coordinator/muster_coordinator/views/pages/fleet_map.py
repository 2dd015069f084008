"""The map of the fleet: a drawing for each rack, with a cell for each node, in rows by leaf.

A cell shows the condition of its node by colour and by form, and another form if muster has taken the node out of
service. If at least half of a leaf is bad, its row gets a stripe: then the switch is more likely at fault than each of
the nodes.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster_coordinator.views.pages.page_row import BAD, PageRow, RowCondition
from muster_coordinator.views.pages.selection_link import selection

PITCH = 14
"""The distance between two cells, in units of the drawing."""

EDGE = 2
"""Around the cells, for stripes and the ring of a cell that has the focus."""

_COLUMNS = ((64, 8), (256, 16))
"""By the number of nodes of a rack up to which it counts, how many cells a row has at most."""

_MOST_COLUMNS = 64
_LEAST_BAD = 2

_MOST_TAB_STOPS = 256
"""In larger fleets only cells of nodes that are not healthy are tab stops. The others are in the table of their rack,
whose link is one."""

_SCALES = ((64, 2.0), (512, 1.25), (2048, 1.0))
"""By the number of nodes up to which it counts, how many pixels a unit of the drawing has. The rest is smaller."""

_LEAST_SCALE = 0.68

_NUMBERS = re.compile(r"(\d+)")

_Leaf = tuple[str | None, str | None]
"""Block and leaf."""


@dataclass(frozen=True, slots=True)
class MapCell:
    """A node: `x` in its row, `label` for people. `symbol` is the condition, and whether the node is out of service."""

    node: str
    x: int
    condition: RowCondition
    is_out: bool
    label: str
    is_tab_stop: bool

    @property
    def symbol(self) -> str:
        return f"{self.condition}{'-out' if self.is_out and self.condition is not RowCondition.OUT else ''}"


@dataclass(frozen=True, slots=True)
class MapRow:
    """A row of cells. `is_striped`: the leaf as a whole is bad."""

    y: int
    leaf: str | None
    is_striped: bool
    cells: tuple[MapCell, ...]


@dataclass(frozen=True, slots=True)
class MapRack:
    """One drawing. `select` finds its nodes in the table; `bad` of its `nodes` are bad."""

    name: str | None
    select: str | None
    nodes: int
    bad: int
    columns: int
    rows: tuple[MapRow, ...]

    @property
    def width(self) -> int:
        return self.columns * PITCH + 2 * EDGE

    @property
    def height(self) -> int:
        return len(self.rows) * PITCH + 2 * EDGE


@dataclass(frozen=True, slots=True)
class MapBlock:
    """The racks of a block; None is the name of all that have none. Nodes without any place are not `is_placed`."""

    name: str | None
    is_placed: bool
    racks: tuple[MapRack, ...]


@dataclass(frozen=True, slots=True)
class BadLeaf:
    """A leaf of which at least half is bad, or that a sweep has convicted (`reason`)."""

    name: str
    block: str | None
    select: str | None
    bad: int
    nodes: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FleetMap:
    """The map, with the number of nodes in each condition."""

    blocks: tuple[MapBlock, ...]
    bad_leaves: tuple[BadLeaf, ...]
    counts: Mapping[RowCondition, int]
    scale: float


def fleet_map(rows: Iterable[PageRow], convicted: Mapping[str, str]) -> FleetMap:
    """The map of these nodes, without those that have left. `convicted` has the leaves that sweeps convict, and why."""
    present = [row for row in rows if not row.left]
    blocks: dict[tuple[bool, str | None], dict[str | None, list[PageRow]]] = {}
    for row in present:
        is_placed = any((row.place.block, row.place.rack, row.place.leaf))
        blocks.setdefault((is_placed, row.place.block), {}).setdefault(row.place.rack, []).append(row)
    leaves = _bad_leaves(present, convicted)
    striped: set[_Leaf] = {(leaf.block, leaf.name) for leaf in leaves}
    with_all_stops = len(present) <= _MOST_TAB_STOPS
    counts = Counter(row.condition for row in present)
    return FleetMap(
        blocks=tuple(
            MapBlock(
                name,
                is_placed,
                tuple(
                    _rack(name, rack, of_rack, striped, with_all_stops)
                    for rack, of_rack in sorted(racks.items(), key=lambda item: _in_order(item[0]))
                ),
            )
            for (is_placed, name), racks in sorted(
                blocks.items(), key=lambda item: (not item[0][0], _in_order(item[0][1]))
            )
        ),
        bad_leaves=leaves,
        counts=counts,
        scale=next((scale for most, scale in _SCALES if len(present) <= most), _LEAST_SCALE),
    )


def _rack(
    block: str | None, name: str | None, nodes: Sequence[PageRow], striped: set[_Leaf], with_all_stops: bool
) -> MapRack:
    by_leaf: defaultdict[str | None, list[PageRow]] = defaultdict(list)
    for row in nodes:
        by_leaf[row.place.leaf].append(row)
    widest = next((columns for most, columns in _COLUMNS if len(nodes) <= most), _MOST_COLUMNS)
    columns = min(widest, max(map(len, by_leaf.values())))
    rows: list[MapRow] = []
    for leaf, of_leaf in sorted(by_leaf.items(), key=lambda item: _in_order(item[0])):
        in_order = sorted(of_leaf, key=lambda row: _in_order(row.name))
        for start in range(0, len(in_order), columns):
            cells = tuple(
                _cell(row, column, with_all_stops) for column, row in enumerate(in_order[start : start + columns])
            )
            rows.append(MapRow(EDGE + PITCH * len(rows), leaf, (block, leaf) in striped, cells))
    bad = sum(row.condition in BAD for row in nodes)
    return MapRack(name, selection(block=block, rack=name), len(nodes), bad, columns, tuple(rows))


def _cell(row: PageRow, column: int, with_all_stops: bool) -> MapCell:
    is_tab_stop = with_all_stops or row.condition is not RowCondition.HEALTHY
    label = f"{row.name}: {row.state_text}"
    return MapCell(row.name, EDGE + PITCH * column, row.condition, row.is_out, label, is_tab_stop)


def _bad_leaves(rows: Iterable[PageRow], convicted: Mapping[str, str]) -> tuple[BadLeaf, ...]:
    nodes: Counter[_Leaf] = Counter()
    bad: Counter[_Leaf] = Counter()
    for row in rows:
        if row.place.leaf is not None:
            key = (row.place.block, row.place.leaf)
            nodes[key] += 1
            bad[key] += row.condition in BAD
    found = (
        BadLeaf(leaf, block, selection(block=block, leaf=leaf), bad[block, leaf], count, convicted.get(leaf, ""))
        for (block, leaf), count in nodes.items()
        if leaf is not None
    )
    wrong = (leaf for leaf in found if leaf.reason or (leaf.bad >= _LEAST_BAD and 2 * leaf.bad >= leaf.nodes))
    return tuple(sorted(wrong, key=lambda leaf: (-leaf.bad, _in_order(leaf.block), _in_order(leaf.name))))


def _in_order(name: str | None) -> tuple[bool, list[tuple[bool, int, str]]]:
    """Sort key in which r2 comes before r10, and what has no name comes last."""
    parts = _NUMBERS.split(name or "")
    return name is None, [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]
