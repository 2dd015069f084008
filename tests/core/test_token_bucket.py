"""One token bucket for every limit on a rate."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.token_bucket import TokenBucket


def test_the_burst_is_there_at_once():
    """It is full at first, at whatever time the clock stands."""
    assert TokenBucket(6, 0.1).left(1_795_000_000.0) == 6


def test_it_refills_up_to_the_burst():
    """At the rate, and never beyond."""
    bucket = TokenBucket(6, 0.5)
    bucket.left(100.0)
    bucket.spend(6)
    assert [bucket.left(100.0), bucket.left(104.0), bucket.left(1000.0)] == [0, 2, 6]


def test_more_than_there_is_can_be_spent():
    """The debt is refilled first."""
    bucket = TokenBucket(10, 1)
    bucket.left(0.0)
    bucket.spend(25)
    assert [bucket.left(0.0), bucket.left(15.0), bucket.left(16.0)] == [-15, 0, 1]


def test_a_clock_that_was_set_back_refills_nothing():
    """And from then on it refills as always."""
    bucket = TokenBucket(10, 1)
    bucket.left(100.0)
    bucket.spend(10)
    assert [bucket.left(50.0), bucket.left(53.0)] == [0, 3]


def test_an_endless_bucket_is_never_empty():
    """A limit of infinity limits nothing."""
    bucket = TokenBucket(math.inf, math.inf)
    for _ in range(3):
        bucket.spend(1e12)
        assert bucket.left(5.0) == math.inf


def test_reservations_wait_their_turn():
    """The burst at once, each later one for longer, until there was time to refill."""
    bucket = TokenBucket(4, 4)
    assert [bucket.reserve(100.0) for _ in range(7)] == [0, 0, 0, 0, 0.25, 0.5, 0.75]
    assert [bucket.reserve(101.0) for _ in range(2)] == [0, 0.25]
    assert [bucket.reserve(200.0) for _ in range(5)] == [0, 0, 0, 0, 0.25]


def test_reservations_keep_the_rate():
    """However many come at the same time."""
    bucket = TokenBucket(200, 200)
    assert max(bucket.reserve(0.0) for _ in range(40_000)) == pytest.approx(199.0)


@given(st.lists(st.floats(0, 10), max_size=50))
def test_no_more_is_taken_than_burst_and_rate_give(pauses):
    """Whoever takes a token only when one is left gets at most burst + rate * time."""
    bucket, now, taken = TokenBucket(5, 2), 0.0, 0
    for pause in pauses:
        now += pause
        while bucket.left(now) >= 1:
            bucket.spend(1)
            taken += 1
    assert taken <= 5 + 2 * now + 1e-6
