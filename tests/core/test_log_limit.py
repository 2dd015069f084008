"""A log line that repeats is written once a minute, with a count."""

from muster.log_limit import MOST_KINDS, PERIOD_S, LogLimit


def test_one_line_of_a_kind_in_a_period():
    """The first is written; the next written one has the number of those left out."""
    limit = LogLimit()
    left_out = [limit.admit("refused", now) for now in (0.0, 1.0, PERIOD_S - 0.1, PERIOD_S, PERIOD_S + 1, 3 * PERIOD_S)]
    assert left_out == [0, None, None, 2, None, 1]


def test_kinds_do_not_hide_each_other():
    """Each kind has its own minute."""
    limit = LogLimit()
    assert [limit.admit("a", 0.0), limit.admit("b", 0.0), limit.admit("a", 1.0)] == [0, 0, None]


def test_what_is_remembered_is_bounded():
    """For any number of kinds; the oldest is forgotten first."""
    limit = LogLimit()
    for number in range(2 * MOST_KINDS):
        assert limit.admit(str(number), 0.0) == 0
    assert len(limit._written) == MOST_KINDS
    assert limit.admit(str(2 * MOST_KINDS - 1), 1.0) is None
