"""Parameter schemas that nodes announce: they are made flat and small, and never take long."""

import contextlib
import enum
import json
import time
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field
from tests.cases import cases
from tests.lots import examples

from muster.check import CheckInfo, Needs, Params, Scope
from muster.errors import Refused
from muster.params_schema import MOST_PARAMETERS, MOST_PARTS, flatten, require_fit, rules_of


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Many(Params):
    """One parameter of each kind."""

    size: int | None = Field(None, ge=64, le=4096, multiple_of=16, description="Rows and columns")
    share: float = Field(0.5, gt=0, lt=1)
    colour: Colour = Colour.RED
    perhaps: Colour | None = None
    word: str = Field("a", min_length=1, max_length=3, pattern="^[a-z]+$")
    parts: list[Literal["a", "b"]] = Field(["a"], min_length=1, max_length=3)
    switch: bool = False
    table: dict[str, int] = {}
    shape: tuple[int, int] | None = None
    needed: int


FLAT = flatten(Many.model_json_schema())


def bomb(depth: int = 40) -> dict[str, Any]:
    """Every definition refers twice to the next: a naive validator checks a value 2^depth times against the last."""
    twice = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(depth)}
    return {"$defs": twice | {f"d{depth}": {"type": "integer"}}, "properties": {"size": {"$ref": "#/$defs/d0"}}}


def chain(length: int) -> dict[str, Any]:
    links = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 8} for i in range(length)}
    return {"$defs": links, "properties": {"size": {"$ref": "#/$defs/d0"}}}


def of(size: Any) -> dict[str, Any]:
    return {"properties": {"size": size}}


