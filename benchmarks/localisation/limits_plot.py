"""The picture of what a sweep can find, as SVG, from the figures that `limits` has measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.panels import DOWN, LEGEND, TOP, Panel, Scale, document, legend, row

TITLE = "What a sweep finds: one node falls short in a simulated fleet"

LOSS = Scale((0, 0.2, 0.4, 0.6))
SHARE = Scale((0, 0.5, 1))

SHOWN_LOSSES = (0.15, 0.2, 0.3, 0.5)
"""The losses that have a line of their own over the sizes."""

Figures = Mapping[str, Any]


def plot(figures: Figures) -> str:
    """Three rows of panels: smallest loss over noise and size, share found over sizes, share found day by day."""
    smallest, sizes, days = _smallest(figures), _over_sizes(figures), _day_by_day(figures)
    tops = [TOP, TOP + DOWN + LEGEND, TOP + 2 * (DOWN + LEGEND)]
    parts = [
        *legend(smallest, "smallest loss found", tops[0] - LEGEND),
        *row(smallest, tops[0]),
        *legend(sizes, "share found, by loss", tops[1] - LEGEND),
        *row(sizes, tops[1]),
        *legend(days, "share found, by day", tops[2] - LEGEND),
        *row(days, tops[2]),
    ]
    return document(TITLE, 4, tops[2] + DOWN, parts)


def _smallest(figures: Figures) -> list[Panel]:
    """Over noise, with a line for each number of passes; and over the sizes."""
    found = {(one["nodes"], one["noise"], one["passes"]): one["smallest"] for one in figures["losses"]}
    passes = sorted({of for nodes, _, of in found if nodes == 64})
    noises = sorted({noise for _, noise, _ in found})
    lines = {_passes(n): [found.get((64, noise, n)) for noise in noises] for n in passes}
    sizes = sorted({nodes for nodes, _, _ in found})
    by_size = {_passes(n): [found.get((nodes, 0.02, n)) for nodes in sizes] for n in passes}
    return [
        Panel("over noise, 64 nodes", [f"{noise:.0%}" for noise in noises], LOSS, lines),
        Panel("over nodes, noise 2%", [*map(str, sizes)], LOSS, by_size),
    ]


def _over_sizes(figures: Figures) -> list[Panel]:
    """The share of sweeps that name the node, over the sizes."""
    panels = []
    for passes in (1, 4):
        found = {one["nodes"]: one for one in figures["losses"] if (one["noise"], one["passes"]) == (0.02, passes)}
        lines: dict[str, list[float | None]] = {
            f"loss {loss:.0%}": [_share(figures, found[nodes]["named"], loss) for nodes in sorted(found)]
            for loss in SHOWN_LOSSES
        }
        panels.append(Panel(f"over nodes, {_passes(passes)}", [*map(str, sorted(found))], SHARE, lines))
    return panels


def _share(figures: Figures, named: Sequence[int], loss: float) -> float:
    share: float = named[figures["loss"].index(loss)] / figures["seeds"]
    return share


def _day_by_day(figures: Figures) -> list[Panel]:
    """The share of fleets whose intermittent fault was found, over the sweeps, one a day."""
    panels = []
    for case in dict.fromkeys(one["case"] for one in figures["intermittent"]):
        both = {one["history"]: one["found"] for one in figures["intermittent"] if one["case"] == case}
        days = len(both[True])
        places = [str(day) if day in (1, 5, 10, 15, 20) else "" for day in range(1, days + 1)]
        lines: dict[str, list[float | None]] = {
            name: [count / figures["fleets"] for count in both[with_history]]
            for name, with_history in (("with history", True), ("without", False))
        }
        panels.append(Panel(case, places, SHARE, lines))
    return panels


def _passes(number: int) -> str:
    return "1 pass" if number == 1 else f"{number} passes"
