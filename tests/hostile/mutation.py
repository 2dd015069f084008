"""Valid messages of any kind, and mutations of them. Pure: the same seed gives the same bytes.

`messages` walks through the JSON schema of a pydantic model, so it knows every field of a message, also new ones.
`mutate` takes any payload: it replaces, drops, doubles and renames parts of the JSON tree, or changes bytes.
"""

import json
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from pydantic import TypeAdapter, ValidationError

from muster.model import format_instant

MOST_ITEMS = 3
"""How many items a generated list or mapping has at most."""

WORDS = ("a", "n1", "n2", "group-1", "nvml.quick", "0", "x" * 253)
"""Strings that every `Name` takes."""

LAST_S = 2_000_000_000
"""The last time in a generated message, in seconds since 1970."""

_PLACE = "\u0001place\u0001"
"""Marks the place in the tree for raw JSON text that no Python value is written as."""

_MOST_FAILED = 1000

_MOST_READ_BYTES = 50_000
"""Of larger payloads, which earlier mutations made, only bytes are changed: parsing them takes most of the time."""

_DEPTH = 20_000
"""Deeper than any parser goes, in few bytes."""

ODD_TEXTS: tuple[bytes, ...] = (
    *(b"null", b"true", b"[]", b"{}", b'""', b"0", b"-1", b"0.5", b'"1"', b'" "', b"[null]", b'{"":null}'),
    *(b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1e308", b"5e-324", b"-0.0", b"00", b"1_000"),
    *(b"2147483000", b"2147483648", b"9007199254740993", b"9223372036854775808", b"1e18"),
    b"9" * 400,
    b"9" * 5000,
    *(b'"nan"', b'"inf"', b'"9999-12-31T23:59:59.999Z"', b'"0001-01-01T00:00:00Z"', b'"2026-01-31T12:00:00"'),
    *(b'"\\u0000"', b'"\\ud800"', b'"\\udfff\\ud800"', b'"\\u202e\\u200b"', b'"\xff\xfe"', b'"\xed\xa0\x80"'),
    *(b'"../../etc/passwd"', b'"a/b/#"', b'"+"', b'"<script>alert(1)</script>"', b'"%s%n{0}"'),
    b'"a\\nb\\r\\u001b[31m"',
    b'"' + b"x" * 254 + b'"',
    b'"' + b"A" * 100_000 + b'"',
    b"[" * _DEPTH + b"]" * _DEPTH,
    b'{"a":' * _DEPTH + b"1" + b"}" * _DEPTH,
    b"[" * 100 + b"]" * 100,
    b"[" + b"0," * 20_000 + b"0]",
)
"""JSON texts that no field expects, and texts that only look like JSON."""


# Valid messages


def messages(kind: Any, random: Random, **fixed: Any) -> Iterator[bytes]:
    """Yields valid payloads of a pydantic model, union or TypeAdapter without end; ValueError if hardly any is valid.

    A field named in `fixed` always gets that value, at any depth; a callable is called for each value. Use it for rules
    that no schema has: `messages(REPORT, random, node="n1", after=0, seq=itertools.count(1).__next__)`.
    """
    adapter, schema = _described(kind)
    source = _Source(schema.get("$defs", {}), random, fixed)
    failed = 0
    while failed < _MOST_FAILED:
        payload = json.dumps(source.value(schema)).encode()
        try:
            adapter.validate_json(payload)
        except ValidationError:  # a validator demands more than the schema
            failed += 1
        else:
            failed = 0
            yield payload
    raise ValueError(f"{_MOST_FAILED} values of {adapter} in a row are not valid; fix the fields that depend on others")


@cache
def _described(kind: Any) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    """What validates a kind of message, and its JSON schema, which takes long to make."""
    adapter = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
    return adapter, adapter.json_schema(mode="validation")


class _Source:
    """Random values that a JSON schema allows."""

    def __init__(self, definitions: dict[str, Any], random: Random, fixed: dict[str, Any]) -> None:
        self._definitions = definitions
        self._random = random
        self._fixed = fixed

    def value(self, schema: dict[str, Any]) -> Any:
        if "$ref" in schema:
            return self.value(self._definitions[schema["$ref"].rpartition("/")[2]])
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                return self.value(self._random.choice(schema[choice]))
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        return self._of_type(schema)

    def _of_type(self, schema: dict[str, Any]) -> Any:
        makers = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": lambda schema: int(self._number(schema)),
            "number": self._number,
            "boolean": lambda _: self._random.random() < 0.5,
            "null": lambda _: None,
        }
        return makers.get(schema.get("type", ""), self._anything)(schema)

    def _anything(self, _: dict[str, Any]) -> Any:
        return self._random.choice([None, True, 1, -0.5, "text", [1, "two"], {"key": {"deeper": []}}])

    def _object(self, schema: dict[str, Any]) -> dict[str, Any]:
        required = {*schema.get("required", ()), "schema", "id"}
        found = {
            name: self._field(name, field)
            for name, field in schema.get("properties", {}).items()
            if name in required or name in self._fixed or self._random.random() < 0.7
        }
        if isinstance(values := schema.get("additionalProperties"), dict):
            found |= {word: self.value(values) for word in self._random.sample(WORDS, self._count({"maxItems": 2}))}
        return found

    def _field(self, name: str, schema: dict[str, Any]) -> Any:
        if name not in self._fixed:
            return self.value(schema)
        fixed = self._fixed[name]
        return fixed() if callable(fixed) else fixed

    def _array(self, schema: dict[str, Any]) -> list[Any]:
        if "prefixItems" in schema:
            return [self.value(item) for item in schema["prefixItems"]]
        return [self.value(schema.get("items", {})) for _ in range(self._count(schema))]

    def _count(self, schema: dict[str, Any]) -> int:
        least = schema.get("minItems", 0)
        return self._random.randint(least, max(least, min(schema.get("maxItems", MOST_ITEMS), MOST_ITEMS)))

    def _string(self, schema: dict[str, Any]) -> str:
        if schema.get("format") == "date-time":
            return format_instant(self._random.choice([0, 1, self._random.uniform(0, LAST_S)]))
        words = [word for word in WORDS if schema.get("minLength", 0) <= len(word) <= schema.get("maxLength", 1 << 20)]
        return self._random.choice(words)

    def _number(self, schema: dict[str, Any]) -> float:
        least: float = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        most: float = schema.get("maximum", schema.get("exclusiveMaximum", least + 1000))
        return self._random.choice([least, 1, self._random.uniform(least, most)]) if least <= 1 < most else least


