"""What the scores of the localisation benchmark come to: rows of a table, and figures with what they should be."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks.figures import Figure, Target
from benchmarks.localisation.methods import METHODS, OURS
from benchmarks.localisation.results import Cell
from benchmarks.localisation.scenarios import CASES
from benchmarks.localisation.scoring import Score

HEADER = (
    "nodes",
    "case",
    "noise",
    "method",
    "passes",
    "seeds",
    "rounds",
    "groups",
    "node s",
    "wall s",
    "of floor",
    "precision",
    "recall",
    "located",
    "accused",
    "open",
    "crossed",
)

USUAL = ("nodes 0.0%", "nodes 0.1%", "nodes 1.0%")

RECALL = {**dict.fromkeys((*USUAL, "nodes 5.0%"), 1.0), "nodes 20.0%": 0.98, "rails": 0.95, "links": 0.95, "leaf": 0.95}
"""What one pass is asked to find at the usual noise; paths only where nearly all were crossed."""

RECALL_OF_PATHS, NEARLY_ALL = 0.95, 0.99

USUAL_NOISE = 0.02

ROUNDS: Target = ("<=", 3)
OF_FLOOR: Target = ("<=", 1.1)
OF_BASELINE: Target = ("<=", 1.1)
PLAN_S: Target = ("<=", 2.0)
MEMORY_MIB: Target = ("<=", 1024)


class Summary(NamedTuple):
    """Medians of all seeds, and shares and sums over all of them; `of_floor` is in runs of every node once."""

    seeds: int
    rounds: float
    groups: float
    node_runs: float
    of_floor: float
    precision: float
    recall: float
    located: float
    accused: int
    open: float
    crossed: float
    longest_plan_s: float
    peak_mib: float


Summaries = Mapping[Cell, Summary]


def summary(scores: Sequence[Score]) -> Summary:
    """Of the scores of one cell. A share of nothing is 1."""

    def middle(field: str) -> float:
        return float(statistics.median(getattr(one, field) for one in scores))

    def total(field: str) -> int:
        return sum(getattr(one, field) for one in scores)

    def share(part: int, whole: int) -> float:
        return part / whole if whole else 1.0

    return Summary(
        seeds=len(scores),
        rounds=middle("rounds"),
        groups=middle("groups"),
        node_runs=middle("node_runs"),
        of_floor=middle("node_runs") / middle("nodes"),
        precision=share(total("named") - total("accused") - total("mistaken"), total("named")),
        recall=share(total("exact"), total("faults")),
        located=share(total("located"), total("bad_nodes")),
        accused=total("accused"),
        open=share(total("open"), total("nodes")),
        crossed=share(total("crossed"), total("paths")),
        longest_plan_s=max(one.slowest_plan_s for one in scores),
        peak_mib=max(one.peak_mib for one in scores),
    )


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """As the table shows them."""
    cases, methods = [*CASES], [*METHODS]
    return sorted(cells, key=lambda c: (c.noise, c.nodes, cases.index(c.case), methods.index(c.method), c.passes))


def row(cell: Cell, found: Summary, group_s: float) -> tuple[str, ...]:
    """One line of the table. A round takes `group_s`, and so does every node in it."""
    spent = found.rounds, found.groups, found.node_runs * group_s, found.rounds * group_s, found.of_floor
    truth = found.precision, found.recall, found.located, found.accused, found.open, found.crossed
    which = str(cell.nodes), cell.case, f"{cell.noise:g}", cell.method, str(cell.passes), str(found.seeds)
    return (*which, *(f"{value:.6g}" for value in (*spent, *truth)))


def figures(summaries: Summaries) -> list[Figure]:
    """What the adaptive strategy was asked to reach, cell by cell, and what planning takes."""
    ours = {cell: found for cell, found in summaries.items() if cell.method == OURS}
    by_cell = [figure for cell, found in ours.items() for figure in _figures(cell, found, summaries)]
    return [*by_cell, *_planning([*ours.values()])]


def _figures(cell: Cell, found: Summary, summaries: Summaries) -> Iterator[Figure]:
    what = f"{cell.case}, {cell.nodes} nodes, noise {cell.noise:g}, passes {cell.passes}"
    yield Figure(what=f"healthy nodes accused: {what}", unit="", value=found.accused, target=("<=", 0))
    yield Figure(what=f"recall: {what}", unit="", value=found.recall, target=_recall(cell, found))
    if cell.passes > 1:
        return
    usual = cell.case in USUAL
    yield Figure(what=f"rounds: {what}", unit="", value=found.rounds, target=ROUNDS if usual else None)
    yield Figure(what=f"of the floor: {what}", unit="", value=found.of_floor, target=OF_FLOOR if usual else None)
    baselines = (cell._replace(method=method) for method in METHODS if method != OURS)
    if cheapest := min((summaries[other].node_runs for other in baselines if other in summaries), default=None):
        share = found.node_runs / cheapest
        yield Figure(what=f"of the better baseline: {what}", unit="", value=share, target=OF_BASELINE)


def _recall(cell: Cell, found: Summary) -> Target | None:
    if cell.noise != USUAL_NOISE:
        return None
    if cell.case == "path":
        return (">=", RECALL_OF_PATHS) if found.crossed >= NEARLY_ALL else None
    return (">=", RECALL[cell.case]) if cell.case in RECALL else None


def _planning(ours: Sequence[Summary]) -> Iterator[Figure]:
    slowest = max((found.longest_plan_s for found in ours), default=0.0)
    most = max((found.peak_mib for found in ours), default=0.0)
    yield Figure(what="processor time of planning a round", unit="s", value=slowest, target=PLAN_S)
    yield Figure(what="memory of a process that simulates", unit="MiB", value=most, target=MEMORY_MIB)