HOSTILE: dict[str, Any] = {
    "doubled allOf": bomb(),
    "a long chain": chain(2000),
    "a circle": {"$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"size": {"$ref": "#/$defs/a"}}},
    "itself": of({"$ref": "#"}),
    "a slow pattern": of({"type": "string", "pattern": "^(a+)+$"}),
    "slow names": {"patternProperties": {"^(a+)+$": {}}, **of({})},
    "unique items": of({"type": "array", "uniqueItems": True}),
    "ten thousand parameters": {"properties": {f"p{i}": {"type": "integer"} for i in range(10_000)}},
    "ten thousand values": of({"enum": list(range(10_000))}),
    "ten thousand alternatives": of({"anyOf": [{"type": "integer"}] * 10_000}),
    "values many times": {
        "$defs": {"e": {"enum": list(range(100))}},
        "properties": {f"p{i}": {"anyOf": [{"$ref": "#/$defs/e"}] * 8} for i in range(MOST_PARAMETERS)},
    },
    "a long text": of({"type": "string", "description": "x" * 1_000_000}),
    "a long name": {"properties": {"x" * 1_000_000: {}}},
    "a name that rings": {"properties": {"\x1b[2J\a": {}}},
    "ten thousand needed": {**of({}), "required": [f"p{i}" for i in range(10_000)]},
    "a large definition many times": {
        "$defs": {"d": {f"x{number}": 0 for number in range(100_000)}},
        "properties": {f"p{i}": {"anyOf": [{"$ref": "#/$defs/d"}] * 8} for i in range(MOST_PARAMETERS)},
    },
    "somewhere else": of({"$ref": "http://127.0.0.1:1/schema"}),
    "items of items": of({"type": "array", "items": {"type": "array", "items": {"type": "array"}}}),
    "nothing of its kind": {
        "$defs": [],
        "required": [7, None, ["a"], {"a": "b"}, "a"],
        "properties": {
            "a": None,
            "b": [],
            "c": {"anyOf": 3},
            "d": {"type": ["string"], "enum": {}, "items": 5, "$ref": []},
            "e": {"minimum": "1", "maxLength": -1, "multipleOf": 0, "maximum": True, "minItems": 1.5},
            "f": {"anyOf": []},
            "g": {"anyOf": [True, None, {"$ref": "#/$defs/x"}]},
        },
    },
    "no properties": {"properties": [1]},
}


@cases("schema", HOSTILE.values(), ids=HOSTILE)
@cases("size", [1, "a" * 40 + "!", [0] * 20_000])
def test_no_schema_takes_long_or_grows(schema: dict[str, Any], size: Any) -> None:
    """To flatten a schema and to validate a value takes little time, and the flat schema is small."""
    begun = time.process_time()
    flat = flatten(schema)
    try:
        require_fit("check", flat, {"size": size})
    except Refused as refused:
        assert len(str(refused)) < 10_000
    assert time.process_time() - begun < 0.2
    assert len(json.dumps(flat)) < 10_000
    assert flatten(flat) == flat


WORDS = ("properties", "$defs", "$ref", "#/$defs/a", "anyOf", "type", "enum", "const", "items", "required", "default")
MORE_WORDS = (
    "description",
    "minimum",
    "multipleOf",
    "minLength",
    "maxItems",
    "array",
    "string",
    "integer",
    "a",
    "size",
)
TEXTS = st.sampled_from(WORDS + MORE_WORDS) | st.text(max_size=5)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
ANYTHING = st.recursive(PLAIN, lambda part: st.lists(part, max_size=4) | st.dictionaries(TEXTS, part, max_size=5))
PARAMETERS = st.dictionaries(st.sampled_from(["a", "size"]), st.dictionaries(TEXTS, ANYTHING, max_size=5), max_size=2)
SCHEMAS = st.dictionaries(TEXTS, ANYTHING) | st.builds(
    lambda properties, more: {**more, "properties": properties}, PARAMETERS, st.dictionaries(TEXTS, ANYTHING)
)


@settings(max_examples=examples(60))
@given(schema=SCHEMAS, params=st.dictionaries(st.sampled_from(["a", "size"]), ANYTHING, max_size=2))
def test_no_schema_and_no_parameters_raise_anything_else(schema: Any, params: Any) -> None:
    """Any schema becomes flat, and any parameters fit or are refused."""
    flat = flatten(schema)
    assert flatten(flat) == flat
    rules_of(flat)
    with contextlib.suppress(Refused):
        require_fit("c", flat, params)


def test_one_schema_holds_a_limited_number_of_values() -> None:
    """Even if it refers to the same values many times."""
    values = list(range(100))
    few: dict[str, Any] = {
        "$defs": {"e": {"enum": values}},
        "properties": {f"p{i}": {"$ref": "#/$defs/e"} for i in range(9)},
    }
    many = {**few, "properties": {f"p{i}": {"$ref": "#/$defs/e"} for i in range(MOST_PARTS // len(values))}}
    assert len(flatten(few)["properties"]) == 9  # type: ignore[arg-type]
    assert flatten(many) == {}


def test_a_model_becomes_flat() -> None:
    """Types, bounds, values, defaults and descriptions stay; patterns and the items of tuples do not."""
    assert FLAT["properties"] == {
        "size": {
            "anyOf": [{"type": "integer", "minimum": 64, "maximum": 4096, "multipleOf": 16}, {"type": "null"}],
            "default": None,
            "description": "Rows and columns",
        },
        "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.5},
        "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "perhaps": {"anyOf": [{"type": "string", "enum": ["red", "blue"]}, {"type": "null"}], "default": None},
        "word": {"type": "string", "minLength": 1, "maxLength": 3, "default": "a"},
        "parts": {
            "type": "array",
            "items": {"type": "string", "enum": ["a", "b"]},
            "minItems": 1,
            "maxItems": 3,
            "default": ["a"],
        },
        "switch": {"type": "boolean", "default": False},
        "table": {"type": "object"},
        "shape": {"anyOf": [{"type": "array", "minItems": 2, "maxItems": 2}, {"type": "null"}], "default": None},
        "needed": {"type": "integer"},
    }
    assert FLAT["required"] == ["needed"]
    assert flatten(FLAT) == FLAT


@cases(
    ("params", "message"),
    [
        ({"size": 10}, "parameter 'size' of check 'c': 10 is less than the minimum of 64"),
        ({"size": 4112}, "4112 is greater than the maximum of 4096"),
        ({"size": 65}, "65 is not a multiple of 16"),
        ({"size": "x"}, "'x' is not of type 'integer' and 'x' is not of type 'null'"),
        ({"size": True}, "True is not of type 'integer'"),
        ({"size": 64.5}, "64.5 is not of type 'integer'"),
        ({"share": 0}, "0 is not greater than 0"),
        ({"share": 1.0}, "1.0 is not less than 1"),
        ({"colour": "green"}, "'green' is not one of ['red', 'blue']"),
        ({"perhaps": "green"}, "'green' is not one of ['red', 'blue']"),
        ({"word": ""}, "'' is shorter than 1"),
        ({"word": "long"}, "'long' is longer than 3"),
        ({"parts": []}, "[] has fewer items than 1"),
        ({"parts": ["a"] * 4}, "has more items than 3"),
        ({"parts": ["a", "c"]}, "'c' is not one of ['a', 'b']"),
        ({"parts": "a"}, "'a' is not of type 'array'"),
        ({"switch": 1}, "1 is not of type 'boolean'"),
        ({"table": 3}, "3 is not of type 'object'"),
        ({"sise": 64}, "unknown parameter of 'c': 'sise'; did you mean 'size'?"),
        ({}, "parameter 'needed' of check 'c' must be given"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(params: dict[str, Any], message: str) -> None:
    """The error names the parameter, what is wrong with it, and what would be right."""
    with pytest.raises(Refused) as caught:
        require_fit("c", FLAT, params if "sise" in params or not params else {"needed": 1, **params})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "params",
    [
        {"size": 64, "share": 0.1, "colour": "blue", "perhaps": None, "word": "abc", "parts": ["b"], "switch": True},
        {"size": None},
        {"size": 128.0},
        {"table": {"a": 1}, "shape": [1, 2]},
    ],
)
def test_parameters_that_fit_are_accepted(params: dict[str, Any]) -> None:
    """A number without a fraction fits an integer, because JSON has only one kind of number."""
    require_fit("c", FLAT, {"needed": 1, **params})


def test_without_a_schema_the_node_decides() -> None:
    """A schema beyond the bounds becomes empty, and refuses nothing."""
    require_fit("c", flatten(HOSTILE["ten thousand parameters"]), {"anything": [1]})


def test_true_is_not_one() -> None:
    """JSON distinguishes them, also among the values of an enumeration."""
    flat = flatten({"properties": {"level": {"enum": [1, 2]}}})
    require_fit("c", flat, {"level": 1.0})
    with pytest.raises(Refused, match="True is not one of"):
        require_fit("c", flat, {"level": True})


def test_descriptions_are_no_rules() -> None:
    """Checks that differ only in the description of a parameter are the same; with another default they differ."""
    one = flatten({"properties": {"size": {"type": "integer", "description": "a", "default": 1}}})
    described = flatten({"properties": {"size": {"type": "integer", "description": "b", "default": 1}}})
    defaulted = flatten({"properties": {"size": {"type": "integer", "description": "a", "default": 2}}})
    assert rules_of(one) == rules_of(described) != rules_of(defaulted)
    assert rules_of({}) == {}


def test_a_check_is_announced_flat() -> None:
    """Also if an agent of an earlier release announces a full JSON schema."""
    info = CheckInfo(
        name="c",
        summary="",
        scope=Scope.NODE,
        needs=Needs.NOTHING,
        cadence_s=None,
        timeout_s=1.0,
        objective=None,
        params=Many.model_json_schema(),
    )
    assert info.params == FLAT
    assert CheckInfo.model_validate_json(info.model_dump_json()).params == FLAT
