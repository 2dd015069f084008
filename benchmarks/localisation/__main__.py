"""How quickly, cheaply and truly the adaptive sweep names culprits, beside two published methods on the same cases.

Method: the pure decisions of each strategy run against a simulated fleet. Every strategy gets the same fleets, drawn by
seed, with noise of its own. A round takes a start-up and a run, whatever its groups are. There are two kinds of cases:

- The set `own` runs on a fabric that was made together with the rules: racks, leaves, paths between leaves, 8 rails for
  each node, noise on every repetition of a run. A share of the nodes is slow or crashes, or rails, links, one leaf or
  one path are slow, or faults show in three runs of ten only. Faulty parts deliver 10 to 70 % of normal; one in five
  bad nodes crashes its runs. Partners are always there, and groups do not disturb each other.
- All other cases run on a network of flows (`benchmarks/fabric`), which knows nothing of the rules: groups share
  oversubscribed links, labels are wrong, members decline. A case is named "condition: fault". The question is how often
  a method names something healthy, so each share comes with its interval. 3,688 seeds without one bound it by 0.1 %.

The baselines are random pairs with a second pass against nodes that passed, and bisection with confirmation. They are
told what a pair reaches on a healthy fleet, and below which share of it a run is bad; the adaptive strategy finds out
by itself. They know nodes only: where a rail or link is bad and they name the node, that counts as located, not as
recalled.

The default is short; --nodes and --seeds make it long. A long run goes on where it stopped when --results names the
same file again; all that the file holds is shown, so that --seeds 0 shows what there is so far.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from benchmarks.figures import Figure, arguments, publish
from benchmarks.localisation.cases import OWN_CASES
from benchmarks.localisation.methods import METHODS, OURS
from benchmarks.localisation.network_cases import (
    BREAKS,
    CALM,
    CONDITIONS,
    HEALTHY_TWINS,
    KNOWN_GAPS,
    NETWORK_CASES,
    is_possible,
)
from benchmarks.localisation.network_summary import HEADER as NETWORK_HEADER
from benchmarks.localisation.network_summary import network_figures, network_row, network_summary, network_totals
from benchmarks.localisation.plot import plot
from benchmarks.localisation.results import Cell, Results, Task
from benchmarks.localisation.scenarios import CASES
from benchmarks.localisation.scoring import Score
from benchmarks.localisation.summary import HEADER, USUAL_NOISE, Summaries, figures, in_order, row, summary

from muster.table import table

SETS: Mapping[str, Sequence[str]] = {
    "own": (*OWN_CASES,),
    "gaps": KNOWN_GAPS,
    "twins": HEALTHY_TWINS,
    "calm": CALM,
    "crossings": (*NETWORK_CASES,),
}

CASES_HELP = f"""sets: {", ".join(SETS)}; cases of the set own: {", ".join(OWN_CASES)}; others: 'CONDITION: FAULT' with
the conditions {" | ".join(CONDITIONS)} and the faults {" | ".join(BREAKS)}"""


def cases_of(name: str) -> Sequence[str]:
    """The cases of a set, or the case of this name."""
    if name in SETS:
        return SETS[name]
    if name not in CASES:
        raise argparse.ArgumentTypeError(f"no case {name!r}; --help lists cases and sets")
    return (name,)


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """All cells with the first seed, then with the second, so that a run that is stopped has scores of each."""
    cases = dict.fromkeys(case for those in options.cases for case in those)
    cells = product(options.nodes, cases, options.methods, options.noise, options.passes, [options.max_parallel])
    wanted = [
        cell
        for cell in map(Cell._make, cells)
        if (cell.passes == 1 or cell.method == OURS) and (cell.case in OWN_CASES or is_possible(cell.case, cell.nodes))
    ]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    return (Task(cell, seed) for seed in seeds for cell in wanted)


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[16, 232], metavar="N", help="sizes of the fleet")
    parser.add_argument("--seeds", type=int, default=10, help="fabrics of each case and size")
    parser.add_argument(
        "--first-seed", type=int, default=0, metavar="N", help="others than those that rules were tuned on"
    )
    parser.add_argument(
        "--cases",
        nargs="+",
        type=cases_of,
        default=[SETS["own"]],
        metavar="CASE",
        help=CASES_HELP.replace("%", "%%"),
    )
    parser.add_argument("--methods", nargs="+", choices=[*METHODS], default=[*METHODS], metavar="METHOD")
    parser.add_argument("--passes", type=int, nargs="+", default=[1], help="in which our strategy runs every node")
    parser.add_argument("--noise", type=float, nargs="+", default=[USUAL_NOISE], help="of a repetition, relative")
    parser.add_argument("--max-parallel", type=int, metavar="N", help="nodes that run at once, on the network of flows")
    parser.add_argument("--startup-s", type=float, default=20.0, help="what a run takes beside its work")
    parser.add_argument("--run-s", type=float, default=15.0, help="its work")
    parser.add_argument("--jobs", type=int, default=1, help="processes that simulate")
    parser.add_argument("--results", metavar="FILE", help="keep scores in FILE, and go on from those there")
    parser.add_argument("--plot", metavar="FILE", help="draw FILE, an SVG")
    options = parser.parse_args()
    results = Results(Path(options.results) if options.results else None)
    results.measure(tasks(options), options.jobs)
    cells = {cell: [*results.cells[cell].values()] for cell in in_order(results.cells)}
    group_s = options.startup_s + options.run_s
    own = {cell: summary(scores) for cell, scores in cells.items() if cell.case in OWN_CASES}
    if own:
        print(table(HEADER, (row(cell, found, group_s) for cell, found in own.items())))
    if options.plot:
        Path(options.plot).write_text(plot(own), encoding="utf-8")
    publish(options, [*_own_figures(own), *_on_network(cells, group_s)])


def _own_figures(own: Summaries) -> list[Figure]:
    return figures(own) if own else []


def _on_network(cells: Mapping[Cell, Sequence[Score]], group_s: float) -> list[Figure]:
    """Prints the table of the cases on the network of flows. Returns their figures."""
    found = {cell: network_summary(scores) for cell, scores in cells.items() if cell.case in NETWORK_CASES}
    if found:
        print(table(NETWORK_HEADER, (network_row(cell, one, group_s) for cell, one in found.items())))
        print(*network_totals({cell: cells[cell] for cell in found}), sep="\n")
    return [*network_figures(found)]


if __name__ == "__main__":
    main()
