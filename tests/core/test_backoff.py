"""One backoff for everything that is tried again."""

from muster.backoff import backoff_s


def test_the_pause_doubles_up_to_the_longest():
    """The first failure waits for the first pause."""
    assert [backoff_s(failures, 1.0, 300.0) for failures in (1, 2, 3, 9, 10, 11)] == [1, 2, 4, 256, 300, 300]


def test_any_number_of_failures_has_a_pause():
    """A node that fails for years overflows nothing."""
    assert backoff_s(10**9, 0.5, 30.0) == 30.0


def test_the_first_pause_is_bounded_too():
    """Who polls every second does not wait for five after a failure."""
    assert backoff_s(1, 5.0, 1.0) == 1.0
