"""How much more likely a bad part makes runs than chance does."""

import math
import random
from collections.abc import Sequence

import pytest
from tests.cases import cases
from tests.coordinator.localize.runs import fleet, ran, well

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.likelihood.chance import LEAST_REACHED, SLOW_BY_CHANCE
from muster_coordinator.localize.likelihood.likelihood_ratio import (
    MOST_MISSING,
    LikelihoodRatios,
    bound,
    candidates_among,
)
from muster_coordinator.model.probes import GroupRun


def ratios(*runs: GroupRun, nodes: int = 64) -> LikelihoodRatios:
    """From well pairs, and these runs."""
    return LikelihoodRatios(GroupEvidence(fleet(nodes), (*well(nodes), *runs)))


def bad(*shares: float) -> list[GroupRun]:
    """Runs of n0 with others that reached these shares of normal."""
    return [ran("n0", f"n{number}", at=1.5 * share) for number, share in enumerate(shares, start=2)]


def test_the_example_of_the_docstring() -> None:
    """Two runs that agree nearly convict one of 64 nodes, two that differ do not, and a good run costs."""
    found = ratios()
    agree, differ = found.log_ratio(bad(0.4, 0.41)), found.log_ratio(bad(0.4, 0.6))
    assert (agree, differ, bound(64)) == pytest.approx((10.5, 7.5, 11.1), abs=0.1)
    assert agree - found.log_ratio(bad(0.4, 0.41), good=1) == pytest.approx(2.6, abs=0.1)


@cases(
    ("nodes", "shares", "missing"),
    [(64, (0.4,), 2), (16, (0.4, 0.4), 0), (64, (0.4, 0.4), 1), (16384, (0.4, 0.4), 1), (16384, (0.4, 0.6), 2)],
)
def test_larger_fleets_and_runs_that_differ_need_more_runs(nodes: int, shares: Sequence[float], missing: int) -> None:
    """Each further run is expected to be like the last one."""
    assert ratios().runs_missing(bad(*shares), nodes) == missing


def test_what_chance_does_often_tells_little() -> None:
    """Where every third run is slow by chance, and reaches just this, no number of such runs convicts."""
    slow = [ran(f"n{number}", f"n{number + 2}", at=0.5) for number in range(2, 60, 2) for _ in range(4)]
    assert ratios(*slow).runs_missing(bad(1 / 3), 64) == MOST_MISSING
    assert ratios(*slow).log_ratio(bad(1 / 3)) < 0 < ratios().log_ratio(bad(1 / 3))


def test_the_runs_of_a_node_do_not_show_what_chance_does() -> None:
    """n0 is bad in six of 14 runs; as chance of other nodes they would tell little."""
    own, others = bad(*[0.3] * 6), [ran("n4", "n6", at=0.9) for _ in range(4)]
    runs = [*own, *others, ran("n0", "n2")]
    assert ratios(*runs).log_ratio(own, good=8) > bound(64) > ratios(*runs).log_ratio(own[:2], good=8)


RUNS, NODES, RARE = 20, 2000, 20
"""The highest ratio that a node has at any moment reaches 20 in one of twenty nodes at most."""


def highest_ratio(found: LikelihoodRatios, lots: random.Random) -> float:
    """Of a node that is slow by chance only, at any moment of its runs."""
    slow: list[GroupRun] = []
    highest = 0.0
    for number in range(1, RUNS + 1):
        if lots.random() < SLOW_BY_CHANCE:
            slow += bad(LEAST_REACHED ** lots.random())
            highest = max(highest, found.log_ratio(slow, good=number - len(slow)))
    return highest


def test_chance_rarely_looks_like_a_fault() -> None:
    """However often one looks: a ratio of r is reached with probability 1/r at most."""
    found, lots = ratios(), random.Random(1)
    reached = sum(highest_ratio(found, lots) >= math.log(RARE) for _ in range(NODES))
    assert 0 < reached <= NODES / RARE


def test_small_fleets_ask_for_as_much_evidence_as_64_nodes() -> None:
    """Two runs that are slow alike may be chance there, too."""
    assert [candidates_among(nodes) for nodes in (3, 64, 65)] == [64, 64, 65]
