"""Check parameters as they are written on the command line."""

import pytest
from tests.cases import cases

from muster.errors import Refused
from muster.params import parse_params


@cases(
    ("pair", "value"),
    [
        ("k=1", 1),
        ("k=true", True),
        ("k=[1, 2]", [1, 2]),
        ('k="1"', "1"),
        ("k=bf16", "bf16"),
        ("k=a=b", "a=b"),
        ("k=", ""),
        ("k=NaN", "NaN"),
    ],
)
def test_values_are_json_where_they_can_be(pair, value):
    """Anything that is not JSON is a string, so that nobody needs to quote words."""
    assert parse_params([pair]) == {"k": value}


@pytest.mark.parametrize(("pairs", "message"), [(["k"], "is not KEY=VALUE"), (["=1"], "is not KEY=VALUE")])
def test_what_is_no_pair_is_refused(pairs, message):
    """A pair needs a key and an equals sign."""
    with pytest.raises(Refused, match=message):
        parse_params(pairs)


def test_a_key_that_is_given_twice_is_refused():
    """Of two values nobody can tell which was meant."""
    with pytest.raises(Refused, match="'k' is given twice"):
        parse_params(["k=1", "k=2"])
