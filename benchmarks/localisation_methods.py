"""The methods that the localisation benchmark compares: ours, and two that were published."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.localisation_baselines import Bisection, RandomPairs, is_bad
from benchmarks.localisation_cases import Sites
from benchmarks.localisation_scoring import Answer, Named

from muster_coordinator.localize.adaptive import Adaptive
from muster_coordinator.localize.culprit import Part
from muster_coordinator.localize.probe import Policy
from muster_coordinator.localize.trial import Trial


class Method(NamedTuple):
    """A strategy on one fleet, and how to get its answer."""

    policy: Policy
    answer: Callable[[Sequence[Trial]], Answer]


def adaptive(sites: Sites, seed: str, passes: int) -> Method:
    """Our own."""
    strategy = Adaptive(sites, seed=seed, passes=passes)

    def answer(trials: Sequence[Trial]) -> Answer:
        judgement = strategy.judge(trials)
        named = (Named(culprit.part, culprit.of, culprit.rails) for culprit in judgement.culprits)
        return Answer(frozenset(named), len(judgement.open))

    return Method(strategy, answer)


def random_pairs(sites: Sites, seed: str, passes: int) -> Method:
    """The one baseline, which knows no further passes."""
    pairs = RandomPairs(tuple(sites), seed)
    return Method(pairs, lambda trials: _nodes_only(pairs.convicted(trials), sites, trials))


def bisection(sites: Sites, seed: str, passes: int) -> Method:
    """The other baseline, which knows no further passes and draws no lots."""
    halves = Bisection(tuple(sites))
    return Method(halves, lambda trials: _nodes_only(halves.convicted(trials), sites, trials))


OURS = "adaptive"
METHODS = {OURS: adaptive, "random pairs": random_pairs, "bisection": bisection}


def _nodes_only(convicted: frozenset[str], sites: Sites, trials: Sequence[Trial]) -> Answer:
    """The answer of a method that knows nodes; those that it neither convicts nor has seen pass are open."""
    passed = {node for trial in trials if not is_bad(trial) for node in trial.members}
    return Answer(frozenset(Named(Part.NODE, (node,)) for node in convicted), len(sites.keys() - passed - convicted))
