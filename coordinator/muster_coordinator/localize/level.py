"""What groups of one kind typically reach, and below what a group counts as slow."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

EXPECTED_SPREAD = 0.02
"""Relative standard deviation of bandwidth from run to run on a healthy fabric, before this one has been seen."""

SPREAD_ON_ONE_HOST = 0.1
"""The same where nodes share a host: whatever else runs there takes a core from one of them for a whole run. Of healthy
pairs on two cores beside other work, runs 30 % below the best were seen again and again."""

EXPECTED_WEIGHT = 8
"""As many values as the expectation counts for, so that a handful of values cannot overrule it."""

SIGMAS = 6.0
"""Less than one healthy run in a hundred million falls so far short by chance."""

LEAST_SHORTFALL, MOST_SHORTFALL = 0.15, 0.5
"""Nobody calls a smaller shortfall a fault, or a larger one chance, whatever the spread."""

LEAST_GAP, MORE_GAP = 0.08, 0.8
"""As a share of the lowest value that is well; the second is divided by the number of values that have been seen."""

QUARTILE, DECILE = 14, 17
"""Places of the upper quartile and of the upper decile among twentieths."""

DECILE_BEYOND_QUARTILE = 0.607
"""By how many standard deviations the upper decile of a normal distribution lies above the upper quartile."""


@dataclass(frozen=True, slots=True)
class Level:
    """What is typical, and the value below which a group is slow."""

    typical: float
    slow_below: float


@dataclass(frozen=True, slots=True)
class Spread:
    """The relative standard deviation of healthy runs, and how many values have been `seen` of which it was taken."""

    share: float
    seen: int


def spread_of(values: Sequence[float]) -> Spread:
    """How those of `values` spread that no gap sets apart; what is expected until there are enough."""
    well = _well(values)
    if (cuts := _cuts(well)) is None:
        return Spread(EXPECTED_SPREAD, len(values))
    found = (cuts[DECILE] / cuts[QUARTILE] - 1) / DECILE_BEYOND_QUARTILE
    weighted = EXPECTED_WEIGHT * EXPECTED_SPREAD**2 + len(well) * found**2
    return Spread(math.sqrt(weighted / (EXPECTED_WEIGHT + len(well))), len(values))


def level_of(values: Sequence[float], spread: Spread) -> Level | None:
    """The level of `values`; None when fewer than two leave nothing to compare.

    What is slow is set apart from what is well by a gap, which is wider while few values have been seen: without one,
    nobody can tell where chance ends and the fault begins.
    """
    if (cuts := _cuts(values)) is None:
        return None
    typical = cuts[QUARTILE]
    by_chance = typical * (1 - min(max(SIGMAS * spread.share, LEAST_SHORTFALL), MOST_SHORTFALL))
    least = _least_well(values, typical, _gap(max(spread.seen, len(values))), by_chance)
    return Level(typical, max(min(by_chance, least), typical * (1 - MOST_SHORTFALL)))


def _gap(seen: int) -> float:
    return LEAST_GAP + MORE_GAP / seen


def _well(values: Sequence[float]) -> list[float]:
    if (cuts := _cuts(values)) is None:
        return []
    least = _least_well(values, cuts[QUARTILE], _gap(len(values)))
    return [value for value in values if value >= least]


def _least_well(values: Sequence[float], typical: float, gap: float, by_chance: float = math.inf) -> float:
    """The last of `values`, from `typical` down, before one that is lower by a `gap`, and too low `by_chance`."""
    least = typical
    for value in sorted(values, reverse=True):
        if value < min(by_chance, (1 - gap) * least):
            break
        least = value
    return least


def _cuts(values: Sequence[float]) -> list[float] | None:
    """The values at every twentieth. Only the upper ones are used: they stand as long as a quarter is well."""
    if len(values) < 2:
        return None
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return cuts if cuts[QUARTILE] > 0 else None
