"""Sizes of messages."""

import jsonschema
import pytest
from pydantic import TypeAdapter, ValidationError

from muster_plugins.collective.message_sizes import MessageSize, series

SIZE = TypeAdapter(MessageSize)


@pytest.mark.parametrize(
    ("written", "size"),
    [("2M", 2 << 20), ("16g", 16 << 30), ("1K", 1024), ("0.5K", 512), (4096, 4096), ("4096", 4096)],
)
def test_units_are_those_of_nccl_tests(written, size):
    """1024 to a unit, upper or lower case."""
    assert SIZE.validate_python(written) == size


@pytest.mark.parametrize("written", ["", "M", "2MB", "2 M", "-1", "1e9", "2T", "nan", None, 2.5, "0K"])
def test_what_is_no_size_is_refused(written):
    """Rather than taken for something else."""
    with pytest.raises(ValidationError):
        SIZE.validate_python(written)


def test_the_schema_lets_both_forms_through():
    """A coordinator checks parameters by it before it sends them."""
    validator = jsonschema.Draft202012Validator(SIZE.json_schema())
    assert validator.is_valid("2M")
    assert validator.is_valid(4096)
    assert not validator.is_valid("2X")


def test_a_series_ends_at_or_below_its_end():
    """As nccl-tests' -b, -e and -f."""
    assert series(2, 40, 3) == [2, 6, 18]
    assert series(8, 8, 2) == [8]
