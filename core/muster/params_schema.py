"""What a check's parameters may be, as a small part of JSON schema that is quick to check whoever has announced it.

Only the node that runs a check validates its parameters in full, with pydantic. What it announces is flat: by name, the
alternatives of a value, each with its type, its bounds or the values it may have:

    {"properties": {"size": {"anyOf": [{"type": "integer", "minimum": 64}, {"type": "null"}], "default": null}}}

Nothing refers to anything, only the items of a list stand one level deeper, and there are no patterns. All rules of a
JSON schema hold together, so that one which is left out only lets more values through; those the node itself declines.
A schema that goes beyond the bounds below becomes `{}`, which says that the parameters are not known here.
"""

import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator

from muster.errors import Refused, unknown
from muster.model import Json

MOST_PARAMETERS = 64
"""The built-in check with most parameters has twelve."""

MOST_ALTERNATIVES = 8

MOST_VALUES = 100
"""Values of one enumeration."""

MOST_PARTS = 1_000
"""Alternatives and values in a whole schema: one definition can be referred to many times."""

LONGEST_VALUE = 100
LONGEST_DESCRIPTION = 300
"""In characters."""

LARGEST_NUMBER = 1 << 64

MOST_ITEMS_LOOKED_AT = 1_000
"""Of a list that somebody asks for; the node looks at all."""

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

_DEFINITIONS = "#/$defs/"

_shorten = reprlib.Repr()
_shorten.maxstring = _shorten.maxother = _shorten.maxlong = 80
_shorten.maxlist = 30

Schema = Mapping[str, Any]


def flatten(schema: Json) -> Json:
    """The flat form of a JSON schema as pydantic writes it, `{}` beyond the bounds; what is flat stays as it is."""
    properties = _table(schema.get("properties"))
    if properties is None or len(properties) > MOST_PARAMETERS or not all(map(NAME.fullmatch, properties)):
        return {}
    definitions = _table(schema.get("$defs")) or {}
    flat: dict[str, Any] = {}
    parts = 0
    for name, parameter in properties.items():
        kinds = _kinds(_table(parameter) or {}, definitions)
        parts += sum(map(_parts, kinds))
        if parts > MOST_PARTS:
            return {}
        flat[name] = {**(kinds[0] if len(kinds) == 1 else {"anyOf": kinds}), **_remarks(_table(parameter) or {})}
    required = [name for name in _list(schema.get("required"))[:MOST_PARAMETERS] if name in flat]
    needed = {"required": required} if required else {}
    return {"type": "object", "properties": flat, **needed, "additionalProperties": False}


FlatSchema = Annotated[Json, AfterValidator(flatten)]


def rules_of(schema: Json) -> Json:
    """A flat schema without what it says to people."""
    if not schema:
        return schema
    bare: Json = {name: _bare(parameter) for name, parameter in (_table(schema["properties"]) or {}).items()}
    return {**schema, "properties": bare}


def _bare(parameter: Schema) -> Json:
    return {key: said for key, said in parameter.items() if key != "description"}


def require_fit(check: str, schema: Json, params: Json) -> None:
    """Refuses parameters that do not fit the flat schema of a check; takes any where that is not known."""
    if not schema:
        return
    properties: Schema = _table(schema["properties"]) or {}
    for name, value in params.items():
        if name not in properties:
            raise Refused(unknown(f"parameter of {check!r}:", name, properties))
        if (fault := _fault(properties[name], value)) is not None:
            raise Refused(f"parameter {name!r} of check {check!r}: {fault}")
    for name in _list(schema.get("required")):
        if name not in params:
            raise Refused(f"parameter {name!r} of check {check!r} must be given")


# From a schema to its flat form


def _kinds(parameter: Schema, definitions: Schema) -> list[dict[str, Any]]:
    """The alternatives that a parameter has; one that is empty takes any value."""
    options = parameter.get("anyOf", [parameter])
    if not isinstance(options, list) or not 1 <= len(options) <= MOST_ALTERNATIVES:
        return [{}]
    kinds = []
    for option in options:
        resolved = _resolved(option, definitions)
        kind = _kind(resolved)
        if (items := _kind(_resolved(resolved.get("items"), definitions))) and kind.get("type") == "array":
            kind["items"] = items
        kinds.append(kind)
    return kinds


def _resolved(option: Any, definitions: Schema) -> Schema:
    """An alternative, with what it refers to in its place; references in that are not followed."""
    schema: Schema = _table(option) or {}
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith(_DEFINITIONS):
        return schema
    return {**(_table(definitions.get(reference.removeprefix(_DEFINITIONS))) or {}), **schema}


