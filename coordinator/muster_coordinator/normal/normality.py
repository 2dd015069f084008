"""The thresholds of baselines: levels, and the distance from a level that is too far.

This module holds every threshold of the comparisons over the fleet and over time, with its reason.

Example: 50 devices with centre 700 and spread 7. The spread counts as at least 1.5 % of 700, 10.5, and is widened by
two standard errors, 1 + 2 x 1.17 / sqrt(50) = 1.33, to 14. Five times that is 10 %: below 630 a device is an outlier.

Levels sort their values: O(n log n). Everything else takes constant time.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from muster.check import Worse

RECENT_RUNS = 3
"""A device counts with the median of its last three values, from the third one on.

One odd run changes nothing; two in a row do, as in health.
"""

EARLIER_RUNS = 8
"""Number of first values that make a device's own level. The error of their median is half that of one value. With gemm
every six hours, they take two days.
"""

LEAST_PEERS = 8
"""The lowest number of others to compare a device with. Among fewer, one bad device makes up much of the spread."""

TOO_MANY_SPREADS = 5.0
"""Among a million normally distributed values, none is five standard deviations worse at random."""

FLEET_FLOOR = 0.015
"""The least spread over the fleet, as a share of its centre: an outlier is at least 7.5 % worse than many others.

Within one node of eight GPUs 5 % is normal (stas00/ml-engineering, accelerators).
"""

OWN_FLOOR = 0.02
"""The least spread of a device's own values, as a share of its level: drift begins at 10 %.

More than 10 % below its own baseline is where acceptance playbooks for GPU clusters call a node failed.
"""

TYPICAL_ERROR = 0.67
"""Standard error of the median of three values, as a share of their spread."""

SPREAD_ERROR = 1.17
"""Standard error of a spread from the median absolute deviation: this share of it over the root of the number of values
(an efficiency of 37 %)."""

SHIFT = 0.05
"""Share by which the centre of a whole fleet may become worse. It is much steadier than a device: the same playbooks
investigate from 5 %."""

MEDIAN_ERROR = 1.2533
"""Standard error of the median of normal values: their spread times this over the root of their number."""

CROWD = 0.1
"""Hardware fails node by node, about one in a hundred within half a year (Frontier: 99 of some 9,400).

When a tenth of all nodes is out of line at the same time, the cause is common: software, power, cooling, a setting.
"""

LEAST_CROWD = 3
"""Two bad nodes may be a coincidence even in a small fleet."""

LYING = 0.05
"""Share of the nodes that may lie, but at least one node. An attacker has to break into each node separately."""

SAME_TIME_S = 7 * 86_400.0
"""Nodes that were out of line within this time count together. Older measurements, as of nodes that left, do not."""

ROBUST = 1.4826
"""The median absolute deviation times this is the standard deviation of normally distributed values."""


class Level(NamedTuple):
    """The median of values, and their standard deviation as estimated from the median absolute deviation."""

    centre: float
    spread: float


def level_of(values: Sequence[float]) -> Level:
    """The level of at least one value."""
    centre = median(values)
    return Level(centre, ROBUST * median(abs(value - centre) for value in values))


def own_level_of(values: Sequence[float]) -> Level:
    """The level of at least two values in the order of their time.

    The spread is that of the steps from each value to the next. Prevents: a device gets slowly worse over its first
    values, passes for a noisy one, and never drifts.
    """
    steps = [abs(after - before) for before, after in pairwise(values)]
    return Level(median(values), ROBUST * median(steps) / math.sqrt(2))


def share_worse(value: float, centre: float, worse: Worse) -> float:
    """How much worse than `centre` a value is, as a share of it; negative if better, 0 if the centre is 0."""
    if centre == 0:
        return 0.0
    difference = centre - value if worse is Worse.LOWER else value - centre
    return difference / abs(centre)


def too_bad(value: float, level: Level, worse: Worse, floor: float) -> bool:
    """Whether a value is worse than random. The spread of `level` counts as at least `floor` of its centre."""
    if level.centre == 0:
        return False
    spread = max(level.spread / abs(level.centre), floor)
    return share_worse(value, level.centre, worse) > TOO_MANY_SPREADS * spread


def fleet_level(level: Level, floor: float, devices: int) -> Level:
    """`level` with its spread, of at least `floor`, widened by two standard errors for this number of devices."""
    spread = max(level.spread, floor * abs(level.centre))
    return Level(level.centre, spread * (1 + 2 * SPREAD_ERROR / math.sqrt(devices)))


def shift_of(level: Level, devices: int) -> float:
    """Share by which the centre of a fleet may change: more for few or noisy devices, whose centre is less sure."""
    if level.centre == 0:
        return SHIFT
    unsure = MEDIAN_ERROR * level.spread / (abs(level.centre) * math.sqrt(devices))
    return max(SHIFT, TOO_MANY_SPREADS * unsure)


def are_enough(nodes: int, alike: int) -> bool:
    """Whether this number of nodes is enough for a normal value: most are honest, even if all liars came first.

    `alike` is the number of nodes of the same machine type. Example: of 200 nodes 10 may lie, so 21 are enough. The
    first ten alone might all be liars, and the honest nodes would be compared with them.
    """
    return nodes > 2 * liars_among(alike)


def is_crowd(out_of_line: int, nodes: int) -> bool:
    """Whether the nodes out of line are so many of all nodes that the cause is common."""
    return out_of_line >= max(LEAST_CROWD, CROWD * nodes)


def liars_among(nodes: int) -> int:
    """How many nodes of a fleet of `nodes` may lie."""
    return max(1, int(LYING * nodes))
