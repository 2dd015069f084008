"""Parses parameters of a check, or conditions of a reference, from the command line."""

from collections.abc import Iterable

import pydantic_core
from pydantic import JsonValue

from muster.errors import Refused
from muster.model import Json


def parse_params(pairs: Iterable[str], what: str = "parameter") -> Json:
    """The values of `KEY=VALUE` pairs. A VALUE that is JSON is read as JSON, any other as a string.

    Raises Refused for a pair without key or `=`, and for a key given twice. `what` names the pair in the error.
    """
    params: Json = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise Refused(f"{what} {pair!r} is not KEY=VALUE, for example size=1024")
        if key in params:
            raise Refused(f"{what} {key!r} is given twice")
        params[key] = _value(value)
    return params


def _value(text: str) -> JsonValue:
    try:
        value: JsonValue = pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError:
        return text
    return value
