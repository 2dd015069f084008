"""The methods that the localisation benchmark compares: ours, and two that were published."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.localisation.baselines import Bisection, RandomPairs, is_good
from benchmarks.localisation.cases import Sites
from benchmarks.localisation.scoring import Answer
from benchmarks.localisation.truth import Named

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.strategies.adaptive import Adaptive
from muster_coordinator.localize.strategies.strategy import RoundPlanner
from muster_coordinator.model.probes import GroupRun


class Method(NamedTuple):
    """A strategy on one fleet, and how to get its answer."""

    policy: RoundPlanner
    answer: Callable[[Sequence[GroupRun]], Answer]


class MethodInput(NamedTuple):
    """What a method is told: the sites, a seed for its draws, the passes, and the `normal` objective of a pair."""

    sites: Sites
    seed: str
    passes: int
    normal: float


def adaptive(told: MethodInput) -> Method:
    """Our own, which finds out by itself what is normal."""
    strategy = Adaptive(told.sites, seed=told.seed, passes=told.passes)

    def answer(runs: Sequence[GroupRun]) -> Answer:
        diagnosis = strategy.diagnose(runs)
        named = (Named(culprit.part, culprit.of, culprit.rails) for culprit in diagnosis.culprits)
        cannot_tell = (*diagnosis.inconclusive, *diagnosis.uncompared, *diagnosis.inconclusive_paths)
        return Answer(frozenset(named), len(cannot_tell))

    return Method(strategy, answer)


def random_pairs(told: MethodInput) -> Method:
    """The one baseline, which knows no further passes."""
    pairs = RandomPairs(tuple(told.sites), told.seed, normal=told.normal)
    return Method(pairs, lambda runs: _nodes_only(pairs.convicted(runs), told, runs))


def bisection(told: MethodInput) -> Method:
    """The other baseline, which knows no further passes and draws no lots."""
    halves = Bisection(tuple(told.sites), normal=told.normal)
    return Method(halves, lambda runs: _nodes_only(halves.convicted(runs), told, runs))


OURS = "adaptive"
METHODS: dict[str, Callable[[MethodInput], Method]] = {
    OURS: adaptive,
    "random pairs": random_pairs,
    "bisection": bisection,
}


def _nodes_only(convicted: frozenset[str], told: MethodInput, runs: Sequence[GroupRun]) -> Answer:
    """The answer of a method that knows nodes; those that it neither convicts nor has seen pass are open."""
    passed = {node for run in runs if is_good(run, told.normal) for node in run.members}
    named = frozenset(Named(Part.NODE, (node,)) for node in convicted)
    return Answer(named, len(told.sites.keys() - passed - convicted))
