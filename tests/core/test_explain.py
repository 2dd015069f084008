"""Check parameters, and how a wrong one is explained."""

import pytest
from pydantic import TypeAdapter

from muster.check import Check, Params, Scope, describe, valid_params
from muster.errors import Refused
from muster.model import Measurement


class Size(Params):
    """Parameters of the check under test."""

    size: int = 64
    dtype: str = "bf16"


CHECK = Check(
    name="gemm",
    summary="s",
    scope=Scope.NODE,
    params=Size,
    measure=lambda params, context: Measurement(),
    judge=lambda measurement, references: [],
    timeout_s=1,
)


def test_params_are_converted_and_defaults_filled_in():
    """Values come as JSON or as text from the command line."""
    assert valid_params(CHECK, {"size": "128"}) == Size(size=128)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sice": 1}, "unknown parameter of gemm 'sice'; did you mean 'size'? (valid: dtype, size)"),
        ({"size": "big"}, "parameter of gemm 'size': must be a valid integer (got 'big')"),
        ({"dtype": 5}, "parameter of gemm 'dtype': must be a text (got 5)"),
        ({"size": "b" * 9_000}, f"parameter of gemm 'size': must be a valid integer (got '{'b' * 299}…)"),
    ],
)
def test_wrong_params_are_refused_with_what_is_valid(values, message):
    """The message names the check, the parameter and what would be right."""
    with pytest.raises(Refused) as caught:
        valid_params(CHECK, values)
    assert message in str(caught.value)


def test_a_check_describes_its_params_as_a_json_schema():
    """What the agent announces is enough to validate parameters elsewhere."""
    schema = describe(CHECK).params
    assert schema["additionalProperties"] is False
    assert list(TypeAdapter(dict[str, object]).validate_python(schema["properties"])) == ["size", "dtype"]
