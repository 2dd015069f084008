"""How quickly, cheaply and truly the adaptive sweep names culprits, beside two published methods on the same cases.

Method: the pure decisions of each strategy run against a simulated fabric: racks, leaves, paths between leaves, 8 rails
for each node, noise of 2 % on every repetition of a run. The cases are a healthy fabric, a share of nodes that are slow
or crash, rails and links of nodes, one leaf, one path between two leaves, and nodes of which the fault shows in three
runs of ten only. Faulty parts deliver 10 to 70 % of normal; one in five bad nodes crashes its runs. Every strategy gets
the same fabrics, drawn by seed, with noise of its own. A round takes a start-up and a run, whatever its groups are.

The baselines are random pairs with a second pass against nodes that passed, and bisection with confirmation. They are
told below which share of normal a run is bad; the adaptive strategy finds out by itself. They know nodes only, so what
counts for them is whether the node was named at all.

Limits: partners are always there, groups do not disturb each other, and nobody's work comes in between. The default is
short; --nodes and --seeds make it long.
"""

import argparse
import itertools
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.figures import Figure, Target, arguments, publish
from benchmarks.localisation_baselines import Bisection, RandomPairs, is_bad
from benchmarks.localisation_cases import CASES, Sites
from benchmarks.localisation_fabric import Fabric, lots_of, sites_of
from benchmarks.localisation_scoring import UNLIMITED, Answer, Cost, Named, Score, Verdict, play, score

from muster.table import table
from muster_coordinator.localize.adaptive import MAX_ROUNDS, Adaptive
from muster_coordinator.localize.culprits import Part
from muster_coordinator.localize.probe import Policy
from muster_coordinator.localize.trial import Trial

HEADER = (
    "nodes",
    "case",
    "method",
    "rounds",
    "groups",
    "node s",
    "wall s",
    "precision",
    "recall",
    "located",
    "accused",
    "open",
    "crossed",
)

USUAL = ("nodes 0.0%", "nodes 0.1%", "nodes 1.0%")

RECALL = {**dict.fromkeys((*USUAL, "nodes 5.0%"), 1.0), "nodes 20.0%": 0.98, "rails": 0.95, "links": 0.95, "leaf": 0.95}

MAX_PLAN_S = 2.0

Results = dict[tuple[int, str, str], list[Score]]


class Method(NamedTuple):
    """A strategy on one fleet, how to get its answer, and how many rounds it may take."""

    policy: Policy
    answer: Verdict
    max_rounds: int


def adaptive(sites: Sites, seed: str, passes: int) -> Method:
    """Our own."""
    strategy = Adaptive(sites, seed=seed, passes=passes)

    def answer(trials: Sequence[Trial]) -> Answer:
        judgement = strategy.judge(trials)
        named = (Named(culprit.part, culprit.of, culprit.rails) for culprit in judgement.culprits)
        return Answer(frozenset(named), len(judgement.open))

    return Method(strategy, answer, MAX_ROUNDS + passes - 1)


def random_pairs(sites: Sites, seed: str, passes: int) -> Method:
    """The one baseline."""
    pairs = RandomPairs(tuple(sites), seed)
    return Method(pairs, lambda trials: nodes_only(pairs.convicted(trials), sites, trials), UNLIMITED)


def bisection(sites: Sites, seed: str, passes: int) -> Method:
    """The other baseline."""
    halves = Bisection(tuple(sites))
    return Method(halves, lambda trials: nodes_only(halves.convicted(trials), sites, trials), UNLIMITED)


def nodes_only(convicted: frozenset[str], sites: Sites, trials: Sequence[Trial]) -> Answer:
    """The answer of a method that knows nodes; those that it neither convicts nor has seen pass are open."""
    passed = {node for trial in trials if not is_bad(trial) for node in trial.members}
    return Answer(frozenset(Named(Part.NODE, (node,)) for node in convicted), len(sites.keys() - passed - convicted))


METHODS = {"adaptive": adaptive, "random pairs": random_pairs, "bisection": bisection}


def measured(count: int, case: str, method: str, options: argparse.Namespace) -> list[Score]:
    """The scores of all seeds."""
    sites = sites_of(count)
    cost = Cost(options.startup_s, options.run_s)
    scores = []
    for seed in range(options.seeds):
        drawn = f"{case} {count} {seed}"
        faults = CASES[case](sites, lots_of(drawn))
        policy, answer, max_rounds = METHODS[method](sites, drawn, options.passes)
        fabric = Fabric(sites, faults, options.noise, lots_of(f"{drawn} {method}"))
        played = play(policy, fabric, max_rounds)
        scores.append(score(sites, played, answer(played.trials), faults, cost))
    return scores


