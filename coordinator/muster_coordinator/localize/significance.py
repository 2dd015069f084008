"""Whether bad runs may be random: how many are needed before intermittent faults or lies no longer explain them.

**Intermittent faults.** In a larger fleet, intermittent faults of several nodes more often look like one permanent
fault by coincidence. A run is spoiled at random with probability 0.015. Example: of 232 nodes, node a was bad with two
partners. The expected number of nodes whose first run and one more are spoiled at random is 232 x 0.015 x 0.015 = 0.05
in a sweep, which is more than the accepted 0.001. With three partners it is 0.0008, so three are enough. If the runs
reached nearly the same bandwidth, fewer are enough: two separate faults rarely slow a node equally.

**Lies.** A compromised node can report anything, and can make honest partners slow or crash. Liars pass with each
other, so a node that has passed may still be a liar. But a random draw picks no liar more often than another node.
Example: of 256 nodes 12 may lie. The expected number of honest nodes that meet a liar in the first round and three more
in a row is 12 x 11 / 254 x 10 / 253 x 9 / 252, which is one in 1,400 sweeps. Four partners therefore convict.

Each function takes time in proportion to the number of runs that it is given.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from muster_coordinator.model.probes import GroupRun
from muster_coordinator.normal.normality import liars_among

BAD_AT_RANDOM = 0.015
"""Share of a node's runs that are bad at random, if one node in twenty has a fault that shows in 30 % of its runs."""

FALSE_NODES, FALSE_PATHS = 0.001, 0.0025
"""Accepted false-accusation rate of a sweep, for nodes and for paths. A wrongly named path costs an inspection; a
wrongly named node loses its work."""

CLOSE, CLOSE_AT_RANDOM = 1.15, 0.15
"""Runs that one fault slows lie within this ratio at noise of 5 %; those of two faults do so with this probability."""

AGREEMENT = 1.5
"""Runs that one permanent fault slows differ only by noise; this is the ratio from 20 % too low to 20 % too high."""


def partners_needed(nodes: int, bad: Sequence[GroupRun]) -> int:
    """The number of partners with which a node in a fleet of `nodes` must have runs like `bad` to be convicted."""
    return _runs_needed(nodes, BAD_AT_RANDOM, FALSE_NODES, bad)


def runs_may_be_chance(nodes: int, bad: Sequence[GroupRun], good: int, at_random: float = BAD_AT_RANDOM) -> bool:
    """Whether some node of a fleet has runs like `bad`, beside `good` ones, by chance more often than accepted.

    `at_random` is the share of runs that are bad at random. The expected number of nodes that have so many bad ones
    among as many runs is by the binomial distribution. It is less if the bad runs reached nearly the same. A crash is
    no chance: noise makes no ranks crash.
    """
    if any(run.hard for run in bad):
        return False
    again = at_random * CLOSE_AT_RANDOM if _within(CLOSE, bad) else at_random
    ways = math.comb(len(bad) + good, len(bad))
    return nodes * ways * at_random * again ** (len(bad) - 1) > FALSE_NODES


def path_runs_needed(nodes: int, bad: Sequence[GroupRun]) -> int:
    """The number of runs like `bad` that convict a path in a fleet of `nodes`. A path has two ends."""
    return _runs_needed(nodes, 2 * BAD_AT_RANDOM, FALSE_PATHS, bad)


def liars_may_explain(nodes: int, drawn: Iterable[tuple[int, int]], accepted: float = FALSE_NODES) -> bool:
    """Whether liars may explain bad runs with partners that were drawn one after another, in a fleet of `nodes`.

    `drawn` has for each run the number of partners and the number of nodes from which they were drawn. One liar among
    the partners is enough to spoil a run, but no liar counts in two runs. `accepted` is the accepted number of wrong
    convictions in a sweep.
    """
    liars, expected = liars_among(nodes), float(nodes)
    for taken, (partners, among) in enumerate(drawn):
        expected *= min(1.0, partners * max(liars - taken, 0) / max(among - taken, 1))
    return expected > accepted


def controls_needed(nodes: int) -> int:
    """How many nodes must be drawn at random before it is too unlikely that all of them lie."""
    number = 1
    while liars_may_explain(nodes, [(1, nodes)] * number, FALSE_NODES * nodes):
        number += 1
    return number


def runs_agree(bad: Sequence[GroupRun]) -> bool:
    """Whether all runs broke, or reached about the same, as they do if one permanent fault is the cause."""
    return _within(AGREEMENT, bad)


def crowds(reached: Mapping[str, float], ratio: float, enough: float) -> frozenset[str]:
    """The nodes that are among at least `enough` nodes whose values lie within this ratio. O(n log n) for n nodes."""
    found: set[str] = set()
    ordered = sorted(reached, key=reached.__getitem__)
    start = 0
    for end, node in enumerate(ordered, start=1):
        while reached[node] > ratio * reached[ordered[start]]:
            start += 1
        if end - start >= enough:
            found.update(ordered[start:end])
    return frozenset(found)


def _within(ratio: float, bad: Sequence[GroupRun]) -> bool:
    reached = [run.objective or 0.0 for run in bad]
    return max(reached) <= ratio * min(reached)


def _runs_needed(nodes: int, spoiled: float, accepted: float, bad: Sequence[GroupRun]) -> int:
    """The least number of runs that are spoiled at random rarely enough: the first and each further one."""
    again = spoiled * CLOSE_AT_RANDOM if _within(CLOSE, bad) else spoiled
    return 1 + math.ceil(math.log(nodes * spoiled / accepted) / -math.log(again))
