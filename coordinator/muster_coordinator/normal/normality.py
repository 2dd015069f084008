"""What is normal, in figures: a level with its spread, and how much worse than it is too much.

Every threshold of the comparisons over the fleet and over time stands here with its reason. All of it is pure.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from muster.check import Worse

RECENT_RUNS = 3
"""A device counts by the median of its last three values, and not before there are three.

So one odd run neither accuses nor acquits it, as in health, and two in a row do.
"""

EARLIER_RUNS = 8
"""As many first values make a device's own level. Their median is twice as sure as one value; with gemm every six
hours they take two days."""

LEAST_PEERS = 8
"""A device is compared with at least so many others. Of fewer, one bad one is a large part of the spread itself."""

TOO_MANY_SPREADS = 5.0
"""Of a million devices whose values spread like a bell, not one is five standard deviations worse by chance."""

FLEET_FLOOR = 0.015
"""The least spread over the fleet, as a share of its centre: so a device must be 7.5 % worse than many others.

Within one node of eight GPUs 5 % is normal (stas00/ml-engineering, accelerators).
"""

OWN_FLOOR = 0.02
"""The least spread of a device's own values, as a share of its level: so drift begins at 10 %.

More than 10 % below its own baseline is where acceptance playbooks for GPU clusters call a node failed.
"""

TYPICAL_ERROR = 0.67
"""The standard error of the median of three values, of which a device's typical one is, as a share of their spread."""

SPREAD_ERROR = 1.17
"""The standard error of a spread that is taken from the median absolute deviation, as a share of it, times the root of
the number of values (an efficiency of 37 %)."""

SHIFT = 0.05
"""How much worse the centre of a whole fleet may become. It is much steadier than a device: the same playbooks look
into it from 5 % on."""

MEDIAN_ERROR = 1.2533
"""The standard error of the median of values that spread like a bell is their spread times this over the root of their
number."""

CROWD = 0.1
"""Hardware fails node by node, about one in a hundred within half a year (Frontier: 99 of some 9,400).

When a tenth of all nodes is out of line at the same time, the cause is common: software, power, cooling, a setting.
"""

LEAST_CROWD = 3
"""Two bad nodes may be a coincidence also in a small fleet."""

LYING = 0.05
"""Share of the nodes that may lie, but at least one node. An attacker has to break into each node separately."""

SAME_TIME_S = 7 * 86_400.0
"""Nodes are out of line at the same time if they were within so long. Who left the fleet that way stops counting."""

ROBUST = 1.4826
"""The median absolute deviation times this is the standard deviation of values that spread like a bell."""


class Level(NamedTuple):
    """Where values lie: their median, and the standard deviation that their median absolute deviation stands for."""

    centre: float
    spread: float


def level_of(values: Sequence[float]) -> Level:
    """The level of at least one value."""
    centre = median(values)
    return Level(centre, ROBUST * median(abs(value - centre) for value in values))


def own_level_of(values: Sequence[float]) -> Level:
    """The level of at least two values in the order of their time.

    The spread is that from each to the next, so that a device which gets worse meanwhile does not pass for a noisy one.
    """
    steps = [abs(after - before) for before, after in pairwise(values)]
    return Level(median(values), ROBUST * median(steps) / math.sqrt(2))


def share_worse(value: float, centre: float, worse: Worse) -> float:
    """How much worse than `centre` a value is, as a share of it; negative when it is better, 0 without a scale."""
    if centre == 0:
        return 0.0
    difference = centre - value if worse is Worse.LOWER else value - centre
    return difference / abs(centre)


def too_bad(value: float, level: Level, worse: Worse, floor: float) -> bool:
    """Whether a value is worse than what chance makes of `level`, its spread being at least the share `floor`."""
    if level.centre == 0:
        return False
    spread = max(level.spread / abs(level.centre), floor)
    return share_worse(value, level.centre, worse) > TOO_MANY_SPREADS * spread


def fleet_level(level: Level, floor: float, devices: int) -> Level:
    """`level` of so many devices with the greatest spread that it may well have: two standard errors more."""
    spread = max(level.spread, floor * abs(level.centre))
    return Level(level.centre, spread * (1 + 2 * SPREAD_ERROR / math.sqrt(devices)))


def shift_of(level: Level, devices: int) -> float:
    """How much the centre of a fleet may change, as a share: more where few devices, or noisy ones, make it unsure."""
    if level.centre == 0:
        return SHIFT
    unsure = MEDIAN_ERROR * level.spread / (abs(level.centre) * math.sqrt(devices))
    return max(SHIFT, TOO_MANY_SPREADS * unsure)


def are_enough(nodes: int, alike: int) -> bool:
    """Whether so many nodes are enough to tell what is normal: most of them are honest, even if all liars came first.

    `alike` is the number of nodes of the same machine type. Example: of 200 nodes 10 may lie, so 21 are enough. The
    first ten alone might all be liars, and the honest nodes would be compared with them.
    """
    return nodes > 2 * liars_among(alike)


def is_crowd(out_of_line: int, nodes: int) -> bool:
    """Whether so many of all nodes are out of line that it cannot be their own fault."""
    return out_of_line >= max(LEAST_CROWD, CROWD * nodes)


def liars_among(nodes: int) -> int:
    """The number of nodes that may lie, of a fleet of so many."""
    return max(1, int(LYING * nodes))
