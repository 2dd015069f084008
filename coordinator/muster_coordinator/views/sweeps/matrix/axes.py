"""The axes of the matrix: the size of cells, the names of nodes, and the borders of racks and leaves."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from muster.model import Topology
from muster_coordinator.views.sweeps.matrix.style import CHARACTER_PX, LINE_PX

_SIDE_PX = 900.0
_LEAST_CELL_PX, _MOST_CELL_PX = 2.0, 36.0

_LONGEST_LABEL = 24


class Border(NamedTuple):
    """Another leaf, or only another rack, begins before the node at `place`."""

    place: int
    of_leaf: bool


class Domain(NamedTuple):
    """Nodes next to each other, from the one at `first` on, at one leaf, or else in one rack."""

    first: int
    name: str
    is_leaf: bool


@dataclass(frozen=True, slots=True)
class Axes:
    """Both axes show `nodes`, which are in topology order; `places` are their known positions."""

    nodes: Sequence[str]
    places: Mapping[str, Topology]

    @property
    def cell_px(self) -> float:
        """The side of a cell."""
        return min(max(_SIDE_PX / max(len(self.nodes), 1), _LEAST_CELL_PX), _MOST_CELL_PX)

    @property
    def side_px(self) -> float:
        return self.cell_px * len(self.nodes)

    @property
    def label_px(self) -> float:
        """The width of the longest label."""
        return CHARACTER_PX * max((len(label(node)) for node in self.nodes), default=0)

    def named(self, first: frozenset[str]) -> list[int]:
        """The indices of nodes with a label: the `first`, then as many of the others as fit."""
        apart = math.ceil(LINE_PX / self.cell_px)
        chosen: set[int] = set()
        before_others = [place for place, node in enumerate(self.nodes) if node in first]
        for place in (*before_others, *range(0, len(self.nodes), apart)):
            if chosen.isdisjoint(range(place - apart + 1, place + apart)):
                chosen.add(place)
        return sorted(chosen)

    def borders(self) -> Iterator[Border]:
        """The places where one leaf or rack ends and another one begins."""
        stands = [self._stands(node) for node in self.nodes]
        for place in range(1, len(stands)):
            before, here = stands[place - 1], stands[place]
            if before.leaf != here.leaf:
                yield Border(place, of_leaf=True)
            elif before.rack != here.rack:
                yield Border(place, of_leaf=False)

    def domains(self) -> Iterator[Domain]:
        """The leaves, or the racks if no leaf is known, that are high enough for a name beside the matrix."""
        first = 0
        for name, members in groupby(self.nodes, self._domain):
            last = first + len(list(members))
            if name and (last - first) * self.cell_px >= LINE_PX:
                yield Domain(first, name, self._stands(self.nodes[first]).leaf is not None)
            first = last

    def _domain(self, node: str) -> str:
        stands = self._stands(node)
        if stands.leaf is not None:
            return label(f"leaf {stands.leaf}")
        return "" if stands.rack is None else label(f"rack {stands.rack}")

    def _stands(self, node: str) -> Topology:
        return self.places.get(node, Topology())


def label(text: str) -> str:
    """The text, cut if it is too long."""
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"
