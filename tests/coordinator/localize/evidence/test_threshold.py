"""What is typical, and what is slow."""

from dataclasses import replace

import pytest
from tests.cases import cases

from muster_coordinator.localize.evidence.threshold import EXPECTED_SPREAD, spread_of, threshold_of

QUIET = [1.0, 0.99, 1.01, 1.0, 0.98, 1.02, 1.0, 1.0, 0.99, 1.01, 1.0, 0.99]


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 0.0, 0.0]])
def test_without_a_comparison_there_is_no_level(values: list[float]) -> None:
    """Neither one value nor nothing but zeros says what is typical."""
    assert threshold_of(values, spread_of(values)) is None
    assert spread_of(values).share == EXPECTED_SPREAD


@cases(
    ("values", "slow", "well"),
    [
        (QUIET, 0.84, 0.86),
        ([*QUIET, 0.7, 0.1], 0.84, 0.86),
        ([*QUIET, *[0.5] * 20], 0.84, 0.86),
        ([1.0, 1.0, 0.3, 0.3], 0.84, 0.86),
        ([1.06, 1.05, 1.03, 0.98, 0.97, 0.97, 0.96, *[0.5] * 8], 0.8, 0.9),
        ([1.0, 0.9, 0.82, 0.75, 0.68, 0.62, 0.56, 0.2], 0.41, 0.43),
    ],
    ids=["quiet", "with faults", "mostly faults", "few", "noisy and half faults", "no gap between well and slow"],
)
def test_slow_is_what_chance_does_not_explain(values: list[float], slow: float, well: float) -> None:
    """As long as a quarter is well; where values shade into each other, only what is less than half."""
    level = threshold_of(values, spread_of(values))
    assert level is not None
    assert slow < level.slow_below <= well


def test_a_noisy_fabric_gets_more_leave() -> None:
    """Its own spread counts as soon as there are values enough."""
    noisy = [1.0 + 0.02 * step for step in range(-10, 11)]
    assert spread_of(QUIET).share < 0.03 < spread_of(noisy).share
    level = threshold_of(noisy, spread_of(noisy))
    assert level is not None
    assert level.slow_below < min(noisy)


def test_two_groups_of_healthy_values_hide_no_fault() -> None:
    """Some racks are warm. The values differ by 3 %, although the best of them are farther apart than that."""
    warm, cool = ([level + 0.001 * step for step in range(12)] for level in (0.93, 1.0))
    level = threshold_of([*warm, *warm, *cool[:8], 0.7], spread_of([*warm, *warm, *cool[:8], 0.7]))
    assert level is not None
    assert 0.71 < level.slow_below < min(warm)


@pytest.mark.parametrize(("pairs", "slow_below"), [(270, 0.85), (90, 0.5)])
def test_a_few_of_many_values_that_shade_are_slow(pairs: int, slow_below: float) -> None:
    """Bad nodes are broken in every degree. More values that low, or shared links, are how this fleet is."""
    values = [*[1.0] * pairs, *(0.9 - 0.02 * step for step in range(30))]
    spread = spread_of(values)
    level, shared = threshold_of(values, spread), threshold_of(values, replace(spread, few_below=0.0))
    assert level is not None and shared is not None
    assert level.slow_below == pytest.approx(slow_below)
    assert shared.slow_below == pytest.approx(0.5)


def test_more_than_half_is_never_noise() -> None:
    """However gradually the values fall."""
    values = [0.93**step for step in range(20)]
    threshold = threshold_of(values, spread_of(values))
    assert threshold is not None
    assert threshold.slow_below == pytest.approx(threshold.typical / 2)


def test_of_few_values_the_highest_is_typical() -> None:
    """One bad node may be in all the others. Two values are enough to see a loss of 30 %, but not to be certain."""
    three, two = (threshold_of(values, spread_of(values)) for values in ([1.0, 0.79, 0.79], [1.0, 0.7]))
    assert three is not None and two is not None
    assert three.typical == two.typical == 1.0
    assert two.certain_below < 0.7 < two.slow_below


def test_a_gap_among_few_values_is_not_certain() -> None:
    """Among many, whatever is slow is certain."""
    few, many = (threshold_of(values, spread_of(values)) for values in ([1.0] * 3, [1.0] * 30))
    assert few is not None and many is not None
    assert few.certain_below < few.visible_below == pytest.approx(0.8)
    assert many.certain_below == many.visible_below == pytest.approx(0.85)
