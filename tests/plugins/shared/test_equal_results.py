"""Bits of devices that computed the same."""

from tests.cases import cases

from muster_plugins.shared.equal_results import outliers


@cases(
    ("values", "odd"),
    [
        ([], []),
        (["a"], []),
        (["a", "a", "a"], []),
        (["a", "b", "a"], [1]),
        (["a", "b"], [0, 1]),
        (["a", "b", "a", "b", "c"], [0, 1, 2, 3, 4]),
        (["a", "a", "b", "c"], [2, 3]),
    ],
)
def test_those_that_differ_from_most_are_odd(values, odd):
    """Where there is no majority nobody can tell which is right, so all are suspects."""
    assert outliers(values) == odd
