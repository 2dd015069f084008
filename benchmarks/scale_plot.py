"""Draws how a coordinator grows with its fleet, from the figures that `fleet_scale` wrote.

`python -m benchmarks.scale_plot FILE... --plot fleet_scale.svg`; each file is what one `fleet_scale --json FILE` wrote.
Files with the same database become one line, so a fleet of 10,000 nodes may be measured on its own. If they have the
same number of nodes, the last one counts.
"""

import argparse
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.panels import DOWN, LEGEND, TOP, Panel, Scale, document, legend, row

TITLE = "One coordinator, its broker and simulated agents on the same host"

SHOWN = {
    "share of a core, %": "coordinator, share of a core",
    "memory, MiB": "memory of the coordinator",
    "all have joined, s": "all have joined",
    "restart until it decides, s": "restart until it decides",
    "sweep beyond payload, s": "sweep in pairs, formed, run and recorded beyond its simulated payload",
}
"""The figure of each panel, by its title."""

STEPS = (1, 2, 5)
"""Distances of ticks, times a power of ten."""

MOST_TICKS = 5

Growth = dict[str, dict[str, dict[int, float]]]
"""Values by figure, database and number of nodes."""


def read(files: Iterable[Path]) -> Growth:
    """The figures that are shown."""
    growth: Growth = defaultdict(lambda: defaultdict(dict))
    for file in files:
        published: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        for figure in published["figures"]:
            found = re.fullmatch(r"(.*), (\d+) nodes", figure["what"])
            if found is not None and found[1] in SHOWN.values():
                growth[found[1]][_database(published["options"])][int(found[2])] = figure["value"]
    return growth


def _database(options: dict[str, Any]) -> str:
    if options["postgres"]:
        return "PostgreSQL"
    return "SQLite" if options["store"] is None else str(options["store"].partition(":")[0])


def plot(growth: Growth) -> str:
    """A panel for each figure. Nodes are to scale: what grows in proportion to them is a straight line."""
    panels = [_panel(title, growth[what]) for title, what in SHOWN.items() if what in growth]
    parts = [*legend(panels, "over the number of nodes", TOP - LEGEND), *row(panels, TOP)] if panels else []
    return document(TITLE, len(SHOWN), TOP + DOWN, parts)


def _panel(title: str, by_database: dict[str, dict[int, float]]) -> Panel:
    sizes = sorted({nodes for values in by_database.values() for nodes in values})
    lines = {name: [values.get(nodes) for nodes in sizes] for name, values in by_database.items()}
    most = max(value for values in by_database.values() for value in values.values())
    at = [0.95 * nodes / sizes[-1] for nodes in sizes]
    return Panel(title, [_short(nodes) for nodes in sizes], scale_to(most), lines, at)


def scale_to(most: float) -> Scale:
    """From zero to at least `most`, with round ticks."""
    power = 10.0 ** math.floor(math.log10(most)) / 10 if most > 0 else 1.0
    steps = (step * power * factor for factor in (1, 10) for step in STEPS)
    step = next((step for step in steps if most / step <= MOST_TICKS), 10 * power)
    return Scale(tuple(step * number for number in range(max(1, math.ceil(most / step)) + 1)))


def _short(nodes: int) -> str:
    return f"{nodes / 1000:g}k" if nodes >= 1000 else str(nodes)


def main() -> None:
    """Reads and draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="figures that fleet_scale wrote")
    parser.add_argument("--plot", type=Path, required=True, metavar="SVG", help="the picture to write")
    options = parser.parse_args()
    options.plot.write_text(plot(read(options.files)), encoding="utf-8")


if __name__ == "__main__":
    main()
