"""The threshold below which a measured value is slow.

The idea: healthy values lie close together near the top, and faults lie below a gap. Only values above the median are
used to say what is typical, so up to three quarters of the values may come from faulty nodes.

Example: twelve values between 0.98 and 1.02 and two of 0.7 and 0.1. The upper quartile, 1.0, is typical. The spread of
the healthy values is 2 %, six times that is 12 %, and the least shortfall that counts is 15 %. Values below 0.85 are
slow. With a spread of 6 %, values below 0.64 would be slow.

If values shade into each other (1.0, 0.9, 0.82, 0.75, … without a gap), no point separates noise from a fault. Then the
threshold moves down, but never below half of what is typical. Of many values, a few that shade are faults.

Each function sorts its values once: O(n log n) for n values.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

EXPECTED_SPREAD = 0.02
"""Relative standard deviation of bandwidth from run to run on a healthy fabric, until this one has been measured."""

SPREAD_ON_ONE_HOST = 0.1
"""The same for nodes that share a host: other work on the host takes a core from one of them for a whole run. On two
cores beside other work, healthy pairs measured 30 % below the best again and again."""

MOST_SHORTFALL_ON_ONE_HOST = 2 / 3
"""The same for nodes that share a host. A pair whose ranks get one core between them reaches half of what a pair with
two cores does, as measured again and again on two cores, and other noise comes on top.
"""

EXPECTED_WEIGHT = 8
"""The expected spread counts as this many values, so that a handful of values cannot overrule it."""

SIGMAS = 6.0
"""Fewer than one healthy run in a hundred million falls short by this many standard deviations."""

LEAST_SHORTFALL, MOST_SHORTFALL = 0.15, 0.5
"""A smaller shortfall is never a fault, and a larger one is never noise, whatever the spread.

Both are chosen by simulation. 0.15: if a tenth of the nodes is healthy and reaches 0.86 to 0.88, no node is convicted
in 360 sweeps; at 0.075 and at 0.1, 2,572 are. At 0.3, 126 nodes that deliver up to 70 % are cleared in 1,728 sweeps,
and none at 0.15. (GPUs of one node differ by 5 % without a fault: stas00/ml-engineering, accelerator tables.)
0.5: matters only in noisy fabrics. At noise of 2 to 20 %, in 270 sweeps with 2,770 slow nodes, 2,368 are convicted, and
4 healthy nodes. At 0.25, these are 2,757 and 9; at 0.9, 2,209 and 4.
"""

LEAST_GAP, MORE_GAP = 0.08, 0.8
"""Gap below the lowest healthy value, as a share of it; the second is divided by the number of values seen.

The fewer values, the wider the gaps between healthy ones: eight values need a gap of 18 %, eighty one of 9 %.
Both are chosen by simulation (960 sweeps of 8 to 232 nodes; in 720 of them healthy values shade from 1.0 to 0.7). At
half, little changes: at 0.04, 31 of 1,200 bad nodes are cleared among values that shade, and 33 at 0.08; at 0.4, one
healthy node is convicted. At double, bad nodes are cleared because the gap above them is too narrow: 11 of 717 at 0.16,
27 at 1.6, and none at 0.08 and 0.8.
"""

WIDEST_GAP = 0.2
"""However few values there are, one that is lower by this much is slow, but not certainly: see `certain_below`.

Chosen by simulation, in fleets of 3 to 8 nodes. Without it, a node at 70 % passes in all fleets of up to six nodes. At
0.15, twice as many healthy sweeps convict a node at noise of 20 % as at 0.2, and a node at 70 % is found as often.
"""

CERTAIN_GAP = 1.3
"""A gap that is wider by this factor is certain: two bad runs convict then, and below it takes three.

Chosen by simulation (eight nodes, noise of 20 %, coordinators that crash): at 1, two runs of one pair convict a healthy
link in one of 1,164 sweeps; at 1.3, nothing healthy is convicted in 1,156.
"""

FEW_VALUES = 5
"""Of fewer values, the highest is typical: one bad node may be in every other run.

Prevents: of three nodes, a reaches 0.8 with b and with c, and b-c reaches 1. The upper quartile would be 0.9, and 0.8
would pass.
"""

MANY_VALUES, FEW_BELOW = 100, 1 / 8
"""If this many values are known, and less than this share of them is lower than noise reaches, these are faults.