# Mutations


def mutate(payload: bytes, random: Random) -> bytes:
    """The payload with one to three mutations; if it is no JSON, only bytes are changed."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        payload = _mutated(payload, random)
    return payload


def _mutated(payload: bytes, random: Random) -> bytes:
    if random.random() < 0.25 or len(payload) > _MOST_READ_BYTES:
        return _corrupted(payload, random)
    try:
        tree = json.loads(payload)
    except (ValueError, RecursionError):
        return _corrupted(payload, random)
    holders = _holders(tree)
    return random.choice(_IN_TREE)(tree, *random.choice(holders), random) if holders else random.choice(ODD_TEXTS)


def _holders(tree: Any) -> list[tuple[Any, Any]]:
    """Every place in the tree, as the list or mapping that holds it and the index or key there."""
    places: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        match waiting.pop():
            case dict() as holder:
                places += [(holder, key) for key in holder]
                held: Any = holder.values()
            case list() as holder:
                places += [(holder, index) for index in range(len(holder))]
                held = holder
            case _:
                continue
        waiting += [value for value in held if isinstance(value, dict | list)]
    return places


def _replaced(tree: Any, holder: Any, key: Any, random: Random) -> bytes:
    holder[key] = _PLACE
    return _written(tree, random.choice(ODD_TEXTS))


def _dropped(tree: Any, holder: Any, key: Any, _random: Random) -> bytes:
    del holder[key]
    return _written(tree)


def _given_twice(tree: Any, holder: Any, key: Any, random: Random) -> bytes:
    """The same key twice in an object, or the same item twice in a list."""
    first = json.dumps(holder[key]).encode()
    holder[key] = _PLACE
    again = b"," + (json.dumps(key).encode() + b":" if isinstance(key, str) else b"")
    return _written(tree, first + again + random.choice((first, random.choice(ODD_TEXTS))))


def _renamed(tree: Any, holder: Any, key: Any, random: Random) -> bytes:
    if isinstance(holder, list):
        return _replaced(tree, holder, key, random)
    holder[random.choice((key.upper(), f" {key}", "", "__class__", "\ud800", "k" * 10_000))] = holder.pop(key)
    return _written(tree)


def _swapped(tree: Any, holder: Any, key: Any, random: Random) -> bytes:
    """Two values of the same list or object change places."""
    other = random.choice([*holder] if isinstance(holder, dict) else range(len(holder)))
    holder[key], holder[other] = holder[other], holder[key]
    return _written(tree)


def _multiplied(tree: Any, holder: Any, key: Any, random: Random) -> bytes:
    """A value many times over: a list with very many items, or a number or text that became a list."""
    value = holder[key]
    items = value if isinstance(value, list) else [value]
    size = max(1, len(json.dumps(items)))
    holder[key] = items * min(random.choice((2, 100, 10_000)), max(1, 100_000 // size))
    return _written(tree)


def _shifted(tree: Any, holder: Any, key: Any, random: Random) -> bytes:
    """A number at or beyond a limit; a text that is shorter or longer."""
    match holder[key]:
        case bool() | None | dict() | list():
            return _replaced(tree, holder, key, random)
        case str() as text:
            holder[key] = random.choice((text[: len(text) // 2], text * 300, text + "\n", text + "é", f" {text} "))
        case number:
            holder[key] = random.choice(
                (-number, number + 1, number - 1, number * 1_000_000, 2**31, 2**53, 2**63, 2**64)
            )
    return _written(tree)


_IN_TREE = (_replaced, _replaced, _dropped, _given_twice, _renamed, _swapped, _multiplied, _shifted)


def _written(tree: Any, text: bytes = b"") -> bytes:
    return json.dumps(tree).encode().replace(json.dumps(_PLACE).encode(), text)


def _corrupted(payload: bytes, random: Random) -> bytes:
    """The payload with bytes cut off, changed, inserted or repeated, or other bytes."""
    at, to = sorted(random.randrange(len(payload) + 1) for _ in range(2))
    return random.choice(
        (
            payload[:at],
            payload[:at] + random.randbytes(1) + payload[at + 1 :],
            payload[:at] + random.randbytes(random.randrange(1, 20)) + payload[at:],
            payload[:to] + payload[at:],
            payload + payload,
            random.choice(ODD_TEXTS),
            random.randbytes(random.randrange(200)),
        )
    )
