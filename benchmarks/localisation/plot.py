"""The picture of the localisation benchmark, as SVG."""

from collections.abc import Iterator

from benchmarks.localisation.cases import SHARES
from benchmarks.localisation.methods import METHODS, OURS
from benchmarks.localisation.results import Cell
from benchmarks.localisation.summary import USUAL_NOISE, Summaries
from benchmarks.panels import DOWN, LEGEND, TOP, Panel, Scale, document, legend, row

TITLE = "Finding the culprit in a simulated fabric: medians and shares of all seeds"

PARTS = ("rails", "links", "leaf", "path")
BY_PASSES = ("intermittent 1.0%", "intermittent 5.0%", "path")

ROUNDS = Scale((0, 3, 8, 16))
OF_FLOOR = Scale((1, 2, 4, 8, 16), logarithmic=True)
SHARE = Scale((0, 0.5, 1))


def plot(summaries: Summaries) -> str:
    """A row of panels for each quantity at usual noise and in one pass, and one for more passes."""
    by_method, by_passes = [*_by_method(summaries)], _by_passes(summaries)
    tops = [TOP + DOWN * y for y in range(len(by_method))]
    last = tops[-1] + DOWN + LEGEND
    parts = [
        *legend(by_method[0], "over the number of nodes", TOP - LEGEND),
        *(line for top, panels in zip(tops, by_method, strict=True) for line in row(panels, top)),
        *legend(by_passes, "over the number of passes", last - LEGEND),
        *row(by_passes, last),
    ]
    return document(TITLE, len(SHARES), last + DOWN, parts)


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
