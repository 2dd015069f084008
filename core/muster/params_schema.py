"""The parameters of a check as a flat, bounded part of JSON schema. Checking values against it is fast and safe.

A node announces the schema, and the node may lie: a full JSON schema with nested references can keep a validator busy
for hours. The flat form lists, for each parameter, the alternatives of its value with type, bounds or choices:

    {"properties": {"size": {"anyOf": [{"type": "integer", "minimum": 64}, {"type": "null"}], "default": null}}}

It has no references and no patterns, and only the items of a list stand one level deeper. `flatten` leaves out every
rule that the flat form lacks. All rules of a JSON schema must hold together, so leaving one out only admits more
values; the node that runs the check validates its parameters in full, with pydantic, and declines those. A schema
beyond the bounds below becomes `{}`: the parameters are not known here.

Flattening takes time in proportion to the size of the schema, checking in proportion to the given values times the
alternatives of a parameter.
"""

import operator
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator

from muster.errors import Refused, unknown
from muster.model import Json

MOST_PARAMETERS = 64
"""The built-in check with the most parameters has twelve."""

MOST_ALTERNATIVES = 8

MOST_CHOICES = 100
"""Maximum number of values of one enumeration."""

MOST_PARTS = 1_000
"""Maximum number of alternatives and choices in a whole schema. Many parameters can refer to one large definition."""

LONGEST_VALUE = 100
LONGEST_DESCRIPTION = 300
"""Maximum length in characters."""

LARGEST_BOUND = 1 << 64

MOST_CHECKED_ITEMS = 1_000
"""Maximum number of items of a given list that are checked here. The node checks all of them."""

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

_DEFINITIONS = "#/$defs/"

_shorten = reprlib.Repr()
_shorten.maxstring = _shorten.maxother = _shorten.maxlong = 80
_shorten.maxlist = 30

Schema = Mapping[str, Any]


def flatten(schema: Json) -> Json:
    """The flat form of a JSON schema that pydantic wrote; `{}` beyond the bounds. A flat schema stays as it is."""
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
    announced = _list(schema.get("required"))[:MOST_PARAMETERS]
    names: list[Any] = [name for name in announced if isinstance(name, str) and name in flat]
    required = {"required": names} if names else {}
    return {"type": "object", "properties": flat, **required, "additionalProperties": False}


FlatSchema = Annotated[Json, AfterValidator(flatten)]


def rules_of(schema: Json) -> Json:
    """A flat schema without its descriptions for people."""
    if not schema:
        return schema
    bare: Json = {name: _bare(parameter) for name, parameter in (_table(schema["properties"]) or {}).items()}
    return {**schema, "properties": bare}


def _bare(parameter: Schema) -> Json:
    return {key: value for key, value in parameter.items() if key != "description"}


def require_fit(check: str, schema: Json, params: Json) -> None:
    """Refused when parameters do not fit the flat schema of a check; any parameters fit the unknown schema `{}`."""
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
    """The alternatives of a parameter. An empty alternative takes any value."""
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
    """The rules of an alternative together with those of the definition that it refers to, one level deep."""
    schema: Schema = _table(option) or {}
    reference = str(schema.get("$ref", ""))
    definition: Schema = {}
    if reference.startswith(_DEFINITIONS):
        definition = _table(definitions.get(reference.removeprefix(_DEFINITIONS))) or {}
    return {key: part[key] for part in (definition, schema) for key in _READ if key in part}


def _kind(schema: Schema) -> dict[str, Any]:
    """The rules of one alternative that the flat form has."""
    kind: dict[str, Any] = {}
    name = schema.get("type")
    if isinstance(name, str) and name in _TYPES:
        kind["type"] = name
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and 1 <= len(values) <= MOST_CHOICES and all(map(_is_short, values)):
        kind["enum"] = values
    return kind | {key: schema[key] for key, rule in _RULES.items() if key in schema and rule.is_bound(schema[key])}


def _remarks(parameter: Schema) -> dict[str, Any]:
    """The default and the description of a parameter, if they are short."""
    remarks: dict[str, Any] = {}
    if "default" in parameter:
        default = parameter["default"]
        values = default if isinstance(default, list) else [default]
        if len(values) <= MOST_CHOICES and all(map(_is_short, values)):
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
    """Why a value fits none of the alternatives; None if it fits one. It names alternatives of the value's type."""
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
            for item in value[:MOST_CHECKED_ITEMS]:
                yield from _faults(kind["items"], item)


def _has_type(kind: Schema, value: Any) -> bool:
    return "type" not in kind or _TYPES[kind["type"]](value)


def _is_same(value: Any, other: Any) -> bool:
    """Whether both are the same JSON value: 1 is 1.0, but true is not 1."""
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _is_any_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_any_number(value) and abs(value) <= LARGEST_BOUND


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
    """A rule for the values that `is_for` accepts. `otherwise` stands between value and bound in the error."""

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


def _is_no_shorter(value: Any, least: int) -> bool:
    return len(value) >= least


def _is_no_longer(value: Any, most: int) -> bool:
    return len(value) <= most


_RULES = {
    rule.key: rule
    for rule in (
        _Rule("minimum", _is_any_number, _is_number, operator.ge, "is less than the minimum of"),
        _Rule("exclusiveMinimum", _is_any_number, _is_number, operator.gt, "is not greater than"),
        _Rule("maximum", _is_any_number, _is_number, operator.le, "is greater than the maximum of"),
        _Rule("exclusiveMaximum", _is_any_number, _is_number, operator.lt, "is not less than"),
        _Rule("multipleOf", _is_any_number, _is_step, lambda value, step: value % step == 0, "is not a multiple of"),
        _Rule("minLength", _TYPES["string"], _is_size, _is_no_shorter, "is shorter than"),
        _Rule("maxLength", _TYPES["string"], _is_size, _is_no_longer, "is longer than"),
        _Rule("minItems", _TYPES["array"], _is_size, _is_no_shorter, "has fewer items than"),
        _Rule("maxItems", _TYPES["array"], _is_size, _is_no_longer, "has more items than"),
    )
}

_READ = ("type", "const", "enum", "items", *_RULES)
"""The keys of an alternative that are used. Other keys are not copied, however large they are."""
