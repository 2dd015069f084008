"""Conditions on facts, as in a reference's `when`.

A fact meets a value if it equals it, a list if it equals one of its values, and a table `{at_least = …, at_most = …}`
if it is a number within these bounds. A missing fact meets no condition.
"""

import json
import operator
import sys
from collections.abc import Callable
from typing import Annotated, Any, TypeGuard

from pydantic import AfterValidator, JsonValue

_BOUNDS: dict[str, Callable[[Any, Any], bool]] = {"at_least": operator.ge, "at_most": operator.le}


def _valid(condition: JsonValue) -> JsonValue:
    """Returns the condition unchanged; ValueError says what is valid."""
    match condition:
        case dict():
            right = _is_range(condition)
        case list():
            right = bool(condition) and all(map(_is_plain, condition))
        case _:
            right = _is_plain(condition)
    if not right:
        raise ValueError(
            "must be a value (equal to it), a list of values (any of them) or a table of numbers such as "
            "{at_least = 1, at_most = 8}"
        )
    return condition


Condition = Annotated[JsonValue, AfterValidator(_valid)]


def is_met(condition: JsonValue, fact: JsonValue) -> bool:
    """Whether the fact meets the condition; None is a missing fact."""
    if isinstance(condition, dict):
        return _is_number(fact) and all(_BOUNDS[word](fact, bound) for word, bound in condition.items())
    values = condition if isinstance(condition, list) else [condition]
    return any(_is_same(value, fact) for value in values)


def in_words(condition: JsonValue) -> str:
    """The condition in words: `2`, `1 or 2`, `at least 1 and at most 8`."""
    if isinstance(condition, dict):
        return " and ".join(f"{word.replace('_', ' ')} {json.dumps(bound)}" for word, bound in condition.items())
    if isinstance(condition, list):
        return " or ".join(map(json.dumps, condition))
    return json.dumps(condition)


def _is_range(table: dict[str, JsonValue]) -> bool:
    if not table or not table.keys() <= _BOUNDS.keys():
        return False
    bounds = [table[word] for word in _BOUNDS if word in table]
    numbers = [bound for bound in bounds if _is_number(bound)]
    return len(numbers) == len(bounds) and sorted(numbers) == numbers


def _is_plain(value: JsonValue) -> bool:
    return isinstance(value, str | bool) or _is_number(value)


def _is_number(value: JsonValue) -> TypeGuard[float]:
    """Whether it is a number that a float can hold, so neither NaN nor a huge integer."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_same(value: JsonValue, fact: JsonValue) -> bool:
    """Equal as in JSON, where true is not 1."""
    return value == fact and isinstance(value, bool) == isinstance(fact, bool)