def _kind(schema: Schema) -> dict[str, Any]:
    """The rules of one alternative that are simple enough."""
    kind: dict[str, Any] = {}
    name = schema.get("type")
    if isinstance(name, str) and name in _TYPES:
        kind["type"] = name
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and 1 <= len(values) <= MOST_VALUES and all(map(_is_short, values)):
        kind["enum"] = values
    return kind | {key: schema[key] for key, rule in _RULES.items() if key in schema and rule.is_bound(schema[key])}


def _remarks(parameter: Schema) -> dict[str, Any]:
    """What is said about a parameter besides its rules."""
    remarks: dict[str, Any] = {}
    if "default" in parameter:
        default = parameter["default"]
        values = default if isinstance(default, list) else [default]
        if len(values) <= MOST_VALUES and all(map(_is_short, values)):
            remarks["default"] = default
    if isinstance(description := parameter.get("description"), str):
        remarks["description"] = description[:LONGEST_DESCRIPTION]
    return remarks


def _parts(kind: Schema) -> int:
    return 1 + len(kind.get("enum", ())) + (_parts(kind["items"]) if "items" in kind else 0)


def _table(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_VALUE
    return value is None or isinstance(value, bool) or _is_number(value)


# Whether a value fits


def _fault(parameter: Schema, value: Any) -> str | None:
    """Why a value fits none of the alternatives; of several, first those that are for values of its type."""
    kinds = parameter.get("anyOf", [parameter])
    faults = [next(_faults(kind, value), None) for kind in kinds]
    if None in faults:
        return None
    of_its_type = [fault for kind, fault in zip(kinds, faults, strict=True) if _has_type(kind, value)]
    return " and ".join(dict.fromkeys(str(fault) for fault in of_its_type or faults))


def _faults(kind: Schema, value: Any) -> Iterator[str]:
    if not _has_type(kind, value):
        yield f"{_shorten.repr(value)} is not of type {kind['type']!r}"
    elif "enum" in kind and not any(_is_same(value, other) for other in kind["enum"]):
        yield f"{_shorten.repr(value)} is not one of {_shorten.repr(kind['enum'])}"
    else:
        broken = (rule for key, rule in _RULES.items() if key in kind and rule.is_broken(value, kind[key]))
        yield from (f"{_shorten.repr(value)} {rule.otherwise} {kind[rule.key]}" for rule in broken)
        if "items" in kind and isinstance(value, list):
            for item in value[:MOST_ITEMS_LOOKED_AT]:
                yield from _faults(kind["items"], item)


def _has_type(kind: Schema, value: Any) -> bool:
    return "type" not in kind or _TYPES[kind["type"]](value)


def _is_same(value: Any, other: Any) -> bool:
    """Whether JSON has them as the same value: 1 is 1.0, but true is not 1."""
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _is_any_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_any_number(value) and abs(value) <= LARGEST_NUMBER


def _is_whole(value: Any) -> bool:
    return _is_any_number(value) and (isinstance(value, int) or value.is_integer())


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_whole,
    "null": lambda value: value is None,
    "number": _is_any_number,
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


class _Rule(NamedTuple):
    """A bound of values that `is_for` knows; `otherwise` says between value and bound what is wrong."""

    key: str
    is_for: Callable[[Any], bool]
    is_bound: Callable[[Any], bool]
    holds: Callable[[Any, Any], bool]
    otherwise: str

    def is_broken(self, value: Any, bound: Any) -> bool:
        return self.is_for(value) and not self.holds(value, bound)


def _is_size(value: Any) -> bool:
    return _is_number(value) and isinstance(value, int) and value >= 0


def _is_step(value: Any) -> bool:
    return _is_size(value) and value > 0


_RULES = {
    rule.key: rule
    for rule in (
        _Rule("minimum", _is_any_number, _is_number, lambda it, least: it >= least, "is less than the minimum of"),
        _Rule("exclusiveMinimum", _is_any_number, _is_number, lambda it, low: it > low, "is not greater than"),
        _Rule("maximum", _is_any_number, _is_number, lambda it, most: it <= most, "is greater than the maximum of"),
        _Rule("exclusiveMaximum", _is_any_number, _is_number, lambda it, high: it < high, "is not less than"),
        _Rule("multipleOf", _is_any_number, _is_step, lambda it, step: it % step == 0, "is not a multiple of"),
        _Rule("minLength", _TYPES["string"], _is_size, lambda it, least: len(it) >= least, "is shorter than"),
        _Rule("maxLength", _TYPES["string"], _is_size, lambda it, most: len(it) <= most, "is longer than"),
        _Rule("minItems", _TYPES["array"], _is_size, lambda it, least: len(it) >= least, "has fewer items than"),
        _Rule("maxItems", _TYPES["array"], _is_size, lambda it, most: len(it) <= most, "has more items than"),
    )
}
