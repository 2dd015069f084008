"""What nodes announce about parameters: kept flat and small, and never the reason why others wait."""

import enum
import json
import time
from typing import Any, Literal

import pytest
from pydantic import Field

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
    """Every definition refers twice to the next, so that a value is checked against the last 2^depth times."""
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
    "somewhere else": of({"$ref": "http://127.0.0.1:1/schema"}),
    "items of items": of({"type": "array", "items": {"type": "array", "items": {"type": "array"}}}),
    "nothing of its kind": {
        "$defs": [],
        "required": 7,
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


@pytest.mark.parametrize("schema", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("size", [1, "a" * 40 + "!", [0] * 20_000])
def test_no_schema_takes_long_or_grows(schema: dict[str, Any], size: Any) -> None:
    """Neither when it is heard nor when a value is held against it, and what is left of it is small."""
    begun = time.process_time()
    flat = flatten(schema)
    try:
        require_fit("check", flat, {"size": size})
    except Refused as refused:
        assert len(str(refused)) < 10_000
    assert time.process_time() - begun < 0.2
    assert len(json.dumps(flat)) < 10_000
    assert flatten(flat) == flat


def test_one_schema_holds_a_limited_number_of_values() -> None:
    """However often it refers to the same ones."""
    values = list(range(100))
    few: dict[str, Any] = {
        "$defs": {"e": {"enum": values}},
        "properties": {f"p{i}": {"$ref": "#/$defs/e"} for i in range(9)},
    }
    many = {**few, "properties": {f"p{i}": {"$ref": "#/$defs/e"} for i in range(MOST_PARTS // len(values))}}
    assert len(flatten(few)["properties"]) == 9  # type: ignore[arg-type]
    assert flatten(many) == {}


def test_a_model_becomes_flat() -> None:
    """Types, bounds, values, defaults and what is said to people stay; patterns and places in a list do not."""
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


@pytest.mark.parametrize(
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
def test_what_does_not_fit_is_refused(params: dict[str, Any], message: str) -> None:
    """With the parameter, what is wrong with it, and what would be right."""
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
def test_what_fits_is_taken(params: dict[str, Any]) -> None:
    """So is a number without a fraction for an integer, as JSON has but one kind of number."""
    require_fit("c", FLAT, {"needed": 1, **params})


def test_where_nothing_is_known_the_node_decides() -> None:
    """A schema that goes beyond the bounds refuses nothing."""
    require_fit("c", flatten(HOSTILE["ten thousand parameters"]), {"anything": [1]})


def test_true_is_not_one() -> None:
    """JSON tells them apart, and so do the values of an enumeration."""
    flat = flatten({"properties": {"level": {"enum": [1, 2]}}})
    require_fit("c", flat, {"level": 1.0})
    with pytest.raises(Refused, match="True is not one of"):
        require_fit("c", flat, {"level": True})


def test_what_is_said_to_people_is_no_rule() -> None:
    """Two nodes of which one has another description of a parameter have the same check; another default is another."""
    said = flatten({"properties": {"size": {"type": "integer", "description": "a", "default": 1}}})
    otherwise = flatten({"properties": {"size": {"type": "integer", "description": "b", "default": 1}}})
    other = flatten({"properties": {"size": {"type": "integer", "description": "a", "default": 2}}})
    assert rules_of(said) == rules_of(otherwise) != rules_of(other)
    assert rules_of({}) == {}


def test_a_check_is_announced_flat() -> None:
    """Whoever made the announcement, an agent of the release before this one among them."""
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
