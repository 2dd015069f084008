"""Sizes of messages."""

import pytest
from pydantic import TypeAdapter, ValidationError
from tests.cases import cases

from muster.errors import Refused
from muster.params_schema import flatten, require_fit
from muster_plugins.shared.collectives.message_sizes import MessageSize, series

SIZE = TypeAdapter(MessageSize)


@cases(
    ("written", "size"),
    [("2M", 2 << 20), ("16g", 16 << 30), ("1K", 1024), ("0.5K", 512), (4096, 4096), ("4096", 4096)],
)
def test_units_are_those_of_nccl_tests(written, size):
    """1024 to a unit, upper or lower case."""
    assert SIZE.validate_python(written) == size


@cases("written", ["", "M", "2MB", "2 M", "-1", "1e9", "2T", "nan", None, 2.5, "0K"])
def test_what_is_no_size_is_refused(written):
    """An invalid size is an error and never read as another size."""
    with pytest.raises(ValidationError):
        SIZE.validate_python(written)


def test_the_schema_lets_both_forms_through():
    """The coordinator validates parameters with it before it sends them."""
    schema = flatten({"properties": {"size": SIZE.json_schema()}})
    for size in ("2M", 4096):
        require_fit("collective", schema, {"size": size})
    with pytest.raises(Refused, match=r"2\.5 is not of type"):
        require_fit("collective", schema, {"size": 2.5})


def test_a_series_ends_at_or_below_its_end():
    """As nccl-tests' -b, -e and -f."""
    assert series(2, 40, 3) == [2, 6, 18]
    assert series(8, 8, 2) == [8]
