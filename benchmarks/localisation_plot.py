"""The picture of the localisation benchmark: small panels of lines, as SVG."""

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from benchmarks.localisation_cases import SHARES
from benchmarks.localisation_methods import METHODS, OURS
from benchmarks.localisation_results import Cell
from benchmarks.localisation_summary import USUAL_NOISE, Summaries

WIDTH, HEIGHT = 150, 100
"""Of a panel's frame, in units of its own."""

LEFT, TOP, ACROSS, DOWN = 60, 80, 190, 160
"""Where the first frame stands, and how far it is from one to the next."""

LEGEND = 40
"""How far above its panels a legend stands, and how much room it takes."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00")
"""Of lines, in order; people who cannot tell red from green tell them (Okabe and Ito)."""

TITLE = "Finding the culprit in a simulated fabric: medians and shares of all seeds"

PARTS = ("rails", "links", "leaf", "path")
BY_PASSES = ("intermittent 1.0%", "intermittent 5.0%", "path")


class Scale(NamedTuple):
    """The y axis: its ticks, of which the first and the last are its ends."""

    ticks: tuple[float, ...]
    logarithmic: bool = False

    def height_of(self, value: float) -> float:
        """From the top of the frame."""
        low, high, place = (math.log(v) if self.logarithmic else v for v in (self.ticks[0], self.ticks[-1], value))
        return HEIGHT * (1 - (place - low) / (high - low))


ROUNDS = Scale((0, 3, 8, 16))
OF_FLOOR = Scale((1, 2, 4, 8, 16), logarithmic=True)
SHARE = Scale((0, 0.5, 1))


class Panel(NamedTuple):
    """Lines by name over the same places; None where there is no value."""

    title: str
    places: Sequence[str]
    scale: Scale
    lines: dict[str, list[float | None]]


def plot(summaries: Summaries) -> str:
    """A row of panels for each quantity at usual noise and in one pass, and one for more passes."""
    by_method, by_passes = [*_by_method(summaries)], _by_passes(summaries)
    tops = [TOP + DOWN * y for y in range(len(by_method))]
    last = tops[-1] + DOWN + LEGEND
    parts = [
        *_legend(by_method[0], "over the number of nodes", TOP - LEGEND),
        *(line for top, row in zip(tops, by_method, strict=True) for line in _row(row, top)),
        *_legend(by_passes, "over the number of passes", last - LEGEND),
        *_row(by_passes, last),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + ACROSS * len(SHARES)} {last + DOWN}" '
        'font-family="sans-serif" font-size="11" fill="#333">\n'
        '<rect width="100%" height="100%" fill="#fff"/>\n'
        f'<text x="20" y="20" font-size="14">{TITLE}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _by_method(summaries: Summaries) -> Iterator[list[Panel]]:
    """One line for each method, over the sizes of the fleet."""
    shares = [f"nodes {share:.1%}" for share in SHARES]
    yield [_over_nodes(summaries, f"rounds: {case}", case, "rounds", ROUNDS) for case in shares]
    yield [_over_nodes(summaries, f"cost / floor: {case}", case, "of_floor", OF_FLOOR) for case in shares]
    yield [_over_nodes(summaries, f"recall: {case}", case, "recall", SHARE) for case in shares]
    yield [_over_nodes(summaries, f"recall: {case}", case, "recall", SHARE) for case in PARTS]


def _over_nodes(summaries: Summaries, title: str, case: str, field: str, scale: Scale) -> Panel:
    sizes = sorted({cell.nodes for cell in summaries})
    lines = {
        method: [_value(summaries, Cell(size, case, method, USUAL_NOISE, 1), field) for size in sizes]
        for method in METHODS
    }
    return Panel(title, [*map(str, sizes)], scale, lines)


def _by_passes(summaries: Summaries) -> list[Panel]:
    """One line for each size of the fleet, over the passes of our strategy."""
    sizes = sorted({cell.nodes for cell in summaries})
    passes = sorted({cell.passes for cell in summaries})
    return [
        Panel(
            f"recall: {case}",
            [*map(str, passes)],
            SHARE,
            {
                f"{size} nodes": [_value(summaries, Cell(size, case, OURS, USUAL_NOISE, n), "recall") for n in passes]
                for size in sizes
            },
        )
        for case in BY_PASSES
    ]


def _value(summaries: Summaries, cell: Cell, field: str) -> float | None:
    return getattr(summaries[cell], field) if cell in summaries else None


def _legend(panels: Sequence[Panel], what: str, y: int) -> Iterator[str]:
    yield f'<text x="20" y="{y}" font-weight="bold">{escape(what)}</text>'
    for x, (name, colour) in enumerate(zip(panels[0].lines, COLOURS, strict=False)):
        yield f'<path d="M{200 + 120 * x} {y - 4}h20" stroke="{colour}" stroke-width="2"/>'
        yield f'<text x="{225 + 120 * x}" y="{y}">{escape(name)}</text>'


def _row(panels: Sequence[Panel], top: int) -> Iterator[str]:
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
        x = f"{_x(panel, index):.1f}"
        yield f'<text x="{x}" y="{HEIGHT + 16}" font-size="9" text-anchor="middle">{escape(place)}</text>'


def _line(panel: Panel, values: Sequence[float | None], colour: str) -> Iterator[str]:
    points = [(_x(panel, n), panel.scale.height_of(value)) for n, value in enumerate(values) if value is not None]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in points:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>'


def _x(panel: Panel, index: int) -> float:
    return WIDTH * (index + 0.5) / len(panel.places)
