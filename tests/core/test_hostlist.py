"""Lists of names as Slurm writes them."""

import re

import pytest
from tests.cases import cases

from muster.hostlist import MOST_NAMES, expand


@cases(
    ("text", "names"),
    [
        ("node-1", ["node-1"]),
        ("node-2,node-1", ["node-2", "node-1"]),
        ("node-1, node-2 ", ["node-1", "node-2"]),
        ("tux[0-3,12,18-20]", ["tux0", "tux1", "tux2", "tux3", "tux12", "tux18", "tux19", "tux20"]),
        ("node-[098-101]", ["node-098", "node-099", "node-100", "node-101"]),
        ("node-[8-11]", ["node-8", "node-9", "node-10", "node-11"]),
        ("r[1-2]b[01-02].lab", ["r1b01.lab", "r1b02.lab", "r2b01.lab", "r2b02.lab"]),
        ("a[1-2],b,c[3]", ["a1", "a2", "b", "c3"]),
        ("NVIDIA H100 80GB HBM3", ["NVIDIA H100 80GB HBM3"]),
    ],
)
def test_ranges_are_written_out(text, names):
    """In their order, with the leading zeros of the first number."""
    assert expand(text) == names


@cases(
    ("text", "reason"),
    [
        ("", "an empty name"),
        ("a,,b", "an empty name"),
        ("a,", "an empty name"),
        ("node-[1-4", "neither a name nor names with ranges"),
        ("node-1-4]", "neither a name nor names with ranges"),
        ("node-[[1]]", "neither a name nor names with ranges"),
        ("node-[]", "'' in 'node-[]' is neither a number nor a range"),
        ("node-[a-c]", "'a-c' in 'node-[a-c]' is neither a number nor a range"),
        ("node-[1,]", "neither a number nor a range"),
        ("node-[9-3]", "runs backwards: write 3-9"),
    ],
)
def test_what_is_no_list_is_refused(text, reason):
    """With what was wrong in it."""
    with pytest.raises(ValueError, match=re.escape(reason)):
        expand(text)


@pytest.mark.parametrize("text", ["n[1-999999999999]", "n[1-1000][1-1000]", f"a,n[1-{MOST_NAMES}]"])
def test_a_list_without_end_costs_nothing(text):
    """It is counted before it is written out."""
    with pytest.raises(ValueError, match=f"more than {MOST_NAMES} names"):
        expand(text)
