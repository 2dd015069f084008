"""Tables for people."""

from muster.table import table

ROWS = [("node-1", "a long text about it", "x" * 30), ("n2", "short", "y")]
HEADER = ("NODE", "TEXT", "MORE")


def test_columns_are_as_wide_as_their_longest_cell():
    """Without blanks at the end of a line."""
    assert table(("A", "B"), [("1", "22"), ("333", "4")]) == "A    B\n1    22\n333  4"


def test_columns_are_cut_in_the_order_in_which_they_are_named():
    """The next one only when the first is as narrow as it may be; a cut cell ends with an ellipsis."""
    shrinkable = {"MORE": 10, "TEXT": 8}
    wide = table(HEADER, ROWS, width=50, shrinkable=shrinkable).splitlines()
    assert wide[1] == f"node-1  a long text about it  {'x' * 19}…"
    narrow = table(HEADER, ROWS, width=30, shrinkable=shrinkable).splitlines()
    assert narrow[1] == f"node-1  a long te…  {'x' * 9}…"
    assert max(map(len, narrow)) == 30


def test_no_column_gets_narrower_than_it_may():
    """A line is then longer than asked for; nothing else is cut."""
    lines = table(HEADER, ROWS, width=5, shrinkable={"MORE": 10}).splitlines()
    assert lines[1] == f"node-1  a long text about it  {'x' * 9}…"
    assert table(HEADER, ROWS, width=200, shrinkable={"MORE": 10}) == table(HEADER, ROWS)