If one node in twenty is bad, one pair in ten is. In a large fleet, their values lie close together from just below
normal to nearly nothing. Prevents: of 1,024 nodes, 51 are broken in every degree, and healthy ones heat up by 10 %.
There is no gap, so only half of normal would be slow: in one such sweep, 38 are found, and 48 with this rule.
Groups that links between leaves limit shade without a fault, so the rule is not for them.
"""

QUARTILE, DECILE = 14, 17
"""Positions of the upper quartile and of the upper decile among twentieths."""

DECILE_BEYOND_QUARTILE = 0.607
"""Distance of the upper decile of a normal distribution from its upper quartile, in standard deviations."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The typical value, and the value below which a group is slow.

    If one value more had been lower than `visible_below`, it would have been slow. A slow value that is not lower than
    `certain_below` may be noise: there are too few values to know how wide gaps between healthy ones are.
    """

    typical: float
    slow_below: float
    visible_below: float
    certain_below: float


@dataclass(frozen=True, slots=True)
class Spread:
    """The relative standard deviation of healthy runs, and the number of values `seen` for it.

    A shortfall of more than `most_shortfall` is never noise. If less than the share `few_below` of many values is lower
    than noise, these are faults.
    """

    share: float
    seen: int
    most_shortfall: float = MOST_SHORTFALL
    few_below: float = FEW_BELOW


def spread_of(values: Sequence[float]) -> Spread:
    """The spread of the values above the first gap; mostly the expected spread while there are few values.

    The best values tell most, because three quarters may come from faulty nodes. Rule: the spread is no larger than the
    standard deviation of all these values. Prevents: some racks are warm, and a quarter of 32 pairs reach 390, the
    others 365. By the best values, healthy pairs differ by 6 %, and a node at 275 would be noise. All differ by 3 %.
    """
    healthy = _healthy(values)
    if (cuts := _cuts(healthy)) is None:
        return Spread(EXPECTED_SPREAD, len(values))
    of_best = (cuts[DECILE] / cuts[QUARTILE] - 1) / DECILE_BEYOND_QUARTILE
    found = min(of_best, statistics.pstdev(healthy) / cuts[QUARTILE])
    weighted = EXPECTED_WEIGHT * EXPECTED_SPREAD**2 + len(healthy) * found**2
    return Spread(math.sqrt(weighted / (EXPECTED_WEIGHT + len(healthy))), len(values))


def on_one_host(spread: Spread) -> Spread:
    """The spread of healthy runs like these whose nodes share a host."""
    share = max(spread.share, SPREAD_ON_ONE_HOST)
    return replace(spread, share=share, most_shortfall=MOST_SHORTFALL_ON_ONE_HOST)


def threshold_of(values: Sequence[float], spread: Spread) -> Threshold | None:
    """The threshold for `values`; None if there are fewer than two values, so that nothing can be compared."""
    if (cuts := _cuts(values)) is None:
        return None
    typical = cuts[QUARTILE] if len(values) >= FEW_VALUES else max(values)
    lowest_noise = typical * (1 - min(max(SIGMAS * spread.share, LEAST_SHORTFALL), spread.most_shortfall))
    least = typical * (1 - spread.most_shortfall)
    usual = _gap(max(spread.seen, len(values)))
    gap = min(usual, WIDEST_GAP)
    shades = not _are_few_below(lowest_noise, values, spread)
    lowest = _lowest_healthy(values, typical, gap, lowest_noise) if shades else typical
    return Threshold(
        typical=typical,
        slow_below=max(min(lowest_noise, lowest), least),
        visible_below=max(min(lowest_noise, (1 - gap) * lowest), least),
        certain_below=max(min(lowest_noise, (1 - CERTAIN_GAP * usual) * lowest), least),
    )


def _are_few_below(lowest_noise: float, values: Sequence[float], spread: Spread) -> bool:
    """Whether there are many values, and only a few of them are lower than noise reaches."""
    below = sum(value < lowest_noise for value in values)
    return len(values) >= MANY_VALUES and below < spread.few_below * len(values)


def usual_of(values: Sequence[float]) -> float:
    """The upper quartile of the values; 0 if there are fewer than two."""
    return 0.0 if (cuts := _cuts(values)) is None else cuts[QUARTILE]


def _gap(seen: int) -> float:
    return LEAST_GAP + MORE_GAP / seen


def _healthy(values: Sequence[float]) -> list[float]:
    if (cuts := _cuts(values)) is None:
        return []
    lowest = _lowest_healthy(values, cuts[QUARTILE], _gap(len(values)))
    return [value for value in values if value >= lowest]


def _lowest_healthy(values: Sequence[float], typical: float, gap: float, lowest_noise: float = math.inf) -> float:
    """The last of `values`, going down, before one that is lower by a `gap` and lower than noise reaches."""
    lowest = typical
    for value in sorted(values, reverse=True):
        if value < min(lowest_noise, (1 - gap) * lowest):
            break
        lowest = value
    return lowest


def _cuts(values: Sequence[float]) -> list[float] | None:
    """The values at every twentieth. Callers use only the upper ones, which hold while a quarter is healthy."""
    if len(values) < 2:
        return None
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return cuts if cuts[QUARTILE] > 0 else None
