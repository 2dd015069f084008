"""A picture, as SVG, of the results of pairs of nodes: nodes by nodes, by colour."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from muster.model import Topology, format_instant
from muster.nouns import count
from muster.units import unit_of
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.views.sweeps.amounts import Amounts, amounts_of
from muster_coordinator.views.sweeps.matrix import legend
from muster_coordinator.views.sweeps.matrix.axes import Axes, label
from muster_coordinator.views.sweeps.matrix.colours import colour, step_of
from muster_coordinator.views.sweeps.matrix.pairs import Pair, pairs
from muster_coordinator.views.sweeps.matrix.style import (
    CELL,
    CHARACTER_PX,
    CONVICTED,
    CROSS,
    FONT_PX,
    GAP_PX,
    INK,
    LINE_PX,
    NO_NUMBER,
    NO_PAIR,
    PALE,
    PAPER,
    UNMEASURED,
)
from muster_coordinator.views.sweeps.matrix.svg import element, picture, written
from muster_coordinator.views.sweeps.naming import names

_HEADING_PX = 2 * LINE_PX + GAP_PX


def matrix_picture(record: SweepRecord, places: Mapping[str, Topology]) -> str:
    """The complete record as a matrix of its nodes in topology order; `places` are their known positions.

    A pair has the colour of the median of its groups' results, from 0 to the highest of any pair; pairs that failed are
    crossed out. Groups of more or fewer than two nodes are not in it.
    """
    return written(_Matrix(record, places).drawn())


@dataclass(frozen=True)
class _Matrix:
    record: SweepRecord
    places: Mapping[str, Topology]

    @cached_property
    def axes(self) -> Axes:
        return Axes(self.record.nodes, self.places)

    @cached_property
    def pairs(self) -> list[Pair]:
        return pairs(self.record)

    @cached_property
    def amounts(self) -> Amounts:
        return amounts_of(self.record, self.places)

    @cached_property
    def most(self) -> float:
        """The upper end of the scale; 0 if nothing was measured."""
        return max((pair.reached for pair in self.pairs if pair.reached is not None), default=0.0)

    @cached_property
    def place_of(self) -> Mapping[str, int]:
        return {node: place for place, node in enumerate(self.record.nodes)}

    @property
    def left_px(self) -> float:
        """The left edge of the cells, right of the labels."""
        return self.axes.label_px + 2 * GAP_PX

    @property
    def top_px(self) -> float:
        """The top edge of the cells, below heading and labels."""
        return self.left_px + _HEADING_PX

    @property
    def right_px(self) -> float:
        return self.left_px + self.axes.side_px

    @property
    def bottom_px(self) -> float:
        return self.top_px + self.axes.side_px

    def drawn(self) -> ET.Element:
        beside = max((CHARACTER_PX * len(domain.name) for domain in self.axes.domains()), default=0.0)
        heading = (self._title(), self._subtitle())
        widest = max(self.right_px + beside, legend.WIDTH_PX, *(CHARACTER_PX * len(line) for line in heading))
        height = self.bottom_px + 2 * LINE_PX + legend.HEIGHT_PX
        root = picture(widest + 3 * GAP_PX, height, self._title(), self._description())
        self._draw_cells(root)
        text = element(root, "g", font_family="monospace", font_size=FONT_PX, fill=INK)
        for number, line in enumerate(heading, 1):
            weight = "bold" if number == 1 else "normal"
            element(text, "text", line, x=2 * GAP_PX, y=number * LINE_PX, font_weight=weight)
        self._draw_labels(text)
        self._draw_domains(text)
        below = element(text, "g", transform=f"translate({2 * GAP_PX:g} {self.bottom_px + 2 * LINE_PX:g})")
        legend.draw_legend(below, self.amounts, self.most)
        return root

    def _title(self) -> str:
        return f"Sweep {self.record.id}: what pairs of nodes reached in {self.record.check}"

    def _subtitle(self) -> str:
        """The meaning of the colours, and the time of the measurement."""
        metric, unit = self.record.metric, unit_of(self.record.metric)
        shown = "no metric" if metric is None else f"median {metric}{f' in {unit}' if unit else ''}"
        return f"{shown}, started {format_instant(self.record.created_at)}"

    def _description(self) -> str:
        side = len(self.record.nodes)
        nodes, pairs = count(side, "node"), count(side * (side - 1) // 2, "pair")
        text = f"{nodes} by {nodes}; {len(self.pairs)} of {pairs} ran"
        reached = [pair.reached for pair in self.pairs if pair.reached is not None]
        if reached:
            text += f" and reached {self.amounts.words(min(reached))} to {self.amounts.words(max(reached))}"
        failed = [" with ".join(pair.nodes) for pair in self.pairs if pair.failed]
        return f"{text}; {count(len(failed), 'pair')} failed{': ' if failed else ''}{names(failed)}."

    # Cells

    def _draw_cells(self, root: ET.Element) -> None:
        scale = f"translate({self.left_px:g} {self.top_px:g}) scale({self.axes.cell_px:g})"
        cells, side = element(root, "g", transform=scale, shape_rendering="crispEdges"), len(self.record.nodes)
        element(cells, "rect", width=side, height=side, fill=UNMEASURED)
        element(cells, "path", d="".join(CELL.format(place, place) for place in range(side)), fill=NO_PAIR)
        for fill, those in groupby(sorted(self.pairs, key=self._fill), self._fill):
            self._draw_pairs(element(cells, "g", fill=fill), those)
        lines = element(cells, "g", fill="none", stroke_width=max(1 / self.axes.cell_px, 0.1), pointer_events="none")
        crosses = "".join(self._cells(pair, CROSS) for pair in self.pairs if pair.failed)
        wide = 3 * max(1 / self.axes.cell_px, 0.1)
        element(lines, "path", d=crosses, stroke=PAPER, stroke_width=wide)  # so that a cross shows on any colour
        element(lines, "path", d=crosses, stroke=INK)
        for border in self.axes.borders():
            line = f"M0 {border.place}H{side}M{border.place} 0V{side}"
            element(lines, "path", d=line, stroke=INK if border.of_leaf else PALE)

    def _draw_pairs(self, parent: ET.Element, those: Iterable[Pair]) -> None:
        for pair in those:
            reached = "nothing measured" if pair.reached is None else self.amounts.words(pair.reached)
            runs = f"{count(pair.runs, 'run')}, {pair.failed} failed"
            drawn = element(parent, "path", d=self._cells(pair, CELL))
            element(drawn, "title", f"{' - '.join(pair.nodes)}: {reached} ({runs})")

    def _cells(self, pair: Pair, shape: str) -> str:
        """The shape in both cells of a pair."""
        one, other = (self.place_of[node] for node in pair.nodes)
        return shape.format(one, other) + shape.format(other, one)

    def _fill(self, pair: Pair) -> str:
        return NO_NUMBER if pair.reached is None else colour(step_of(pair.reached, self.most))

    # Text

    def _draw_labels(self, text: ET.Element) -> None:
        failed = frozenset(found.node for found in self.record.failed_nodes)
        for place in self.axes.named(failed):
            node = self.record.nodes[place]
            middle = (place + 0.5) * self.axes.cell_px + FONT_PX / 3  # to the middle of the letters
            x, y = self.left_px + middle, self.top_px + middle
            style = {"fill": CONVICTED, "font_weight": "bold"} if node in failed else {}
            element(text, "text", label(node), x=self.left_px - GAP_PX, y=y, text_anchor="end", **style)
            upwards = f"translate({x:g} {self.top_px - GAP_PX:g}) rotate(-90)"
            element(text, "text", label(node), transform=upwards, **style)

    def _draw_domains(self, text: ET.Element) -> None:
        """Writes names of leaves or racks to the right of the matrix, below the line at which each begins."""
        for domain in self.axes.domains():
            y = self.top_px + domain.first * self.axes.cell_px
            line = f"M{self.right_px:g} {y:g}h{GAP_PX + CHARACTER_PX * len(domain.name):g}"
            element(text, "path", d=line, stroke=INK if domain.is_leaf else PALE)
            element(text, "text", domain.name, x=self.right_px + GAP_PX, y=y + FONT_PX)
