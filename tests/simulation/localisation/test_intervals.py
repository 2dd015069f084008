"""Intervals of shares, against published values and the definition."""

import pytest
from benchmarks.localisation.intervals import at_most, interval_of, tries_to_bound
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import cases


@cases("hits, tries, low, high", [
    (0, 100, 0.0, 0.0362),
    (5, 100, 0.0164, 0.1128),
    (10, 10, 0.6915, 1.0),
    (1, 10, 0.0025, 0.4450),
    (0, 0, 0.0, 1.0),
])  # fmt: skip
def test_published_intervals(hits, tries, low, high) -> None:
    """As tables and `binom.test` of R have them."""
    assert interval_of(hits, tries) == pytest.approx((low, high), abs=6e-5)


@given(st.integers(1, 400), st.data())
def test_the_ends_leave_both_tails(tries: int, data) -> None:
    """At each end, a result that is as extreme has half of what the confidence leaves."""
    hits = data.draw(st.integers(0, tries))
    low, high = interval_of(hits, tries)
    if hits:
        assert at_most(tries - hits, tries, 1 - low) == pytest.approx(0.025, rel=1e-6)
    if hits < tries:
        assert at_most(hits, tries, high) == pytest.approx(0.025, rel=1e-6)
    assert low <= hits / tries <= high


def test_how_many_sweeps_bound_a_tenth_of_a_percent() -> None:
    """One fewer is not enough."""
    tries = tries_to_bound(0.001)
    assert tries == 3688
    assert interval_of(0, tries)[1] <= 0.001 < interval_of(0, tries - 1)[1]
