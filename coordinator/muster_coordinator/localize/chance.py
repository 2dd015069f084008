"""How many bad runs it takes until neither faults that come and go elsewhere nor lies explain them.

The more nodes there are, the more often such faults meet where they look like another one that stays.

Nodes lie, too: one that was broken into says what it likes, and makes honest partners slow or crash. Such nodes vouch
for each other and accuse whom they meet, so that having passed proves nobody honest. What they cannot do is to be drawn
by lot more often than others. Of 256 nodes 12 may lie. That one of the others meets a liar in the first round, and then
three more in a row, happens in one of 1,400 such sweeps: 12 x 11 / 254 x 10 / 253 x 9 / 252. So four partners convict.
"""

import math
from collections.abc import Iterable, Sequence

from muster_coordinator.liars import liars_among
from muster_coordinator.localize.trial import Trial

SPOILT = 0.015
"""Share of the runs that a node spoils by chance, where one in twenty has a fault that shows in three runs of ten."""

MISTAKES, MISTAKES_ABOUT_PATHS = 0.001, 0.0025
"""In so many sweeps of such a fleet, chance may bring about as many bad runs as are asked for. A path that is named in
vain costs somebody a look at it, a node its work.
"""

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
    """Whether liars may have spoilt runs with partners that were drawn in turn, in a fleet of so many `nodes`.

    For each run, `drawn` has the number of partners and of how many they were drawn. One liar among them is enough, but
    each can be among those of one run only.
    """
    liars, accused = liars_among(nodes), float(nodes)
    for taken, (partners, among) in enumerate(drawn):
        accused *= min(1.0, partners * max(liars - taken, 0) / max(among - taken, 1))
    return accused > mistakes


def measures_beyond_lies(nodes: int) -> int:
    """How many nodes, drawn by lot, have to say the same until it is not said by liars only."""
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
