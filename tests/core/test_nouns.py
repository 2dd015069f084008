"""Numbers with their nouns."""

from muster.nouns import count


def test_only_one_is_singular():
    """Nothing is plural, as people say it."""
    assert [count(number, "node") for number in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]
