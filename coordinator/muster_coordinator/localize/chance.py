"""How many bad runs are needed until neither intermittent faults elsewhere nor lies explain them.

In a larger fleet intermittent faults meet more often where they look like one permanent fault.

Nodes may also lie: a node that was broken into reports what it likes, and makes honest partners slow or crash. Liars
pass with each other, so a node that has passed may still be a liar. But lots do not draw liars more often than other
nodes.

Example: of 256 nodes 12 may lie. The expected number of honest nodes that meet a liar in the first round and three more
in a row is 12 x 11 / 254 x 10 / 253 x 9 / 252, which is one in 1,400 sweeps. Four partners therefore convict. Every
function takes time in proportion to the runs that it is given.
"""

import math
from collections.abc import Iterable, Sequence

from muster_coordinator.localize.trial import Trial
from muster_coordinator.normal.liars import liars_among

SPOILT = 0.015
"""Share of the runs that a node spoils by chance, where one in twenty has a fault that shows in three runs of ten."""

MISTAKES, MISTAKES_ABOUT_PATHS = 0.001, 0.0025
"""Accepted false-accusation rate of a sweep, for nodes and for paths. A path that is named wrongly costs somebody a
look at it; a node that is named wrongly loses its work."""

CLOSE, CLOSE_BY_CHANCE = 1.15, 0.15
"""Runs that one fault holds back come so close to each other, at noise of 5 %; those of two faults as rarely."""

ALIKE = 1.5
"""What one fault that stays leaves differs by noise only; as much lies between 20 % too high and 20 % too low."""


def partners_beyond_chance(nodes: int, bad: Sequence[Trial]) -> int:
    """With how many partners a node has to fail as in its `bad` runs, in a fleet of so many, until it is to blame."""
    return _beyond(nodes, SPOILT, MISTAKES, bad)


def runs_beyond_chance(nodes: int, bad: Sequence[Trial]) -> int:
    """How often a path has to be as in its `bad` runs, in a fleet of so many `nodes`, until it is to blame."""
    return _beyond(nodes, 2 * SPOILT, MISTAKES_ABOUT_PATHS, bad)


def may_be_lies(nodes: int, drawn: Iterable[tuple[int, int]], mistakes: float = MISTAKES) -> bool:
    """Whether liars may explain bad runs with partners that were drawn one after the other, in a fleet of `nodes`.

    For each run, `drawn` has the number of partners and the number of nodes from which they were drawn. One liar among
    the partners is enough to spoil a run, but no liar counts in two runs. `mistakes` is the expected number of wrong
    convictions in a sweep that is accepted.
    """
    liars, accused = liars_among(nodes), float(nodes)
    for taken, (partners, among) in enumerate(drawn):
        accused *= min(1.0, partners * max(liars - taken, 0) / max(among - taken, 1))
    return accused > mistakes


def measures_beyond_lies(nodes: int) -> int:
    """How many nodes must be drawn by lot until it is too unlikely that all of them lie."""
    number = 1
    while may_be_lies(nodes, [(1, nodes)] * number, MISTAKES * nodes):
        number += 1
    return number


def are_alike(bad: Sequence[Trial]) -> bool:
    """Whether all runs broke, or came to the same, as they do when one fault that stays is behind them."""
    return _within(ALIKE, bad)


def _within(ratio: float, bad: Sequence[Trial]) -> bool:
    reached = [trial.objective or 0.0 for trial in bad]
    return max(reached) <= ratio * min(reached)


def _beyond(nodes: int, spoilt: float, mistakes: float, bad: Sequence[Trial]) -> int:
    """The least number of runs of which chance spoils the first, and each further one as well, rarely enough."""
    again = spoilt * CLOSE_BY_CHANCE if _within(CLOSE, bad) else spoilt
    return 1 + math.ceil(math.log(nodes * spoilt / mistakes) / -math.log(again))