def total(scores: Iterable[Score], field: str) -> float:
    """Over all seeds."""
    return float(sum(getattr(one, field) for one in scores))


def share(scores: Sequence[Score], part: str, whole: str) -> float:
    """Of all seeds together; 1 when there was nothing."""
    return total(scores, part) / total(scores, whole) if total(scores, whole) else 1.0


def row(count: int, case: str, method: str, scores: Sequence[Score]) -> tuple[str, ...]:
    """One line of the table: medians over the seeds, shares of all seeds together."""
    named = total(scores, "named")
    wrong = total(scores, "accused") + total(scores, "mistaken")
    cells = (
        middle(scores, "rounds"),
        middle(scores, "groups"),
        middle(scores, "node_seconds"),
        middle(scores, "wall_s"),
        1 - wrong / named if named else 1,
        share(scores, "exact", "faults"),
        share(scores, "located", "bad_nodes"),
        total(scores, "accused"),
        share(scores, "open", "nodes"),
        share(scores, "crossed", "paths"),
    )
    return (str(count), case, method, *(f"{cell:.6g}" for cell in cells))


def figures(results: Results) -> list[Figure]:
    """What the adaptive strategy was asked to reach, case by case."""
    found: list[Figure] = []
    for (count, case, method), scores in results.items():
        if method == "adaptive":
            others = [those for (*same, _), those in results.items() if same == [count, case] and those is not scores]
            found += case_figures(f"{case}, {count} nodes", case, scores, others)
    return found


def case_figures(what: str, case: str, scores: Sequence[Score], others: Iterable[Sequence[Score]]) -> Iterator[Figure]:
    """The figures of one case; only node faults at usual shares have to be found in few rounds, at little cost."""
    usual = case in USUAL
    spent = middle(scores, "node_seconds")
    floor = middle(scores, "floor_s")
    yield Figure(what=f"healthy nodes accused: {what}", unit="", value=total(scores, "accused"), target=("<=", 0))
    recall: Target | None = (">=", RECALL[case]) if case in RECALL else None
    yield Figure(what=f"recall: {what}", unit="", value=share(scores, "exact", "faults"), target=recall)
    yield Figure(what=f"rounds: {what}", unit="", value=middle(scores, "rounds"), target=("<=", 3) if usual else None)
    yield Figure(what=f"of the floor: {what}", unit="", value=spent / floor, target=("<=", 1.1) if usual else None)
    if cheapest := min((middle(those, "node_seconds") for those in others), default=None):
        yield Figure(what=f"of the better baseline: {what}", unit="", value=spent / cheapest, target=("<=", 1.1))


def slowest_plan(results: Results) -> Figure:
    """The longest that the adaptive strategy took to plan a round."""
    plans = [one.slowest_plan_s for (_, _, method), scores in results.items() if method == "adaptive" for one in scores]
    return Figure(what="longest planning of a round", unit="s", value=max(plans, default=0), target=("<=", MAX_PLAN_S))


def middle(scores: Iterable[Score], field: str) -> float:
    """The median over the seeds."""
    return float(statistics.median(getattr(one, field) for one in scores))


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[16, 232], metavar="N", help="sizes of the fleet")
    parser.add_argument("--seeds", type=int, default=10, help="fabrics of each case and size")
    parser.add_argument("--cases", nargs="+", choices=[*CASES], default=[*CASES], metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--methods", nargs="+", choices=[*METHODS], default=[*METHODS], metavar="METHOD")
    parser.add_argument("--passes", type=int, default=1, help="runs of every node that the adaptive strategy begins")
    parser.add_argument("--noise", type=float, default=0.02, help="of a repetition, relative standard deviation")
    parser.add_argument("--startup-s", type=float, default=20.0, help="what a run takes beside its work")
    parser.add_argument("--run-s", type=float, default=15.0, help="its work")
    options = parser.parse_args()
    results: Results = {}
    for key in itertools.product(options.nodes, options.cases, options.methods):
        results[key] = measured(*key, options)
    print(table(HEADER, (row(*key, scores) for key, scores in results.items())))
    publish(options, [*figures(results), slowest_plan(results)])


if __name__ == "__main__":
    main()
