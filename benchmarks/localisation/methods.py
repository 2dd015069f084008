"""The methods that the localisation benchmark compares: ours, and two that were published."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.localisation.baselines import Bisection, RandomPairs, is_bad
from benchmarks.localisation.cases import Sites
from benchmarks.localisation.scoring import Answer, Named

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.strategies.adaptive import Adaptive
from muster_coordinator.localize.strategies.strategy import RoundPlanner
from muster_coordinator.model.probes import GroupRun


class Method(NamedTuple):
    """A strategy on one fleet, and how to get its answer."""

    policy: RoundPlanner
    answer: Callable[[Sequence[GroupRun]], Answer]


def adaptive(sites: Sites, seed: str, passes: int) -> Method:
    """Our own."""
    strategy = Adaptive(sites, seed=seed, passes=passes)

    def answer(runs: Sequence[GroupRun]) -> Answer:
        diagnosis = strategy.diagnose(runs)
        named = (Named(culprit.part, culprit.of, culprit.rails) for culprit in diagnosis.culprits)
        return Answer(frozenset(named), len(diagnosis.inconclusive))

    return Method(strategy, answer)


def random_pairs(sites: Sites, seed: str, passes: int) -> Method:
    """The one baseline, which knows no further passes."""
    pairs = RandomPairs(tuple(sites), seed)
    return Method(pairs, lambda runs: _nodes_only(pairs.convicted(runs), sites, runs))


def bisection(sites: Sites, seed: str, passes: int) -> Method:
    """The other baseline, which knows no further passes and draws no lots."""
    halves = Bisection(tuple(sites))
    return Method(halves, lambda runs: _nodes_only(halves.convicted(runs), sites, runs))


OURS = "adaptive"
METHODS = {OURS: adaptive, "random pairs": random_pairs, "bisection": bisection}


def _nodes_only(convicted: frozenset[str], sites: Sites, runs: Sequence[GroupRun]) -> Answer:
    """The answer of a method that knows nodes; those that it neither convicts nor has seen pass are open."""
    passed = {node for run in runs if not is_bad(run) for node in run.members}
    return Answer(frozenset(Named(Part.NODE, (node,)) for node in convicted), len(sites.keys() - passed - convicted))
