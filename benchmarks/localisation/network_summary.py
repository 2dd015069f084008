"""What the scores on the simulated network come to: how often something healthy is named, and what is found."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks.figures import Figure, Target
from benchmarks.localisation.intervals import interval_of
from benchmarks.localisation.methods import OURS
from benchmarks.localisation.network_cases import INTERMITTENT
from benchmarks.localisation.results import Cell
from benchmarks.localisation.scoring import Score

HEADER = (
    "nodes",
    "case",
    "noise",
    "method",
    "passes",
    "at once",
    "seeds",
    "false",
    "at 95 %",
    "healthy named",
    "recall",
    "at 95 %",
    "of visible",
    "touched",
    "PASS",
    "FAIL",
    "UNKNOWN",
    "fleet-wide",
    "open",
    "rounds",
    "runs/node",
    "wall s",
    "plan s",
)

FALSE_SWEEPS: Target = ("<=", 0.001)
RECALL_OF_PERSISTENT: Target = (">=", 0.99)


class Share(NamedTuple):
    """A number of hits in a number of tries."""

    hits: int
    tries: int

    @property
    def value(self) -> float:
        return self.hits / self.tries if self.tries else 0.0

    def __str__(self) -> str:
        return f"{self.value:.4g}" if self.tries else ""

    @property
    def interval(self) -> str:
        """In words; empty without tries."""
        low, high = interval_of(*self)
        return f"{low:.2g} to {high:.2g}" if self.tries else ""


class NetworkSummary(NamedTuple):
    """Shares of the sweeps of one cell: `false` of those that name something healthy, and of each verdict.

    `healthy_named` is the mean number of healthy parts that such a sweep names. `recall` counts faults that were named
    as what they are, `recall_of_visible` only those that some sweep can name. `touched` counts those that were part of
    something named. The rest are medians, for each node `runs`.
    """

    false: Share
    healthy_named: float
    recall: Share
    recall_of_visible: Share
    touched: Share
    verdicts: Mapping[str, Share]
    fleet_wide: Share
    open: float
    rounds: float
    runs: float
    plan_s: float


def network_summary(scores: Sequence[Score]) -> NetworkSummary:
    """Of the scores of one cell."""
    false = [one.healthy_named for one in scores if one.healthy_named]
    seeds = len(scores)
    return NetworkSummary(
        false=Share(len(false), seeds),
        healthy_named=statistics.mean(false) if false else 0.0,
        recall=Share(sum(one.exact for one in scores), sum(one.faults for one in scores)),
        recall_of_visible=_of_visible(scores),
        touched=Share(sum(one.touched for one in scores), sum(one.broken for one in scores)),
        verdicts={
            verdict: Share(sum(one.verdict == verdict for one in scores), seeds)
            for verdict in ("PASS", "FAIL", "UNKNOWN")
        },
        fleet_wide=Share(sum(one.fleet_wide for one in scores), seeds),
        open=statistics.mean(one.open / one.nodes for one in scores),
        rounds=statistics.median(one.rounds for one in scores),
        runs=statistics.median(one.node_runs / one.nodes for one in scores),
        plan_s=statistics.median(one.plan_s for one in scores),
    )


def _of_visible(scores: Sequence[Score]) -> Share:
    """The faults that were named, of those that some sweep can name."""
    return Share(sum(one.visible_exact for one in scores), sum(one.visible for one in scores))


def network_row(cell: Cell, found: NetworkSummary, group_s: float) -> tuple[str, ...]:
    """One line of the table. A round takes `group_s`, if all of its groups run at once."""
    which = (
        str(cell.nodes),
        cell.case,
        f"{cell.noise:g}",
        cell.method,
        str(cell.passes),
        str(cell.max_parallel or "all"),
    )
    false = str(found.false.tries), str(found.false), found.false.interval, f"{found.healthy_named:.3g}"
    truth = str(found.recall), found.recall.interval, str(found.recall_of_visible), str(found.touched)
    said = (*map(str, found.verdicts.values()), str(found.fleet_wide), f"{found.open:.3g}")
    wall_s = "" if cell.max_parallel else f"{found.rounds * group_s:g}"
    cost = f"{found.rounds:g}", f"{found.runs:.3g}", wall_s, f"{found.plan_s:.2g}"
    return (*which, *false, *truth, *said, *cost)


def network_totals(cells: Mapping[Cell, Sequence[Score]]) -> Iterator[str]:
    """A sentence about all sweeps of each method; faults that come and go do not count for the recall."""
    for method in dict.fromkeys(cell.method for cell in cells):
        scored = [(cell.case, one) for cell, scores in cells.items() if cell.method == method for one in scores]
        false = Share(sum(one.healthy_named > 0 for _, one in scored), len(scored))
        lasting = [one for case, one in scored if not case.endswith(INTERMITTENT)]
        recall = Share(sum(one.exact for one in lasting), sum(one.faults for one in lasting))
        visible = _of_visible(lasting)
        runs = statistics.mean(one.node_runs / one.nodes for _, one in scored)
        yield (
            f"{method}: {false.hits} of {false.tries} sweeps name something healthy (95 %: {false.interval}), "
            f"{recall.hits} of {recall.tries} lasting faults found ({recall}), "
            f"{visible.hits} of the {visible.tries} visible ones ({visible}), {runs:.3g} runs for each node"
        )


def network_figures(summaries: Mapping[Cell, NetworkSummary]) -> Iterator[Figure]:
    """What our strategy is asked to reach, cell by cell."""
    for cell, found in summaries.items():
        if cell.method != OURS:
            continue
        at_once = f", {cell.max_parallel} at once" if cell.max_parallel else ""
        what = f"{cell.case}, {cell.nodes} nodes{at_once}, noise {cell.noise:g}, passes {cell.passes}"
        low, high = interval_of(*found.false)
        spread = {"n": found.false.tries, "low": low, "high": high}
        yield Figure(what=f"sweeps that name something healthy: {what}", unit="", value=found.false.value,
                     target=FALSE_SWEEPS, spread=spread)  # fmt: skip
        if found.recall.tries:
            low, high = interval_of(*found.recall)
            asked = None if cell.case.endswith(INTERMITTENT) else RECALL_OF_PERSISTENT
            spread = {"n": found.recall.tries, "low": low, "high": high}
            yield Figure(what=f"recall: {what}", unit="", value=found.recall.value, target=asked, spread=spread)
