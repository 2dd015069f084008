"""Small panels of lines over a few places, as SVG."""

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 150, 100
"""Of a panel's frame, in units of its own."""

LEFT, TOP, ACROSS, DOWN = 60, 80, 190, 160
"""Where the first frame stands, and how far it is from one to the next."""

LEGEND = 40
"""How far above its panels a legend stands, and how much room it takes."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00")
"""Of lines, in order; people who cannot tell red from green tell them (Okabe and Ito)."""


class Scale(NamedTuple):
    """The y axis: its ticks. The first and the last one are its ends."""

    ticks: tuple[float, ...]
    logarithmic: bool = False

    def height_of(self, value: float) -> float:
        """From the top of the frame."""
        low, high, place = (math.log(v) if self.logarithmic else v for v in (self.ticks[0], self.ticks[-1], value))
        return HEIGHT * (1 - (place - low) / (high - low))


class Panel(NamedTuple):
    """Lines by name over the same places; None where there is no value.

    `at` are the places as shares of the width; without it, the places are at equal distances.
    """

    title: str
    places: Sequence[str]
    scale: Scale
    lines: dict[str, list[float | None]]
    at: Sequence[float] | None = None

    def x_of(self, index: int) -> float:
        """Where a place is, from the left of the frame."""
        return WIDTH * ((index + 0.5) / len(self.places) if self.at is None else self.at[index])


def document(title: str, columns: int, height: int, parts: Iterable[str]) -> str:
    """The whole picture."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + ACROSS * columns} {height}" '
        'font-family="sans-serif" font-size="11" fill="#333">\n'
        '<rect width="100%" height="100%" fill="#fff"/>\n'
        f'<text x="20" y="20" font-size="14">{escape(title)}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def legend(panels: Sequence[Panel], what: str, y: int) -> Iterator[str]:
    """The names of the lines of these panels."""
    yield f'<text x="20" y="{y}" font-weight="bold">{escape(what)}</text>'
    for x, (name, colour) in enumerate(zip(panels[0].lines, COLOURS, strict=False)):
        yield f'<path d="M{200 + 120 * x} {y - 4}h20" stroke="{colour}" stroke-width="2"/>'
        yield f'<text x="{225 + 120 * x}" y="{y}">{escape(name)}</text>'


def row(panels: Sequence[Panel], top: int) -> Iterator[str]:
    """Panels side by side."""
    for x, panel in enumerate(panels):
        yield f'<g transform="translate({LEFT + ACROSS * x} {top})">'
        yield from _frame(panel)
        coloured = zip(panel.lines.values(), COLOURS, strict=False)
        for values, colour in reversed([*coloured]):  # the first is what it is about, and comes on top
            yield from _line(panel, values, colour)
        yield "</g>"


def _frame(panel: Panel) -> Iterator[str]:
    yield f'<text x="0" y="-8">{escape(panel.title)}</text>'
    for tick in panel.scale.ticks:
        y = panel.scale.height_of(tick)
        yield f'<path d="M0 {y:.1f}h{WIDTH}" stroke="#ddd"/>'
        yield f'<text x="-6" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
    for index, place in enumerate(panel.places):
        x = f"{panel.x_of(index):.1f}"
        yield f'<text x="{x}" y="{HEIGHT + 16}" font-size="9" text-anchor="middle">{escape(place)}</text>'


def _line(panel: Panel, values: Sequence[float | None], colour: str) -> Iterator[str]:
    points = [(panel.x_of(n), panel.scale.height_of(value)) for n, value in enumerate(values) if value is not None]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in points:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>'
