"""How quickly, cheaply and truly the adaptive sweep names culprits, beside two published methods on the same cases.

Method: the pure decisions of each strategy run against a simulated fabric: racks, leaves, paths between leaves, 8 rails
for each node, noise of 2 % on every repetition of a run. The cases are a healthy fabric, a share of nodes that are slow
or crash, rails and links of nodes, one leaf, one path between two leaves, and nodes of which the fault shows in three
runs of ten only. Faulty parts deliver 10 to 70 % of normal; one in five bad nodes crashes its runs. Every strategy gets
the same fabrics, drawn by seed, with noise of its own. A round takes a start-up and a run, whatever its groups are.

The baselines are random pairs with a second pass against nodes that passed, and bisection with confirmation. They are
told below which share of normal a run is bad; the adaptive strategy finds out by itself. They know nodes only: where a
rail or link is bad and they name the node, that counts as located, not as recalled.

Limits: partners are always there, groups do not disturb each other, and nobody's work comes in between. The default is
short; --nodes and --seeds make it long. A long run goes on where it stopped when --results names the same file again;
all that the file holds is shown, so that --seeds 0 shows what there is so far.
"""

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from benchmarks.figures import arguments, publish
from benchmarks.localisation.cases import CASES
from benchmarks.localisation.methods import METHODS, OURS
from benchmarks.localisation.plot import plot
from benchmarks.localisation.results import Cell, Results, Task
from benchmarks.localisation.summary import HEADER, USUAL_NOISE, figures, in_order, row, summary

from muster.table import table


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """All cells with the first seed, then with the second, so that whoever stops has something of each."""
    cells = product(options.nodes, options.cases, options.methods, options.noise, options.passes)
    wanted = [cell for cell in map(Cell._make, cells) if cell.passes == 1 or cell.method == OURS]
    return (Task(cell, seed) for seed in range(options.seeds) for cell in wanted)


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[16, 232], metavar="N", help="sizes of the fleet")
    parser.add_argument("--seeds", type=int, default=10, help="fabrics of each case and size")
    parser.add_argument(
        "--cases",
        nargs="+",
        choices=[*CASES],
        default=[*CASES],
        metavar="CASE",
        help=", ".join(CASES).replace("%", "%%"),
    )
    parser.add_argument("--methods", nargs="+", choices=[*METHODS], default=[*METHODS], metavar="METHOD")
    parser.add_argument("--passes", type=int, nargs="+", default=[1], help="in which our strategy runs every node")
    parser.add_argument("--noise", type=float, nargs="+", default=[USUAL_NOISE], help="of a repetition, relative")
    parser.add_argument("--startup-s", type=float, default=20.0, help="what a run takes beside its work")
    parser.add_argument("--run-s", type=float, default=15.0, help="its work")
    parser.add_argument("--jobs", type=int, default=1, help="processes that simulate")
    parser.add_argument("--results", metavar="FILE", help="keep scores in FILE, and go on from those there")
    parser.add_argument("--plot", metavar="FILE", help="draw FILE, an SVG")
    options = parser.parse_args()
    results = Results(Path(options.results) if options.results else None)
    results.measure(tasks(options), options.jobs)
    summaries = {cell: summary([*results.cells[cell].values()]) for cell in in_order(results.cells)}
    group_s = options.startup_s + options.run_s
    print(table(HEADER, (row(cell, found, group_s) for cell, found in summaries.items())))
    if options.plot:
        Path(options.plot).write_text(plot(summaries), encoding="utf-8")
    publish(options, figures(summaries))


if __name__ == "__main__":
    main()
